package badgerstore

import (
	"errors"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"

	"github.com/rekastream/reka/storage"
)

// snapshot reads a table at one version, which it keeps readable until it is
// released or the store is closed.
type snapshot struct {
	t   *table
	at  uint64
	txn *badger.Txn

	// Used by the owner inside db.enter, and by db.close.
	scans map[*cursor]bool
	ended bool
}

// newSnapshot needs the caller inside db.enter.
func newSnapshot(t *table) *snapshot {
	at := t.db.vers.pin(t)
	s := &snapshot{t: t, at: at, txn: t.db.badger.NewTransactionAt(at, false), scans: map[*cursor]bool{}}
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	t.db.snaps[s] = true
	return s
}

// do runs f if the snapshot can still be read.
func (s *snapshot) do(f func() error) error {
	return s.t.failed(s.t.db.do(func() error {
		if s.ended {
			return storage.ErrClosed
		}
		return f()
	}))
}

func (s *snapshot) Get(dst, key []byte) (out []byte, found bool, err error) {
	err = s.do(func() error {
		if len(key) > maxKey {
			var v []byte
			_, v, found, err = s.t.findLong(s.txn, key)
			dst = append(dst, v...)
			return err
		}
		item, err := s.txn.Get(s.t.place.key(nil, kindRow, key))
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
		}
		found = true
		dst, err = s.t.place.body(s.txn, dst, item)
		return err
	})
	return dst, found && err == nil, err
}

func (s *snapshot) Scan(r storage.Range) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		c := &cursor{s: s, r: r, value: []byte{}}
		defer c.close()
		for {
			row, ok, err := c.next()
			if err != nil {
				yield(storage.Row{}, err)
				return
			}
			if !ok || !yield(row, nil) {
				return
			}
		}
	}
}

func (s *snapshot) Release() {
	d := s.t.db
	d.gate.RLock()
	defer d.gate.RUnlock()
	if s.ended {
		return
	}
	s.end()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.snaps, s)
}

// end gives back all that the snapshot holds in Badger. db.gate is held.
func (s *snapshot) end() {
	if s.ended {
		return
	}
	s.ended = true
	for c := range s.scans {
		c.it.Close()
	}
	s.txn.Discard()
	s.t.db.vers.unpin(s.at)
}
