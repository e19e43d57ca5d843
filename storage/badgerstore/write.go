package badgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"

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

	clearRows  = 8 << 10
	clearBytes = 4 * mib
)

func (t *table) Apply(rows []storage.Row, cp *storage.Checkpoint) error {
	t.write.Lock()
	defer t.write.Unlock()
	for {
		n := window(rows)
		if err := t.applyWindow(rows[:n]); err != nil {
			return t.failed(err)
		}
		if rows = rows[n:]; len(rows) == 0 {
			break
		}
	}
	return t.failed(t.putCheckpoint(cp))
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
// fastest; of rows with the same key the last one.
func (t *table) applyWindow(rows []storage.Row) error {
	if t.closed.Load() {
		return storage.ErrClosed
	}
	if t.stale {
		if err := t.loadBig(); err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return nil
	}
	err := t.db.do(func() error {
		return t.db.write(t, func(w *writer) error { return t.putAll(w, rows) })
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

// putCheckpoint writes a checkpoint behind rows that are durable.
func (t *table) putCheckpoint(cp *storage.Checkpoint) error {
	if cp == nil {
		return nil
	}
	if t.closed.Load() {
		return storage.ErrClosed
	}
	b, err := cp.AppendBinary(nil)
	if err != nil {
		return err
	}
	if len(b) > chunkSize {
		return fmt.Errorf("checkpoint of %d bytes is too large", len(b))
	}
	if err := t.db.putOne(t, t.place.key(nil, kindCheckpoint, nil), b); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cp = &storage.Checkpoint{}
	return t.cp.UnmarshalBinary(b)
}

func (t *table) Clear() error {
	t.write.Lock()
	defer t.write.Unlock()
	if t.closed.Load() {
		return t.failed(storage.ErrClosed)
	}
	if err := t.db.putOne(t, t.place.key(nil, kindCheckpoint, nil), nil); err != nil {
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
	return next, t.db.write(t, func(w *writer) error {
		for _, key := range found {
			if err := w.delete(key); err != nil {
				return err
			}
		}
		return nil
	})
}

// putOne writes one key, a nil value to delete it, in a batch of its own.
func (d *db) putOne(t *table, key, value []byte) error {
	return d.do(func() error {
		if err := d.space.check(int64(len(key) + len(value))); err != nil {
			return err
		}
		version := d.vers.begin(t)
		defer d.vers.end(t, version)
		txn := d.badger.NewTransactionAt(version, true)
		defer txn.Discard()
		var err error
		if value == nil {
			err = txn.Delete(key)
		} else {
			err = txn.Set(key, value)
		}
		if err == nil {
			err = txn.CommitAt(version, nil)
		}
		return writeError(err)
	})
}

// write runs f with a writer, all of whose rows are durable when it returns.
func (d *db) write(t *table, f func(*writer) error) error {
	if err := d.space.check(0); err != nil {
		return err
	}
	w := &writer{d: d, version: d.vers.begin(t)}
	defer d.vers.end(t, w.version)
	err := f(w)
	// Also after an error: Badger may still read what it was given.
	return errors.Join(err, w.flush())
}

// writer writes rows in order, many to a request. Badger's loader is used
// because it keeps the order, which its transactions do not; each row stands
// for itself, and a crash leaves a first part of them.
type writer struct {
	d       *db
	version uint64
	seq     uint32 // of the next big value
	key     []byte // buffer

	load *badger.KVLoader // nil: nothing since the last flush
	kv   pb.KV
	size int64 // bytes since the last look at the free space
}

var (
	metaDelete = []byte{1} // Badger's mark of a delete
	metaUser   = [4][]byte{nil, {1}, {2}, {3}}
)

// set writes a row. Key is free when it returns, value when flush does.
func (w *writer) set(key, value []byte, user byte) error {
	w.kv.Value, w.kv.Meta, w.kv.UserMeta = value, nil, metaUser[user]
	return w.add(key)
}

func (w *writer) delete(key []byte) error {
	w.kv.Value, w.kv.Meta, w.kv.UserMeta = nil, metaDelete, nil
	return w.add(key)
}

func (w *writer) add(key []byte) error {
	if w.size += int64(len(key) + len(w.kv.Value) + 64); w.size > spaceStep {
		if err := w.d.space.check(w.size); err != nil {
			return err
		}
		w.size = 0
	}
	if w.load == nil {
		w.load = w.d.badger.NewKVLoader(requests)
	}
	w.kv.Key, w.kv.Version = key, w.version
	return writeError(w.load.Set(&w.kv))
}

// flush waits until all rows are durable.
func (w *writer) flush() error {
	if w.load == nil {
		return nil
	}
	l := w.load
	w.load = nil
	return writeError(l.Finish())
}
