package replica

import (
	"errors"
	"sync"
	"time"

	"github.com/rekastream/reka/storage"
)

// Bounds of one write of a flush to the store.
const (
	flushRows  = 16 << 10
	flushBytes = 4 << 20
)

// Flush is the writing of committed rows to the store.
type Flush struct {
	// Fixed after BeginFlush, but for fold.vers, which belongs to the owner.
	store storage.Table
	fold  *fold
	epoch func() int32
	cp    storage.Checkpoint // but for its epoch, which Run may fill in

	failed bool // owner's: to be repeated

	mu        sync.Mutex // held while it runs
	cancelled bool       // guarded by mu
}

// Bytes is what the flush holds in memory until it has succeeded.
func (f *Flush) Bytes() int { return f.fold.bytes() }

// Run writes the rows and then the checkpoint, and returns when both are
// durable. It is called once for each BeginFlush, on any goroutine.
func (f *Flush) Run() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancelled {
		return nil
	}
	chunk := make([]storage.Row, 0, min(flushRows, f.fold.len()))
	size := 0
	for i := range f.fold.rows {
		r := f.fold.stored(i)
		chunk = append(chunk, r)
		size += len(r.Key) + len(r.Value)
		if len(chunk) == flushRows || size >= flushBytes {
			if err := f.store.Apply(chunk, nil); err != nil {
				return err
			}
			chunk, size = chunk[:0], 0
		}
	}
	if f.cp.LeaderEpoch < 0 && f.epoch != nil {
		// Asked behind the records: none of them is of a later epoch.
		f.cp.LeaderEpoch = f.epoch()
	}
	return f.store.Apply(chunk, &f.cp)
}

// FlushDue reports whether committed rows have become many or old enough for
// a flush, and none is under way.
func (t *Table) FlushDue(now time.Time) bool {
	switch {
	case t.flush != nil:
		return t.flush.failed
	case t.cur.bytes() >= t.cfg.FlushBytes:
		return true
	case t.cur.len() == 0 && !t.cpMoved:
		t.since, t.spare = time.Time{}, nil // at rest
		return false
	case t.since.IsZero():
		t.since = now
		return false
	case t.cur.len() == 0:
		return now.Sub(t.since) >= 10*t.cfg.FlushAge
	}
	return now.Sub(t.since) >= t.cfg.FlushAge
}

// Unflushed is what committed rows take in memory that are not durable yet,
// in bytes.
func (t *Table) Unflushed() int {
	n := t.cur.bytes()
	if t.flush != nil {
		n += t.flush.Bytes()
	}
	return n
}

// Full reports that so much waits to be flushed that the owner should take
// nothing more in until the flush under way has ended.
func (t *Table) Full() bool { return t.Unflushed() >= 2*t.cfg.FlushBytes }

// BeginFlush takes the committed rows and the position behind them. It
// returns nil if there is nothing to write or a flush is under way. The
// owner has Run called, on any goroutine, and reports its result to EndFlush.
// After a flush that failed it returns the same rows again.
func (t *Table) BeginFlush() *Flush {
	switch {
	case t.flush != nil && !t.flush.failed:
		return nil
	case t.flush != nil:
		t.flush.failed = false
		return t.flush
	case t.cur.len() == 0 && !t.cpMoved:
		return nil
	}
	t.flush = &Flush{store: t.store, fold: t.cur, cp: t.cp, epoch: t.cfg.Epoch}
	t.cur, t.spare = t.spare, nil
	if t.cur == nil {
		t.cur = &fold{}
	}
	t.cpMoved, t.since = false, time.Time{}
	return t.flush
}

// EndFlush ends the flush with the result of its Run. On success its rows
// become ordinary cached ones; otherwise they wait for the next BeginFlush.
// A flush of before a Clear is ignored.
func (t *Table) EndFlush(f *Flush, err error) {
	if f == nil || f != t.flush {
		return
	}
	if err != nil {
		f.failed = true
		return
	}
	t.flush = nil
	t.flushes++
	if f.fold.len() == 0 {
		return
	}
	defer t.recycle(f.fold)
	t.epoch++
	t.rows.Clean(f.fold.vers)
	if !t.scanned {
		t.idx = nil
	}
	if t.idx != nil {
		t.idx = t.idx.dropThrough(f.fold.seq)
	}
	t.scanned = false
}

// recycle keeps the memory of a fold for the next flush if that is likely to
// need it.
func (t *Table) recycle(f *fold) {
	if f.bytes() >= t.cfg.FlushBytes/2 && cap(f.data) <= 4*t.cfg.FlushBytes {
		t.spare = f.reset()
	}
}

// FlushNow writes everything committed, here and now. It must not be called
// while a flush is under way.
func (t *Table) FlushNow() error {
	for {
		f := t.BeginFlush()
		if f == nil {
			if t.flush != nil {
				return errors.New("replica: a flush is under way")
			}
			return nil
		}
		err := f.Run()
		t.EndFlush(f, err)
		if err != nil {
			return err
		}
	}
}

// dropFlush ends what was begun: it waits for its Run, or prevents it.
func (t *Table) dropFlush() {
	if t.flush == nil {
		return
	}
	t.flush.mu.Lock()
	t.flush.cancelled = true
	t.flush.mu.Unlock()
	t.flush = nil
}
