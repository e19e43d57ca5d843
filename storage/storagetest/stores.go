package storagetest

import (
	"testing"
	"time"

	"github.com/rekastream/reka/storage"
)

func checkpoint(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	wantCheckpoint(t, tab, nil)
	cp := &storage.Checkpoint{
		Position:    1 << 40,
		LeaderEpoch: -1,
		TopicID:     [16]byte{1, 15: 2},
		AtEnd:       time.Date(2024, 2, 29, 1, 2, 3, 456_789_000, time.UTC),
		Owner:       []byte{0, 1, 2},
	}
	if err := tab.Apply([]storage.Row{Set("a", "1")}, cp); err != nil {
		t.Fatal(err)
	}
	wantCheckpoint(t, tab, cp)
	Apply(t, tab, Set("b", "1"))
	wantCheckpoint(t, tab, cp)
	if err := tab.Apply(nil, &storage.Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	wantCheckpoint(t, tab, &storage.Checkpoint{})
	if got, _, _ := tab.Checkpoint(); !got.AtEnd.IsZero() {
		t.Fatalf("the zero time came back as %v", got.AtEnd)
	}
	equal(t, "rows", Dump(t, tab, storage.Range{}), []string{"a=1", "b=1"})
}

func clearTable(t *testing.T, b storage.Builder) {
	s := Open(t, b)
	tab, other := Table(t, s, "t", 0), Table(t, s, "t", 1)
	Apply(t, other, Set("a", "other"))
	if err := tab.Clear(); err != nil {
		t.Fatalf("clear an empty table: %v", err)
	}
	rows := append(numbered("k", 30_000), Set("", "x"), Set("big", string(make([]byte, 2<<20))), Set(long()[8], "long"))
	if err := tab.Apply(rows, &storage.Checkpoint{Position: 1}); err != nil {
		t.Fatal(err)
	}
	if err := tab.Clear(); err != nil {
		t.Fatal(err)
	}
	wantCheckpoint(t, tab, nil)
	wantAbsent(t, tab, "k000001")
	wantAbsent(t, tab, "big")
	equal(t, "rows", Dump(t, tab, storage.Range{}), nil)
	equal(t, "other rows", Dump(t, other, storage.Range{}), []string{"a=other"})
	Apply(t, tab, Set("k000001", "again"), Set("big", "small"))
	equal(t, "rows", Dump(t, tab, storage.Range{}), []string{"big=small", "k000001=again"})
}

func oneHolder(t *testing.T, b storage.Builder) {
	s1, s2 := Open(t, b), Open(t, b)
	tab := Table(t, s1, "t", 0)
	for _, s := range []storage.Store{s1, s2} {
		_, err := s.Table("t", 0)
		wantError(t, "second holder", err, storage.ErrBusy)
	}
	Table(t, s2, "t", 1)
	Apply(t, tab, Set("a", "1"))
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); err != nil {
		t.Fatalf("close twice: %v", err)
	}
	next := Table(t, s2, "t", 0)
	wantError(t, "apply of the former holder", tab.Apply([]storage.Row{Set("a", "2")}, nil), storage.ErrClosed)
	wantGet(t, next, "a", "1")
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s1.Table("t", 0)
	wantError(t, "closing again frees nothing", err, storage.ErrBusy)
}

func tablesAreApart(t *testing.T, b storage.Builder) {
	s := Open(t, b)
	ids := []storage.TableID{{Name: "", Partition: 0}, {Name: "t", Partition: 0}, {Name: "t", Partition: 1},
		{Name: "t", Partition: 255}, {Name: "t", Partition: 256}, {Name: "t", Partition: 1<<31 - 1}, {Name: "t\x00", Partition: 0}, {Name: "u", Partition: 0}}
	for _, id := range ids {
		Apply(t, Table(t, s, id.Name, id.Partition), Set("", id.String()), Set("k", "v"))
	}
	for _, id := range ids {
		s2 := Open(t, b)
		_, err := s2.Table(id.Name, id.Partition)
		wantError(t, id.String(), err, storage.ErrBusy)
	}
	got, err := s.Tables()
	if err != nil || len(got) != len(ids) {
		t.Fatalf("tables: %v, %v", got, err)
	}
	for i, id := range ids {
		if got[i] != id {
			t.Fatalf("tables: %v, want %v", got, ids)
		}
	}
}

