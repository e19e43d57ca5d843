package badgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/rekastream/reka/storage"
)

const (
	// A window is the part of an Apply that is sorted and written with one
	// version, while close waits.
	windowRows  = 1 << 17
	windowBytes = 16 * mib

	// requests is how many of Badger's write requests may be under way for
	// one window: one is written while the next is built.
	requests = 2

	// An Apply, or what is left of one, up to this size is one transaction:
	// whole or not at all, and synced once.
	smallRows  = 1 << 10
	smallBytes = 256 << 10

	clearRows  = 8 << 10
	clearBytes = 4 * mib
)

func (t *table) Apply(rows []storage.Row, cp *storage.Checkpoint) error {
	t.write.Lock()
	defer t.write.Unlock()
	return t.failed(t.apply(rows, cp))
}

func (t *table) apply(rows []storage.Row, cp *storage.Checkpoint) error {
	var mark []byte
	if cp != nil {
		mark, _ = cp.AppendBinary(nil) // never fails
		if len(mark) > chunkSize {
			return fmt.Errorf("checkpoint of %d bytes is too large", len(mark))
		}
	}
	for !small(rows) {
		n := window(rows)
		if err := t.applyWindow(rows[:n], nil, false); err != nil {
			return err
		}
		rows = rows[n:]
	}
	if err := t.applyWindow(rows, mark, true); err != nil || cp == nil {
		return err
	}
	return t.remember(mark)
}

// remember keeps a checkpoint that is on disk.
func (t *table) remember(mark []byte) error {
	c := &storage.Checkpoint{}
	if err := c.UnmarshalBinary(mark); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cp = c
	return nil
}

// small reports whether rows go into one transaction, with the checkpoint.
func small(rows []storage.Row) bool {
	size := 0
	for i, r := range rows {
		size += len(r.Key) + len(r.Value)
		if i == smallRows || size > smallBytes {
			return false
		}
	}
	return true
}

// window returns how many of the rows go into one window.
func window(rows []storage.Row) int {
	size := 0
	for i, r := range rows {
		size += len(r.Key) + len(r.Value)
		if i == windowRows || i > 0 && size > windowBytes {
			return i
		}
	}
	return len(rows)
}

// applyWindow writes rows in the order of their keys, which Badger takes
// fastest; of rows with the same key the last one. The checkpoint, if there is
// one, becomes durable with the rows, which must be small for that.
func (t *table) applyWindow(rows []storage.Row, mark []byte, small bool) error {
	if t.closed.Load() {
		return storage.ErrClosed
	}
	if len(rows) == 0 && mark == nil {
		return nil
	}
	if t.stale {
		if err := t.loadBig(); err != nil {
			return err
		}
	}
	err := t.db.do(func() error {
		return t.db.write(t, small, func(w *writer) error {
			if err := t.putAll(w, rows); err != nil || mark == nil {
				return err
			}
			return w.set(t.place.key(nil, kindCheckpoint, nil), mark, 0)
		})
	})
	t.stale = err != nil
	return err
}

func (t *table) putAll(w *writer, rows []storage.Row) error {
	if slices.IsSortedFunc(rows, strictly) {
		for _, r := range rows {
			if err := t.put(w, r); err != nil {
				return err
			}
		}
		return nil
	}
	order := t.sorted(rows)
	for i, o := range order {
		row := rows[o.index]
		if i+1 < len(order) && order[i+1].head == o.head && bytes.Equal(rows[order[i+1].index].Key, row.Key) {
			continue // overwritten by the next
		}
		if err := t.put(w, row); err != nil {
			return err
		}
	}
	return nil
}

// strictly is bytes.Compare that takes equal keys for unsorted ones.
func strictly(a, b storage.Row) int {
	if c := bytes.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return -1
}

// sortRef stands for a row in sorting. Most comparisons end at the head, the
// first bytes of the key, and need not touch the row.
type sortRef struct {
	head  uint64
	index uint32
}

// sorted returns the rows in the order of keys, equal ones as they came.
func (t *table) sorted(rows []storage.Row) []sortRef {
	t.order = t.order[:0]
	for i, r := range rows {
		var head [8]byte
		copy(head[:], r.Key)
		t.order = append(t.order, sortRef{binary.BigEndian.Uint64(head[:]), uint32(i)})
	}
	slices.SortFunc(t.order, func(a, b sortRef) int {
		if a.head != b.head {
			if a.head < b.head {
				return -1
			}
			return 1
		}
		if c := bytes.Compare(rows[a.index].Key, rows[b.index].Key); c != 0 {
			return c
		}
		return int(a.index) - int(b.index)
	})
	return t.order
}

// put writes one row. A value that it overwrites may be in pieces, which go.
func (t *table) put(w *writer, row storage.Row) error {
	if len(row.Key) > maxKey {
		return t.putLong(w, row)
	}
	w.key = t.place.key(w.key[:0], kindRow, row.Key)
	if row.Value == nil {
		return t.remove(w, w.key)
	}
	return t.store1(w, w.key, row.Value, 0)
}

// store1 writes a row of Badger's, in pieces if it is big.
func (t *table) store1(w *writer, key, body []byte, meta byte) error {
	if len(body) > chunkSize {
		return t.putBig(w, key, body, meta)
	}
	if err := w.set(key, body, meta); err != nil {
		return err
	}
	return t.dropBig(w, key)
}

func (t *table) remove(w *writer, key []byte) error {
	if err := w.delete(key); err != nil {
		return err
	}
	return t.dropBig(w, key)
}

func (t *table) Clear() error {
	t.write.Lock()
	defer t.write.Unlock()
	if t.closed.Load() {
		return t.failed(storage.ErrClosed)
	}
	if err := t.db.do(func() error {
		return t.db.write(t, true, func(w *writer) error { return w.delete(t.place.key(nil, kindCheckpoint, nil)) })
	}); err != nil {
		return t.failed(err)
	}
	t.mu.Lock()
	t.cp = nil
	t.mu.Unlock()
	t.stale = true
	from := t.place.key(nil, kindRow, nil)
	for from != nil {
		if t.closed.Load() {
			return t.failed(storage.ErrClosed)
		}
		err := t.db.do(func() (err error) {
			from, err = t.clearStep(from)
			return err
		})
		if err != nil {
			return t.failed(err)
		}
	}
	return nil
}

// clearStep deletes a number of keys at and behind from, and returns where to
// go on, nil at the end. Rows come first and the list of big values last, so
// that pieces are always listed.
func (t *table) clearStep(from []byte) (next []byte, err error) {
	var found [][]byte
	size := 0
	it := t.db.latest.NewIterator(badger.IteratorOptions{Prefix: t.place[:]})
	for it.Seek(from); it.Valid(); it.Next() {
		key := it.Item().KeyCopy(nil)
		if len(found) == clearRows || size > clearBytes {
			next = key
			break
		}
		found = append(found, key)
		size += len(key)
	}
	it.Close()
	if len(found) == 0 {
		return nil, nil
	}
	return next, t.db.write(t, false, func(w *writer) error {
		for _, key := range found {
			if err := w.delete(key); err != nil {
				return err
			}
		}
		return nil
	})
}

// write runs f with a writer, all of whose rows are durable when it returns.
func (d *db) write(t *table, small bool, f func(*writer) error) error {
	if err := d.space.check(0); err != nil {
		return err
	}
	w := &writer{d: d, small: small, version: d.vers.begin(t)}
	defer d.vers.end(t, w.version)
	if err := f(w); err != nil {
		return errors.Join(err, w.drop())
	}
	return w.flush()
}
