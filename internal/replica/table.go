package replica

import (
	"time"

	"github.com/rekastream/reka/internal/rows"
	"github.com/rekastream/reka/storage"
)

// Row is one row of a table. Time is the timestamp of the record that wrote
// it, in milliseconds. Where deletes appear, a nil Value is one.
type Row struct {
	Key, Value []byte
	Time       int64
}

// TableConfig describes a Table. Only Store is required.
type TableConfig struct {
	// Store holds the rows. The Table owns it from now on and closes it.
	Store storage.Table

	// CacheBytes bounds the rows in memory that are in the store too. Rows
	// that are not come on top, see FlushBytes. Default 64 MiB.
	CacheBytes int

	// FlushBytes is how much may be committed before a flush is due. Twice
	// as much may gather before Full reports true. Default 16 MiB.
	FlushBytes int

	// FlushAge is how old a committed row may get before a flush is due. A
	// position that moved without rows may get ten times as old. Default
	// 30 s.
	FlushAge time.Duration

	// Epoch, if set, is asked by a flush for the newest leader epoch of the
	// log, where the checkpoint to be written tells none; -1: unknown. It is
	// called on the goroutine that runs the flush and may block for a little
	// while.
	Epoch func() int32
}

func (c TableConfig) withDefaults() TableConfig {
	if c.CacheBytes <= 0 {
		c.CacheBytes = 64 << 20
	}
	if c.FlushBytes <= 0 {
		c.FlushBytes = 16 << 20
	}
	if c.FlushAge <= 0 {
		c.FlushAge = 30 * time.Second
	}
	return c
}

// Table is one partition of a table as its owner goroutine holds it. All
// methods but Flush.Run belong to that goroutine.
type Table struct {
	// Fixed after NewTable.
	cfg   TableConfig
	store storage.Table

	// Owned by the owner goroutine.
	rows    *rows.Table // newest row of every key that is not in the store, and a cache of the others
	layers  []*Layer    // sealed, not committed, oldest first
	next    uint64      // seq of the active layer
	cur     *fold       // committed, taken by no flush
	spare   *fold       // empty, for the next cur, while much is written; or nil
	flush   *Flush      // under way, or failed and to be repeated
	cp      storage.Checkpoint
	hasCP   bool
	cpMoved bool      // since the last BeginFlush
	since   time.Time // when FlushDue first saw what waits now; zero: nothing
	epoch   uint64    // counts what makes an answer of the store out of date
	litter  bool      // the store has rows and no checkpoint
	idx     *index    // rows not in the store, in order; nil: no scans lately
	scanned bool      // since the last flush
	buf     []byte    // of the last Get
	reads   int64
	flushes int64
	closed  bool
}

// NewTable returns a Table over cfg.Store as it is: whether to trust its
// checkpoint is for the caller to decide (see Replica). It reads a little.
func NewTable(cfg TableConfig) (*Table, error) {
	cfg = cfg.withDefaults()
	t := &Table{cfg: cfg, store: cfg.Store, rows: rows.New(cfg.CacheBytes), next: 1, cur: &fold{}}
	var err error
	if t.cp, t.hasCP, err = t.store.Checkpoint(); err != nil {
		return nil, err
	}
	empty, err := isEmpty(t.store)
	if err != nil {
		return nil, err
	}
	if empty {
		t.rows.SetComplete()
	}
	t.litter = !empty && !t.hasCP
	return t, nil
}

func isEmpty(s storage.Table) (bool, error) {
	snap, err := s.Snapshot()
	if err != nil {
		return false, err
	}
	defer snap.Release()
	for _, err := range snap.Scan(storage.Range{}) {
		return false, err
	}
	return true, nil
}

// Get returns the newest value of a key, uncommitted changes included, and
// the time of its row. The value is valid until the next call of any method
// and must not be changed. The store is not asked for a row that is in memory
// or known to be absent.
func (t *Table) Get(key []byte) (value []byte, time int64, ok bool, err error) {
	if e, known := t.find(key); known {
		return e.Value, e.Time, !e.Absent, nil
	}
	t.buf, ok, err = t.store.Get(t.buf[:0], key)
	if err != nil {
		return nil, 0, false, err
	}
	t.reads++
	if !ok {
		t.rows.Fill(key, nil, 0, true)
		return nil, 0, false, nil
	}
	value, time = splitStored(t.buf)
	t.rows.Fill(key, value, time, false)
	return value, time, true, nil
}

// Prefetch has the processor load what Get will read for each of the keys, so
// that the loads of several overlap. It changes nothing that can be observed.
func (t *Table) Prefetch(keys [][]byte) { t.rows.Prefetch(keys) }

// find returns what is known without the store.
func (t *Table) find(key []byte) (e rows.Entry, known bool) {
	e, known = t.rows.Find(key)
	if !known && t.rows.Complete() {
		return rows.Entry{Absent: true}, true
	}
	return e, known
}

// Set changes a row; a nil value deletes it. Key and value are copied. It
// reports whether there was a row, as far as that is known without the store:
// false may also mean that it is not known.
func (t *Table) Set(key, value []byte, time int64) (had bool) {
	had = t.rows.Set(key, value, time)
	if t.idx != nil {
		t.idx.set(key, value, time, t.next)
	}
	return had
}

