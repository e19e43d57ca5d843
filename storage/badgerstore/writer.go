package badgerstore

import (
	"bytes"
	"errors"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
)

// writer writes rows with one version. If it is small, in a transaction:
// whole or not at all. Else in many requests in a row, through Badger's
// loader, because that keeps the order and costs less; there each row stands
// for itself, and a crash leaves a first part of them.
type writer struct {
	d       *db
	small   bool
	version uint64
	seq     uint32 // of the next big value
	key     []byte // buffer

	txn  *badger.Txn      // of a small one; nil: nothing to flush
	load *badger.KVLoader // of another; nil: nothing to flush
	kv   pb.KV
	size int64 // bytes since the last look at the free space
}

var (
	deletes  = []byte{1} // Badger's mark
	userMeta = [4][]byte{nil, {1}, {2}, {3}}
)

// set writes a row. Key is free when it returns, value when flush does.
func (w *writer) set(key, value []byte, user byte) error {
	if w.small {
		key = bytes.Clone(key)
		w.size += rowSize(key, value)
		return w.put(func(txn *badger.Txn) error {
			return txn.SetEntry(badger.NewEntry(key, value).WithMeta(user))
		})
	}
	w.kv.Value, w.kv.Meta, w.kv.UserMeta = value, nil, userMeta[user]
	return w.add(key)
}

func (w *writer) delete(key []byte) error {
	if w.small {
		key = bytes.Clone(key)
		w.size += rowSize(key, nil)
		return w.put(func(txn *badger.Txn) error { return txn.Delete(key) })
	}
	w.kv.Value, w.kv.Meta, w.kv.UserMeta = nil, deletes, nil
	return w.add(key)
}

// put adds to the transaction, or to the next one if it is full. That can
// only be for the many pieces of a value that goes.
func (w *writer) put(f func(*badger.Txn) error) error {
	if w.txn == nil {
		w.txn = w.d.badger.NewTransactionAt(w.version, true)
	}
	err := f(w.txn)
	if !errors.Is(err, badger.ErrTxnTooBig) {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.txn = w.d.badger.NewTransactionAt(w.version, true)
	return f(w.txn)
}

func (w *writer) add(key []byte) error {
	if w.size += rowSize(key, w.kv.Value); w.size > spaceStep {
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

// rowSize is what a row takes in a log, or in a memtable, at most.
func rowSize(key, value []byte) int64 { return int64(len(key) + len(value) + 64) }

// flush waits until all rows are durable.
func (w *writer) flush() error {
	w.d.space.wrote(w.size)
	w.size = 0
	if txn := w.txn; txn != nil {
		w.txn = nil
		return writeError(txn.CommitAt(w.version, nil))
	}
	if l := w.load; l != nil {
		w.load = nil
		return writeError(l.Finish())
	}
	return nil
}

// drop forgets what was not flushed, as far as Badger does not have it yet,
// and waits until it reads nothing of it any more.
func (w *writer) drop() error {
	if w.txn != nil {
		w.txn.Discard()
		w.txn = nil
	}
	return w.flush()
}
