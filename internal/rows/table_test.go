package rows

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestFindKnowsAbsentEmptyAndUnknown(t *testing.T) {
	table := New(1 << 20)
	table.Set([]byte("empty"), []byte{}, 1)
	table.Set([]byte("deleted"), nil, 2)
	table.Fill([]byte("absent"), nil, 3, true)
	table.Fill([]byte("stored empty"), nil, 4, false)
	table.Set([]byte(""), []byte("of the empty key"), 5)
	tests := []struct {
		key  string
		want Entry
	}{
		{"empty", Entry{Value: []byte{}, Time: 1}},
		{"deleted", Entry{Time: 2, Absent: true}},
		{"absent", Entry{Time: 3, Absent: true}},
		{"stored empty", Entry{Value: []byte{}, Time: 4}},
		{"", Entry{Value: []byte("of the empty key"), Time: 5}},
	}
	for _, tt := range tests {
		e, ok := table.Find([]byte(tt.key))
		if !ok || !bytes.Equal(e.Value, tt.want.Value) || (e.Value == nil) != tt.want.Absent || e.Time != tt.want.Time || e.Absent != tt.want.Absent {
			t.Errorf("%q is %+v, %v, want %+v", tt.key, e, ok, tt.want)
		}
	}
	if e, ok := table.Find([]byte("unknown")); ok {
		t.Errorf("unknown key is %+v", e)
	}
}

func TestFillNeverReplacesWhatIsKnown(t *testing.T) {
	table := New(1 << 20)
	table.Set([]byte("k"), nil, 2)
	table.Fill([]byte("k"), []byte("old"), 1, false)
	if e, _ := table.Find([]byte("k")); !e.Absent || e.Time != 2 {
		t.Errorf("row is %+v", e)
	}
}

func TestSealVisitsLastValuesInOrderOfFirstChange(t *testing.T) {
	table := New(1 << 20)
	table.Fill([]byte("filled"), []byte("x"), 1, false)
	table.Set([]byte("b"), []byte("1"), 1)
	table.Set([]byte("a"), []byte("2"), 2)
	table.Set([]byte("b"), []byte(strings.Repeat("grown", 100)), 3) // moves
	table.Set([]byte("b"), []byte("3"), 4)
	table.Set([]byte("a"), nil, 5)
	if table.Changed() != 2 || table.ChangedBytes() != 3 {
		t.Errorf("changed %d keys of %d bytes", table.Changed(), table.ChangedBytes())
	}
	first, got := sealText(table)
	if want := "b=3@4 a=<deleted>@5 "; got != want {
		t.Errorf("sealed %q, want %q", got, want)
	}
	table.Set([]byte("a"), []byte("6"), 6)
	second, got := sealText(table)
	if want := "a=6@6 "; got != want || second != first+1 {
		t.Errorf("sealed version %d: %q, want %q in %d", second, got, want, first+1)
	}
	third, got := sealText(table)
	if got != "" || third != second+1 {
		t.Errorf("sealed version %d: %q, want nothing", third, got)
	}
}

func TestRowsStayUntilTheirLastVersionIsClean(t *testing.T) {
	const budget = 256 << 10
	table := New(budget)
	table.Set([]byte("k"), []byte("1"), 1)
	table.Set([]byte("gone"), []byte("1"), 1)
	first, _ := sealText(table)
	table.Set([]byte("k"), []byte("2"), 2)
	second, _ := sealText(table)
	table.Set([]byte("current"), []byte("3"), 3)

	table.Clean(first)
	overflow(table, budget)
	if _, ok := table.Find([]byte("gone")); ok {
		t.Error("a clean row outlived the budget")
	}
	if e, _ := table.Find([]byte("k")); string(e.Value) != "2" {
		t.Errorf("unclean row is %+v", e)
	}
	table.Clean(second + 1) // the current version is not sealed and cannot be clean
	overflow(table, budget)
	if e, _ := table.Find([]byte("current")); string(e.Value) != "3" {
		t.Errorf("row of the current version is %+v", e)
	}
	if n := table.UncleanBytes(); n != len("current")+1 {
		t.Errorf("unclean bytes %d", n)
	}
}

