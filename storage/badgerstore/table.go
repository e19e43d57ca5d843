package badgerstore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"

	"github.com/rekastream/reka/storage"
)

// table is the holder of one partition of a table. It holds it while
// db.tables says so.
type table struct {
	// fixed after Table
	id    storage.TableID
	store *store
	db    *db
	place place

	closed  atomic.Bool
	writing uint64 // version of the running write, 0: none; guarded by db.vers.mu

	// write is held by the running Apply or Clear, and by Close at its end.
	write sync.Mutex
	big   map[string]bigValue // values in pieces by row key; guarded by write
	stale bool                // big must be read again; guarded by write
	order []sortRef           // buffer; guarded by write

	mu sync.Mutex
	cp *storage.Checkpoint // what is on disk
}

// load reads the checkpoint and the list of big values.
func (t *table) load() error {
	t.write.Lock()
	defer t.write.Unlock()
	err := t.db.do(func() error {
		item, err := t.db.latest.Get(t.place.key(nil, kindCheckpoint, nil))
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return item.Value(t.remember)
	})
	if err != nil {
		return err
	}
	return t.loadBig()
}

// keys are buffers for row keys.
var keys = sync.Pool{New: func() any { b := make([]byte, 0, 256); return &b }}

func (t *table) Get(dst, key []byte) ([]byte, bool, error) {
	if t.closed.Load() {
		return dst, false, t.failed(storage.ErrClosed)
	}
	if err := t.db.enter(); err != nil {
		return dst, false, t.failed(err)
	}
	out, found, err := t.get(dst, key)
	t.db.leave()
	if errors.Is(err, errMoved) {
		return t.getStill(dst, key)
	}
	if err != nil {
		err = t.failed(t.db.do(func() error { return err }))
	}
	return out, found, err
}

// get reads the newest value. It answers errMoved if that takes more than one
// read, between which it may change.
func (t *table) get(dst, key []byte) (out []byte, found bool, err error) {
	if len(key) > maxKey {
		return dst, false, errMoved
	}
	err = t.db.safely(func() error {
		buf := keys.Get().(*[]byte)
		defer keys.Put(buf)
		*buf = t.place.key((*buf)[:0], kindRow, key)
		item, err := t.db.latest.Get(*buf)
		switch {
		case errors.Is(err, badger.ErrKeyNotFound):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
		case item.UserMeta() != 0:
			return errMoved
		}
		found = true
		dst, err = appendValue(dst, item)
		return err
	})
	return dst, found, err
}

// getStill reads a value that takes several reads.
func (t *table) getStill(dst, key []byte) ([]byte, bool, error) {
	s, err := t.Snapshot()
	if err != nil {
		return dst, false, err
	}
	defer s.Release()
	return s.Get(dst, key)
}

var errMoved = errors.New("value takes several reads")

func (t *table) Checkpoint() (storage.Checkpoint, bool, error) {
	if t.closed.Load() {
		return storage.Checkpoint{}, false, t.failed(storage.ErrClosed)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cp == nil {
		return storage.Checkpoint{}, false, nil
	}
	cp := *t.cp
	cp.Owner = append([]byte(nil), cp.Owner...)
	return cp, true, nil
}

func (t *table) Snapshot() (storage.Snapshot, error) {
	if t.closed.Load() {
		return nil, t.failed(storage.ErrClosed)
	}
	if err := t.db.enter(); err != nil {
		return nil, t.failed(err)
	}
	defer t.db.leave()
	return newSnapshot(t), nil
}

// Close waits for the batch that is being written; the rest of an Apply is
// not written any more.
func (t *table) Close() error {
	t.closed.Store(true)
	t.write.Lock()
	defer t.write.Unlock()
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	if t.db.tables[t.id] == t {
		delete(t.db.tables, t.id)
		delete(t.store.open, t)
	}
	return nil
}

// failed names the table of an error.
func (t *table) failed(err error) error {
	if err == nil {
		return nil
	}
	var e *storage.Error
	if errors.As(err, &e) {
		return err
	}
	return placed(t.db.dir.path+": "+t.id.String(), err)
}

// appendValue appends the bytes of an item to dst, without a second copy if
// they fit.
func appendValue(dst []byte, item *badger.Item) ([]byte, error) {
	v, err := item.ValueCopy(dst[len(dst):])
	if err != nil {
		return dst, fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	}
	if room := cap(dst) - len(dst); len(v) <= room {
		return dst[:len(dst)+len(v)], nil
	}
	return append(dst, v...), nil
}
