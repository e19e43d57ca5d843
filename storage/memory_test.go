package storage

import (
	"errors"
	"fmt"
	"testing"
)

func open(t *testing.T, b Builder) (Store, Table) {
	t.Helper()
	s, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	tab, err := s.Table("t", 0)
	if err != nil {
		t.Fatal(err)
	}
	return s, tab
}

func TestMemoryCrashFreesTablesAndKeepsRows(t *testing.T) {
	b := Memory()
	old, tab := open(t, b)
	row := Row{Key: []byte("a"), Value: []byte("1")}
	if err := tab.Apply([]Row{row}, &Checkpoint{Position: 5}); err != nil {
		t.Fatal(err)
	}
	b.(interface{ Crash() }).Crash()
	s, next := open(t, b)
	if err := tab.Apply([]Row{{Key: []byte("a")}}, nil); !errors.Is(err, ErrClosed) {
		t.Fatalf("apply after the crash: %v", err)
	}
	if _, err := old.Table("u", 0); !errors.Is(err, ErrClosed) {
		t.Fatalf("table of a crashed store: %v", err)
	}
	if v, ok, err := next.Get(nil, row.Key); string(v) != "1" || !ok || err != nil {
		t.Fatalf("get: %q %v %v", v, ok, err)
	}
	if cp, ok, _ := next.Checkpoint(); !ok || cp.Position != 5 {
		t.Fatalf("checkpoint: %+v %v", cp, ok)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := next.Get(nil, row.Key); err != nil {
		t.Fatalf("the close of a crashed store closed another: %v", err)
	}
	if s.ProcessID() != old.ProcessID() {
		t.Fatal("the process id changed")
	}
}

func TestMemoriesAreApart(t *testing.T) {
	_, a := open(t, Memory())
	_, b := open(t, Memory())
	if err := a.Apply([]Row{{Key: []byte("a"), Value: []byte("1")}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := b.Get(nil, []byte("a")); ok || err != nil {
		t.Fatalf("row of another memory: %v %v", ok, err)
	}
}

func TestMemoryGetAllocatesNothing(t *testing.T) {
	_, tab := open(t, Memory())
	var rows []Row
	for i := range 10_000 {
		rows = append(rows, Row{Key: fmt.Append(nil, i), Value: []byte("value")})
	}
	if err := tab.Apply(rows, nil); err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 0, 16)
	n := testing.AllocsPerRun(100, func() {
		if v, ok, err := tab.Get(dst, rows[77].Key); !ok || err != nil || len(v) != 5 {
			t.Fatal(ok, err)
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestPrefixSelectsExactlyTheKeysThatBeginWithIt(t *testing.T) {
	for _, test := range []struct {
		prefix, key string
		want        bool
	}{
		{"", "", true}, {"", "\xff", true}, {"a", "a", true}, {"a", "a\xff\xff", true}, {"a", "b", false}, {"a", "", false},
		{"a\xff", "a\xff", true}, {"a\xff", "b", false}, {"\xff", "\xff\xff", true}, {"\xff", "\xfe", false},
	} {
		if got := Prefix([]byte(test.prefix)).Contains([]byte(test.key)); got != test.want {
			t.Errorf("prefix %q, key %q: %v", test.prefix, test.key, got)
		}
	}
}

func BenchmarkMemoryApply(b *testing.B) {
	s, _ := Memory().Open()
	tab, _ := s.Table("t", 0)
	rows := make([]Row, 100_000)
	for i := range rows {
		rows[i] = Row{Key: fmt.Appendf(nil, "%016x", uint64(i)*0x9e3779b97f4a7c15), Value: make([]byte, 8)}
	}
	n := 0
	for b.Loop() {
		if err := tab.Apply(rows, nil); err != nil {
			b.Fatal(err)
		}
		n += len(rows)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}