func tablesThatExist(t *testing.T, b storage.Builder) {
	s := Open(t, b)
	if got, err := s.Tables(); err != nil || len(got) != 0 {
		t.Fatalf("tables of an empty store: %v, %v", got, err)
	}
	tab, cp := Table(t, s, "b", 2), Table(t, s, "a", 1)
	Table(t, s, "never written", 1)
	Apply(t, tab, Set("a", "1"))
	if err := cp.Apply(nil, &storage.Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Tables()
	if err != nil || len(got) != 2 || got[0].String() != "a/1" || got[1].String() != "b/2" {
		t.Fatalf("tables: %v, %v", got, err)
	}
	if err := tab.Clear(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Tables(); err != nil || len(got) != 1 || got[0].String() != "a/1" {
		t.Fatalf("tables after clear: %v, %v", got, err)
	}
}

func numbers(t *testing.T, b storage.Builder) {
	names := []string{"a", "b", "", "a\x00", "!badger!"}
	first := map[string]uint32{}
	for round := range 3 {
		s, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[uint32]bool{}
		for _, name := range names {
			n, err := s.Number(name)
			if err != nil || n == 0 || seen[n] {
				t.Fatalf("number of %q: %d, %v", name, n, err)
			}
			seen[n] = true
			if round > 0 && n != first[name] && first[name] != 0 {
				t.Fatalf("number of %q was %d and is %d", name, first[name], n)
			}
			first[name] = n
		}
		names = append([]string{"new" + string(rune('0'+round))}, names...)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func usersAreCounted(t *testing.T, b storage.Builder) {
	s1, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	s2 := Open(t, b)
	if s1.ProcessID() == "" || s1.ProcessID() != s2.ProcessID() {
		t.Fatalf("process ids %q and %q", s1.ProcessID(), s2.ProcessID())
	}
	t1, t2 := Table(t, s1, "t", 0), Table(t, s2, "t", 1)
	for range 2 {
		if err := s1.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, "apply", t1.Apply([]storage.Row{Set("a", "1")}, nil), storage.ErrClosed)
	Apply(t, t2, Set("a", "1"))
	Table(t, s2, "t", 0)
}

func closed(t *testing.T, b storage.Builder) {
	s, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	tab := Table(t, s, "t", 0)
	byStore := Table(t, s, "t", 1)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(what string, tab storage.Table) {
		t.Helper()
		_, _, err := tab.Get(nil, []byte("a"))
		wantError(t, what+": get", err, storage.ErrClosed)
		wantError(t, what+": apply", tab.Apply(nil, nil), storage.ErrClosed)
		wantError(t, what+": apply", tab.Apply([]storage.Row{Set("a", "1")}, &storage.Checkpoint{}), storage.ErrClosed)
		_, _, err = tab.Checkpoint()
		wantError(t, what+": checkpoint", err, storage.ErrClosed)
		_, err = tab.Snapshot()
		wantError(t, what+": snapshot", err, storage.ErrClosed)
		wantError(t, what+": clear", tab.Clear(), storage.ErrClosed)
	}
	check("closed table", tab)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check("table of a closed store", byStore)
	_, err = s.Table("t", 0)
	wantError(t, "table", err, storage.ErrClosed)
	_, err = s.Tables()
	wantError(t, "tables", err, storage.ErrClosed)
	_, err = s.Number("t")
	wantError(t, "number", err, storage.ErrClosed)
}

func survivesClose(t *testing.T, b storage.Builder) {
	id := ""
	for i := range 4 {
		s, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		if id != "" && s.ProcessID() != id {
			t.Fatalf("process id %q became %q", id, s.ProcessID())
		}
		id = s.ProcessID()
		tab := Table(t, s, "t", 0)
		if i > 0 {
			wantCheckpoint(t, tab, &storage.Checkpoint{Position: int64(i), Owner: []byte("o")})
			wantGet(t, tab, "key", string(rune('0'+i)))
			if got := len(Dump(t, tab, storage.Range{})); got != 5001 {
				t.Fatalf("%d rows", got)
			}
		}
		rows := append(numbered("k", 5000), Set("key", string(rune('1'+i))))
		if err := tab.Apply(rows, &storage.Checkpoint{Position: int64(i + 1), Owner: []byte("o")}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