func TestUncleanRowsMayExceedTheBudgetAndShrinkAfterwards(t *testing.T) {
	const budget, n = 512 << 10, 50_000
	table := New(budget)
	for i := range n {
		table.Set(fmt.Append(nil, "unclean", i), []byte("12345678"), 1)
	}
	if table.Len() != n || table.Bytes() <= budget {
		t.Fatalf("%d rows in %d bytes", table.Len(), table.Bytes())
	}
	v, _ := sealText(table)
	table.Clean(v)
	for i := range n / 10 {
		table.Fill(fmt.Append(nil, "clean", i), nil, 1, true)
	}
	if got := table.Bytes(); got > budget {
		t.Errorf("%d bytes after all is clean, budget %d", got, budget)
	}
}

func TestRowsInUseOutliveTheOthers(t *testing.T) {
	const budget = 1 << 20
	table := New(budget)
	const hot = 100
	for i := range 200_000 {
		table.Fill(fmt.Append(nil, "cold", i), []byte("12345678"), 1, false)
		key := fmt.Append(nil, "hot", i%hot)
		if _, ok := table.Find(key); !ok {
			if i >= hot {
				t.Fatalf("%s was evicted at %d", key, i)
			}
			table.Fill(key, []byte("12345678"), 1, false)
		}
		if table.Bytes() > budget {
			t.Fatalf("%d bytes, budget %d", table.Bytes(), budget)
		}
	}
	if table.Len() < budget/100 {
		t.Errorf("only %d rows in %d bytes", table.Len(), budget)
	}
}

func TestCompletenessSurvivesGarbageAndDeletesButNotEviction(t *testing.T) {
	const budget = 512 << 10
	table := New(budget)
	table.SetComplete()
	// Rows that grow, and rows that come and go for ever, as windows do.
	for i := range 100_000 {
		table.Set(fmt.Append(nil, "grows", i%100), make([]byte, i/1000), 1)
		table.Set(fmt.Append(nil, "lives", i), []byte("12345678"), 1)
		if i >= 1000 {
			table.Set(fmt.Append(nil, "lives", i-1000), nil, 1)
		}
		if i%500 == 0 {
			v, _ := sealText(table)
			table.Clean(v)
		}
	}
	if !table.Complete() {
		t.Fatal("not complete, although all rows fit")
	}
	if got := table.Bytes(); got > budget {
		t.Errorf("%d bytes, budget %d", got, budget)
	}
	if e, ok := table.Find([]byte("lives99500")); !ok || e.Absent {
		t.Errorf("live row is %+v, %v", e, ok)
	}
	overflow(table, budget)
	if table.Complete() {
		t.Error("complete after eviction")
	}
}

func TestForgetLeavesNothing(t *testing.T) {
	table := New(1 << 20)
	table.SetComplete()
	table.Set([]byte("a"), []byte("1"), 1)
	v, _ := sealText(table)
	table.Set([]byte("b"), []byte("1"), 1)
	table.Forget()
	if table.Len() != 0 || table.Changed() != 0 || table.UncleanBytes() != 0 || table.Complete() {
		t.Errorf("left: %d rows, %d changes, %d bytes, complete %v", table.Len(), table.Changed(), table.UncleanBytes(), table.Complete())
	}
	if _, ok := table.Find([]byte("a")); ok {
		t.Error("row is still known")
	}
	table.Set([]byte("c"), nil, 1)
	if next, got := sealText(table); next != v+1 || got != "c=<deleted>@1 " {
		t.Errorf("sealed version %d: %q", next, got)
	}
}