// Changed is the number of rows that changed since the last Seal.
func (t *Table) Changed() int { return t.rows.Changed() }

// ChangedBytes is what these rows take, keys and values.
func (t *Table) ChangedBytes() int { return t.rows.ChangedBytes() }

// Seal returns the last value of every row that changed since the last Seal,
// in order of first change, and begins the next layer. It returns nil if
// nothing changed.
func (t *Table) Seal() *Layer {
	if t.rows.Changed() == 0 {
		return nil
	}
	l := newLayer(t.rows.Changed(), t.rows.ChangedBytes())
	l.version = t.rows.Seal(l.add)
	l.seq = t.next
	t.next++
	t.layers = append(t.layers, l)
	return l
}

// Commit makes a layer, and those sealed before it, committed: from now on
// they may be flushed. cp is the position after it, and must be truthful:
// everything below cp.Position is in the table. cp.Owner is kept and must not
// be changed. A nil layer only moves the position. A layer that was rolled
// back or cleared away is ignored, and its position with it.
func (t *Table) Commit(l *Layer, cp storage.Checkpoint) {
	if l != nil && !t.fold(l) {
		return
	}
	t.moveTo(cp)
}

// Advance moves the committed position where no rows changed.
func (t *Table) Advance(cp storage.Checkpoint) { t.moveTo(cp) }

func (t *Table) fold(l *Layer) bool {
	n := 0
	for n < len(t.layers) && t.layers[n] != l {
		n++
	}
	if n == len(t.layers) {
		return false
	}
	for _, l := range t.layers[:n+1] {
		for i := range l.rows {
			r := l.Row(i)
			t.cur.set(r.Key, r.Value, r.Time)
		}
		t.cur.seq, t.cur.vers = l.seq, l.version
	}
	rest := copy(t.layers, t.layers[n+1:])
	clear(t.layers[rest:])
	t.layers = t.layers[:rest]
	return true
}

func (t *Table) moveTo(cp storage.Checkpoint) { t.cp, t.hasCP, t.cpMoved = cp, true, true }

// put changes a row that is committed already: that of a log that is only
// followed. There must be no active rows and no layers. The puts of a batch
// end with settle.
func (t *Table) put(key, value []byte, time int64) {
	t.Set(key, value, time)
	t.cur.set(key, value, time)
}

// settle ends a run of puts. cp is the position after them.
func (t *Table) settle(cp storage.Checkpoint) {
	if t.rows.Changed() > 0 {
		t.cur.vers = t.rows.Seal(func([]byte, []byte, int64, bool) {})
		t.cur.seq = t.next
		t.next++
	}
	t.moveTo(cp)
}

// Committed returns the position up to which the table is committed: that of
// the last Commit, or else of the store. It reports false if there is none.
func (t *Table) Committed() (storage.Checkpoint, bool) { return t.cp, t.hasCP }

// Rollback forgets everything that is not committed: the active rows and the
// layers that were sealed and not committed. The table is then as it was
// after the last Commit.
func (t *Table) Rollback() {
	if len(t.layers) == 0 && t.rows.Changed() == 0 {
		return
	}
	t.layers = nil
	t.forget()
	again := func(key, value []byte, time int64) { t.rows.Set(key, value, time) }
	if t.flush != nil {
		t.flush.fold.each(again)
	}
	t.cur.each(again)
	v := t.rows.Seal(func([]byte, []byte, int64, bool) {})
	t.cur.vers = v
	if t.flush != nil && t.cur.len() == 0 {
		t.flush.fold.vers = v // else what it covers is cleaned with the next flush
	}
}

// forget drops the cache and the index. Versions and seqs go on.
func (t *Table) forget() {
	t.rows.Forget()
	t.idx = nil
	t.epoch++
}

// Clear deletes all rows, in memory and in the store, and the checkpoint. It
// waits for a flush that runs, and prevents one that was begun and does not
// run yet.
func (t *Table) Clear() error {
	t.dropFlush()
	t.layers, t.cur, t.spare = nil, &fold{}, nil
	t.cp, t.hasCP, t.cpMoved, t.since = storage.Checkpoint{}, false, false, time.Time{}
	t.forget()
	t.litter = true
	if err := t.store.Clear(); err != nil {
		return err
	}
	t.litter = false
	t.rows.SetComplete()
	return nil
}

// Close gives the store back without flushing. It waits for a flush that
// runs. Closing twice does nothing.
func (t *Table) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	t.dropFlush()
	return t.store.Close()
}

// TableStats is a snapshot of what a table costs and did.
type TableStats struct {
	CacheBytes     int   // rows in memory
	UnflushedBytes int   // committed, not durable
	StoreReads     int64 // reads that went to the store
	Flushes        int64 // that succeeded
	Complete       bool  // every row is in memory: no read goes to the store
}

// Stats returns a snapshot.
func (t *Table) Stats() TableStats {
	return TableStats{
		CacheBytes:     t.rows.Bytes(),
		UnflushedBytes: t.Unflushed(),
		StoreReads:     t.reads,
		Flushes:        t.flushes,
		Complete:       t.rows.Complete(),
	}
}
