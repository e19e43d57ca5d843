package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/rekastream/reka/storage"
)

func newTestTable(t testing.TB, cfg TableConfig) *Table {
	t.Helper()
	s, err := storage.Memory().Open()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Store, err = s.Table("t", 0); err != nil {
		t.Fatal(err)
	}
	tab, err := NewTable(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func at(position int64) storage.Checkpoint { return storage.Checkpoint{Position: position} }

func TestReadAndWriteOfAKnownRowAllocateNothing(t *testing.T) {
	tab := newTestTable(t, TableConfig{})
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%06d", i)
		tab.Set(keys[i], make([]byte, 8), 1)
	}
	tab.Commit(tab.Seal(), at(1))
	value := make([]byte, 8)
	i := 0
	for range 3000 { // lists of changes have their size
		tab.Set(keys[i%1000], value, 2)
		i++
	}
	tab.Commit(tab.Seal(), at(2))
	if n := testing.AllocsPerRun(900, func() {
		if _, _, ok, _ := tab.Get(keys[i%1000]); !ok {
			t.Fatal("no row")
		}
		tab.Set(keys[i%1000], value, 3)
		i++
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCompleteTableNeverReadsItsStore(t *testing.T) {
	tab := newTestTable(t, TableConfig{})
	for i := range 1000 {
		tab.Set(fmt.Append(nil, i), []byte("v"), 1)
	}
	tab.Commit(tab.Seal(), at(1))
	if err := tab.FlushNow(); err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if _, _, ok, err := tab.Get(fmt.Append(nil, i)); ok != (i < 1000) || err != nil {
			t.Fatal(i, ok, err)
		}
	}
	if s := tab.Stats(); s.StoreReads != 0 || !s.Complete || s.Flushes != 1 || s.UnflushedBytes != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestFlushIsDueByBytesAndByAge(t *testing.T) {
	tab := newTestTable(t, TableConfig{FlushBytes: 1000, FlushAge: time.Minute})
	now := time.Unix(1000, 0)
	due := func(after time.Duration) bool { now = now.Add(after); return tab.FlushDue(now) }
	if due(time.Hour) || tab.BeginFlush() != nil {
		t.Error("due with nothing to write")
	}
	tab.Set([]byte("a"), []byte("1"), 1)
	tab.Commit(tab.Seal(), at(1))
	if due(0) || due(59*time.Second) || !due(time.Second) {
		t.Error("not due at its age")
	}
	f := tab.BeginFlush()
	if due(time.Hour) || tab.BeginFlush() != nil {
		t.Error("due while one is under way")
	}
	tab.EndFlush(f, f.Run())
	if due(0) {
		t.Error("due after it ended")
	}
	tab.Advance(at(2))
	if due(0) || due(9*time.Minute) || !due(time.Minute) {
		t.Error("a moved position is not due at ten times the age")
	}
	for i := range 60 {
		tab.Set(fmt.Append(nil, i), make([]byte, 20), 1)
	}
	tab.Commit(tab.Seal(), at(3))
	if !due(0) || !tab.Full() {
		t.Error("not due by bytes")
	}
}

func TestCheckpointIsNeverAheadOfCommittedRows(t *testing.T) {
	tab := newTestTable(t, TableConfig{})
	tab.Set([]byte("a"), []byte("1"), 1)
	l := tab.Seal()
	tab.Set([]byte("a"), []byte("2"), 2)
	tab.Set([]byte("b"), []byte("2"), 2)
	tab.Commit(l, at(10))
	if err := tab.FlushNow(); err != nil {
		t.Fatal(err)
	}
	v, ok, err := tab.store.Get(nil, []byte("a"))
	value, _ := splitStored(v)
	if string(value) != "1" || !ok || err != nil {
		t.Errorf("the store has %q, %v, %v", value, ok, err)
	}
	if _, ok, _ := tab.store.Get(nil, []byte("b")); ok {
		t.Error("an uncommitted row is in the store")
	}
	if cp, _, _ := tab.store.Checkpoint(); cp.Position != 10 {
		t.Errorf("checkpoint %d", cp.Position)
	}
}

func TestLayerThatWasRolledBackIsNotCommitted(t *testing.T) {
	tab := newTestTable(t, TableConfig{})
	tab.Set([]byte("a"), []byte("1"), 1)
	l := tab.Seal()
	tab.Rollback()
	tab.Commit(l, at(10))
	if _, ok := tab.Committed(); ok {
		t.Error("its position was taken")
	}
	if _, _, ok, _ := tab.Get([]byte("a")); ok {
		t.Error("its row is there")
	}
}

func TestClearWaitsForAFlushAndPreventsTheNext(t *testing.T) {
	tab := newTestTable(t, TableConfig{})
	tab.Set([]byte("a"), []byte("1"), 1)
	tab.Commit(tab.Seal(), at(1))
	f := tab.BeginFlush()
	if err := tab.Clear(); err != nil {
		t.Fatal(err)
	}
	tab.EndFlush(f, f.Run())
	if _, ok, _ := tab.store.Get(nil, []byte("a")); ok {
		t.Error("a flush of before wrote after the clear")
	}
	if _, ok, _ := tab.store.Checkpoint(); ok {
		t.Error("a checkpoint is left")
	}
}

func TestFlushThatFailedIsRepeated(t *testing.T) {
	tab := newTestTable(t, TableConfig{})
	tab.Set([]byte("a"), []byte("1"), 1)
	tab.Commit(tab.Seal(), at(1))
	f := tab.BeginFlush()
	tab.EndFlush(f, errors.New("disk full"))
	tab.Set([]byte("a"), []byte("2"), 1)
	tab.Commit(tab.Seal(), at(2))
	if !tab.FlushDue(time.Unix(1, 0)) || tab.BeginFlush() != f {
		t.Fatal("not the same flush again")
	}
	tab.EndFlush(f, f.Run())
	if cp, _, _ := tab.store.Checkpoint(); cp.Position != 1 {
		t.Errorf("checkpoint %d", cp.Position)
	}
	if v, _, _, _ := tab.Get([]byte("a")); string(v) != "2" {
		t.Errorf("newest value is %q", v)
	}
}

func TestScanOfASmallRangeIsCheapAmongManyUnflushedRows(t *testing.T) {
	tab := newTestTable(t, TableConfig{FlushBytes: 1 << 30})
	for i := range 200_000 {
		tab.Set(fmt.Appendf(nil, "k%07d", i), []byte("v"), 1)
	}
	scan := func(i int) int {
		n := 0
		for range tab.Scan(storage.Prefix(fmt.Appendf(nil, "k%06d", i))) {
			n++
		}
		return n
	}
	scan(0) // sorts them
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		i := rand.IntN(20_000)
		tab.Set(fmt.Appendf(nil, "k%07d", 10*i), []byte("w"), 2)
		if n := scan(i); n != 10 {
			t.Fatalf("%d rows", n)
		}
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / 1000; per > 8<<10 {
		t.Errorf("%d bytes for one write and one scan", per)
	}
}

func BenchmarkTable(b *testing.B) {
	keys := make([][]byte, 100_000)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%08d", i)
	}
	value := make([]byte, 8)
	b.Run("get, set and commit", func(b *testing.B) {
		tab := newTestTable(b, TableConfig{})
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range b.N {
			k := keys[rnd.IntN(len(keys))]
			if _, _, _, err := tab.Get(k); err != nil {
				b.Fatal(err)
			}
			tab.Set(k, value, 1)
			if i%10_000 == 0 {
				tab.Commit(tab.Seal(), at(int64(i)))
			}
		}
	})
	b.Run("set and scan", func(b *testing.B) {
		tab := newTestTable(b, TableConfig{FlushBytes: 1 << 30})
		for _, k := range keys {
			tab.Set(k, value, 1)
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		b.ReportAllocs()
		for b.Loop() {
			k := keys[rnd.IntN(len(keys))]
			tab.Set(k, value, 1)
			for range tab.Scan(storage.Prefix(k[:11])) {
			}
		}
	})
}

// hookedTable calls a hook between the moment of which a Get tells and its
// return.
type hookedTable struct {
	storage.Table
	afterGet func()
}

func (h *hookedTable) Get(dst, key []byte) ([]byte, bool, error) {
	v, ok, err := h.Table.Get(dst, key)
	if f := h.afterGet; f != nil {
		h.afterGet = nil
		f()
	}
	return v, ok, err
}

func TestReadThatAFlushHasOvertakenIsNotRemembered(t *testing.T) {
	tab := newTestTable(t, TableConfig{CacheBytes: 1})
	write := func(value string, position int64) {
		tab.put([]byte("a"), []byte(value), position)
		tab.settle(at(position))
		if err := tab.FlushNow(); err != nil {
			t.Fatal(err)
		}
		for i := range 20_000 { // evicts what is clean
			tab.rows.Fill(fmt.Append(nil, i), make([]byte, 100), 0, false)
		}
	}
	write("old", 1)
	hooked := &hookedTable{Table: tab.store}
	tab.store = hooked
	p := &mirrorPart{rep: New(Config{Table: tab}), usable: true}
	if _, known := tab.find([]byte("a")); known {
		t.Fatal("the row was not evicted: the test tests nothing")
	}
	hooked.afterGet = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		write("new", 2)
	}
	for range 2 {
		if v, _, ok, err := p.get(nil, []byte("a"), false); string(v) != "new" || !ok || err != nil {
			t.Errorf("get = %q, %v, %v", v, ok, err)
		}
	}
}

func TestFlushWritesItsCheckpointLast(t *testing.T) {
	tab := newTestTable(t, TableConfig{FlushBytes: 1 << 30})
	rec := &recordingTable{Table: tab.store}
	tab.store = rec
	for i := range 3*flushRows + 1 {
		tab.Set(fmt.Append(nil, i), []byte("v"), 1)
	}
	tab.Commit(tab.Seal(), at(7))
	if err := tab.FlushNow(); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for i, w := range rec.writes {
		rows += w.rows
		if last := i == len(rec.writes)-1; w.checkpoint != last {
			t.Errorf("write %d of %d has a checkpoint: %v", i+1, len(rec.writes), w.checkpoint)
		}
	}
	if rows != 3*flushRows+1 || len(rec.writes) < 4 {
		t.Errorf("%d rows in %d writes", rows, len(rec.writes))
	}
}

type recordingTable struct {
	storage.Table
	writes []recordedWrite
}

type recordedWrite struct {
	rows       int
	checkpoint bool
}

func (r *recordingTable) Apply(rows []storage.Row, cp *storage.Checkpoint) error {
	r.writes = append(r.writes, recordedWrite{len(rows), cp != nil})
	return r.Table.Apply(rows, cp)
}
