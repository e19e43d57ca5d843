package badgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/rekastream/reka/storage"
)

// A body of more than chunkSize is written as an entry in the list of big
// values (number of pieces, key of the row), the pieces, and then the row,
// which names the pieces and the size. When the row goes, so do, in this
// order, the pieces and the entry. So whatever a crash leaves, pieces that no
// row names are listed, and are removed when the table is opened.

// bigValue is an entry of the list.
type bigValue struct {
	id     bigID
	chunks uint32
}

func (t *table) putBig(w *writer, key, body []byte, meta byte) error {
	v := bigValue{bigID{w.version, w.seq}, uint32((len(body) + chunkSize - 1) / chunkSize)}
	w.seq++
	entry := append(binary.BigEndian.AppendUint32(nil, v.chunks), key...)
	if err := w.set(t.place.big(v.id), entry, 0); err != nil {
		return err
	}
	rest := body
	for i := range v.chunks {
		piece := rest[:min(chunkSize, len(rest))]
		rest = rest[len(piece):]
		if err := w.set(t.place.chunk(v.id, i), piece, 0); err != nil {
			return err
		}
	}
	head := binary.BigEndian.AppendUint64(v.id.append(nil), uint64(len(body)))
	if err := w.set(key, head, meta|metaBig); err != nil {
		return err
	}
	err := t.dropBig(w, key)
	t.big[string(key)] = v
	return err
}

// dropBig deletes the pieces that a row had.
func (t *table) dropBig(w *writer, key []byte) error {
	if len(t.big) == 0 {
		return nil
	}
	v, ok := t.big[string(key)]
	if !ok {
		return nil
	}
	delete(t.big, string(key))
	return t.deletePieces(w, v)
}

func (t *table) deletePieces(w *writer, v bigValue) error {
	for i := range v.chunks {
		if err := w.delete(t.place.chunk(v.id, i)); err != nil {
			return err
		}
	}
	return w.delete(t.place.big(v.id))
}

// loadBig reads the list and deletes pieces that no row names.
func (t *table) loadBig() error {
	return t.db.do(func() error {
		lost, err := t.readBig()
		if err != nil || len(lost) == 0 {
			return err
		}
		err = t.db.write(t, false, func(w *writer) error {
			for _, v := range lost {
				if err := t.deletePieces(w, v); err != nil {
					return err
				}
			}
			return nil
		})
		if errors.Is(err, storage.ErrFull) {
			return nil // they can wait for the next time
		}
		return err
	})
}

func (t *table) readBig() (lost []bigValue, err error) {
	t.big, t.stale = map[string]bigValue{}, false
	it := t.db.latest.NewIterator(badger.IteratorOptions{Prefix: t.place.key(nil, kindBig, nil)})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Item().Key()
		entry, err := it.Item().ValueCopy(nil)
		if err != nil || len(entry) < 4+prefixSize || len(key) != prefixSize+bigIDSize {
			return nil, fmt.Errorf("%w: list of big values", storage.ErrDamaged)
		}
		v := bigValue{parseBigID(key[prefixSize:]), binary.BigEndian.Uint32(entry)}
		row := entry[4:]
		named, err := t.names(row, v.id)
		if err != nil {
			return nil, err
		}
		if named {
			t.big[string(row)] = v
		} else {
			lost = append(lost, v)
		}
	}
	return lost, nil
}

// names reports whether a row names the pieces of a big value as its own.
func (t *table) names(row []byte, id bigID) (bool, error) {
	item, err := t.db.latest.Get(row)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if item.UserMeta()&metaBig == 0 {
		return false, nil
	}
	head, err := item.ValueCopy(nil)
	return err == nil && bytes.HasPrefix(head, id.append(nil)), err
}

// body appends the body of a row to dst, putting pieces together.
func (p place) body(txn *badger.Txn, dst []byte, item *badger.Item) ([]byte, error) {
	if item.UserMeta()&metaBig == 0 {
		return appendValue(dst, item)
	}
	head, err := item.ValueCopy(nil)
	if err != nil || len(head) != bigIDSize+8 {
		return dst, fmt.Errorf("%w: head of a big value", storage.ErrDamaged)
	}
	id, start := parseBigID(head), len(dst)
	size := binary.BigEndian.Uint64(head[bigIDSize:])
	for i := uint32(0); uint64(len(dst)-start) < size; i++ {
		piece, err := txn.Get(p.chunk(id, i))
		if err != nil {
			return dst[:start], fmt.Errorf("%w: piece %d of a big value: %w", storage.ErrDamaged, i, err)
		}
		before := len(dst)
		if dst, err = appendValue(dst, piece); err != nil {
			return dst[:start], err
		}
		if len(dst) == before {
			return dst[:start], fmt.Errorf("%w: piece %d of a big value is empty", storage.ErrDamaged, i)
		}
	}
	if uint64(len(dst)-start) != size {
		return dst[:start], fmt.Errorf("%w: size of a big value", storage.ErrDamaged)
	}
	return dst, nil
}