func TestLargeKeysAndValues(t *testing.T) {
	table := New(64 << 20)
	sizes := []int{100, 511, 513, 5_000, 32 << 10, 128 << 10, 256 << 10, 1 << 20}
	for round := range 3 {
		for i, k := range sizes {
			for j, v := range sizes {
				key := bytes.Repeat([]byte{byte(i), byte(j)}, k)
				table.Set(key, bytes.Repeat([]byte{byte(round)}, v>>round), 1)
				if e, _ := table.Find(key); len(e.Value) != v>>round || e.Value[0] != byte(round) {
					t.Fatalf("key of %d, value of %d bytes: found %d bytes", len(key), v>>round, len(e.Value))
				}
			}
		}
		checkInvariants(t, table)
	}
	if table.Len() != len(sizes)*len(sizes) {
		t.Errorf("%d rows", table.Len())
	}
}

func TestShrunkLargeRowsGiveTheirMemoryBack(t *testing.T) {
	table := New(64 << 20)
	for i := range 20 {
		table.Set(fmt.Append(nil, i), make([]byte, 1<<20), 1)
	}
	for i := range 20 {
		table.Set(fmt.Append(nil, i), nil, 1)
	}
	if got := table.Bytes(); got > 1<<20 {
		t.Errorf("%d bytes for 20 deleted rows", got)
	}
}

// TestMillionRowsFitInto64MiB measures the heap itself, not the table's own
// account of it.
func TestMillionRowsFitInto64MiB(t *testing.T) {
	const n, limit = 1_000_000, 64 << 20
	for _, way := range []string{"filled", "set"} {
		t.Run(way, func(t *testing.T) {
			before := heap()
			table := New(limit)
			table.SetComplete()
			var key [12]byte
			var value [8]byte
			for i := range uint32(n) {
				putKey(&key, i)
				if way == "filled" {
					table.Fill(key[:], value[:], int64(i), false)
					continue
				}
				table.Set(key[:], value[:], int64(i))
				if table.Changed() == 100_000 {
					table.Seal(func(_, _ []byte, _ int64, _ bool) {})
				}
			}
			after := heap()
			used := int(after.HeapAlloc - before.HeapAlloc)
			t.Logf("heap %d bytes in %d objects, by the table's account %d", used, after.HeapObjects-before.HeapObjects, table.Bytes())
			if used > limit {
				t.Errorf("heap of %d bytes, limit %d", used, limit)
			}
			if got := table.Bytes(); got < used*99/100 || got > used*105/100 {
				t.Errorf("the table says %d bytes, the heap %d", got, used)
			}
			if objects := after.HeapObjects - before.HeapObjects; objects > 5_000 {
				t.Errorf("%d objects for the garbage collector", objects)
			}
			if table.Len() != n || !table.Complete() {
				t.Errorf("%d rows, complete %v", table.Len(), table.Complete())
			}
			runtime.KeepAlive(table)
		})
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	const n = 50_000 // enough for Prefetch to work
	table := filled(n, 8<<20)
	var key [12]byte
	value := []byte("12345678")
	ahead := [][]byte{key[:], value}
	i := uint32(0)
	step := func() {
		putKey(&key, i%n)
		table.Prefetch(ahead)
		table.Find(key[:])
		table.Set(key[:], value, 1)
		i++
	}
	visit := func(_, _ []byte, _ int64, _ bool) {}
	round := func() {
		for range 1000 {
			step()
		}
		table.Clean(table.Seal(visit))
	}
	round()
	if got := testing.AllocsPerRun(20, round); got != 0 {
		t.Errorf("%v allocations in 1,000 records", got)
	}
}

// overflow fills the table with clean rows of several times its budget.
func overflow(t *Table, budget int) {
	for i := range 4 * budget / 100 {
		t.Fill(fmt.Append(nil, "overflow", i, t.version), make([]byte, 60), 1, false)
	}
}

func sealText(t *Table) (version uint32, text string) {
	var b strings.Builder
	version = t.Seal(func(key, value []byte, time int64, deleted bool) {
		if deleted {
			value = []byte("<deleted>")
		}
		fmt.Fprintf(&b, "%s=%s@%d ", key, value, time)
	})
	return version, b.String()
}

func heap() runtime.MemStats {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}
