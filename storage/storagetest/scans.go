package storagetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/rekastream/reka/storage"
)

func backwards(s []string) []string {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

func scan(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	Apply(t, tab, Set("b", "2"), Set("d", "4"), Set("a", "1"), Set("c", "3"), Set("ca", "3a"))
	for _, test := range []struct {
		from, to string
		want     []string
	}{
		{"", "", []string{"a=1", "b=2", "c=3", "ca=3a", "d=4"}},
		{"b", "", []string{"b=2", "c=3", "ca=3a", "d=4"}},
		{"b", "d", []string{"b=2", "c=3", "ca=3a"}},
		{"bb", "c", nil},
		{"bb", "cb", []string{"c=3", "ca=3a"}},
		{"", "b", []string{"a=1"}},
		{"c", "c", nil},
		{"d", "a", nil},
		{"e", "", nil},
	} {
		var r storage.Range
		if test.from != "" {
			r.From = []byte(test.from)
		}
		if test.to != "" {
			r.To = []byte(test.to)
		}
		equal(t, test.from+".."+test.to, Dump(t, tab, r), test.want)
		r.Reverse = true
		equal(t, test.to+".."+test.from, Dump(t, tab, r), backwards(test.want))
	}
	equal(t, "nothing below empty", Dump(t, tab, storage.Range{To: []byte{}}), nil)

	s, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	seq := s.Scan(storage.Range{})
	for range 2 {
		for row := range seq {
			if string(row.Key) != "a" {
				t.Fatalf("a scan used again starts again: %q", row.Key)
			}
			break
		}
	}
	var outer int
	for range seq {
		outer += len(list(t, s.Scan(storage.Range{Reverse: true})))
	}
	if outer != 25 {
		t.Fatalf("scans inside a scan: %d rows", outer)
	}
}

func scanAfterFF(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	Apply(t, tab, Set("\xfe", "0"), Set("\xff", "1"), Set("\xff\xff", "2"), Set("\xff\xffa", "3"))
	equal(t, "ff", Dump(t, tab, storage.Prefix([]byte("\xff"))), []string{"\xff=1", "\xff\xff=2", "\xff\xffa=3"})
	r := storage.Prefix([]byte("\xff\xff"))
	r.Reverse = true
	equal(t, "ffff", Dump(t, tab, r), []string{"\xff\xffa=3", "\xff\xff=2"})
}

func snapshotStandsStill(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	big := string(make([]byte, 1<<20))
	Apply(t, tab, Set("a", "1"), Set("b", big), Set("c", "1"))
	s, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	for i := range 20 {
		Apply(t, tab, Set("a", fmt.Sprint("new", i)), Set("b", big+fmt.Sprint(i)), Del("c"), Set("d", "1"))
	}
	if got := list(t, s.Scan(storage.Range{})); len(got) != 3 || string(got[0].Value) != "1" || len(got[1].Value) != 1<<20 {
		t.Fatalf("snapshot moved: %d rows, %.20q", len(got), got)
	}
	if v, ok, err := s.Get(nil, []byte("c")); err != nil || !ok || string(v) != "1" {
		t.Fatalf("get in snapshot: %q %v %v", v, ok, err)
	}
	if _, ok, err := s.Get(nil, []byte("d")); err != nil || ok {
		t.Fatalf("get of a later row in snapshot: %v %v", ok, err)
	}
	wantGet(t, tab, "a", "new19")
	if err := tab.Clear(); err != nil {
		t.Fatal(err)
	}
	if got := list(t, s.Scan(storage.Range{Reverse: true})); len(got) != 3 {
		t.Fatalf("snapshot after clear: %d rows", len(got))
	}
}

func writingWhileIterating(t *testing.T, b storage.Builder) {
	const n = 2000
	tab := Table(t, Open(t, b), "t", 0)
	Apply(t, tab, numbered("k", n)...)
	s, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	i := 0
	for row, err := range s.Scan(storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("k%06d", i); string(row.Key) != want || string(row.Value) != fmt.Sprint(i) {
			t.Fatalf("row %d: %q=%q", i, row.Key, row.Value)
		}
		if i%50 == 0 {
			Apply(t, tab, Del(fmt.Sprintf("k%06d", n-1-i)), Set(fmt.Sprintf("k%06d", i+1), "changed"), Set(fmt.Sprint("l", i), "new"))
		}
		i++
	}
	if i != n {
		t.Fatalf("scan saw %d rows of %d", i, n)
	}
}

func snapshotEnds(t *testing.T, b storage.Builder) {
	s, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	tab := Table(t, s, "t", 0)
	Apply(t, tab, numbered("k", 100)...)
	snap, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range snap.Scan(storage.Range{}) {
		if n++; n == 10 {
			snap.Release()
			snap.Release()
		}
		if err != nil && n <= 10 {
			t.Fatal(err)
		}
		if n > 10 && err == nil && n > 100 {
			t.Fatal("scan without end")
		}
	}
	_, _, err = snap.Get(nil, []byte("k000001"))
	wantError(t, "get after release", err, storage.ErrClosed)
	for _, err := range snap.Scan(storage.Range{}) {
		wantError(t, "scan after release", err, storage.ErrClosed)
	}

	forgotten, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for range forgotten.Scan(storage.Range{}) {
		if err := s.Close(); err != nil {
			t.Fatalf("close in an open scan: %v", err)
		}
		break
	}
	forgotten.Release()
}

// manyReaders reads rows whose two halves always agree while they change.
func manyReaders(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	write := func(i int) {
		Apply(t, tab, Set("a", fmt.Sprint(i)), Set("b", fmt.Sprint(i)))
	}
	write(0)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for range 4 {
		// Ends with stop; the test waits.
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, ok := get(t, tab, "a"); !ok {
					t.Error("a row that is only overwritten was absent")
					return
				}
				if rows := Dump(t, tab, storage.Range{}); len(rows) != 2 || rows[0][2:] != rows[1][2:] {
					t.Errorf("snapshot in the middle of a write: %q", rows)
					return
				}
			}
		})
	}
	for i := range 300 {
		write(i)
	}
}
