package badgerstore

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/rekastream/reka/storage"
)

// A record key of more than maxKey bytes: its first maxKey bytes, the hash of
// all of it and a slot make the row's key; the body is the size of the rest,
// the rest, and the value. Rows of Badger's that are longer than maxKey are
// such rows and no others.

// longPrefix appends a long key's row key up to the slot.
func (t *table) longPrefix(dst, key []byte) []byte {
	sum := t.db.cfg.hash(key)
	return append(t.place.key(dst, kindRow, key[:maxKey]), sum[:]...)
}

// splitBody returns the rest of the key and the value.
func splitBody(body []byte) (rest, value []byte, err error) {
	n, w := binary.Uvarint(body)
	if w <= 0 || n > uint64(len(body)-w) {
		return nil, nil, fmt.Errorf("%w: row of a long key", storage.ErrDamaged)
	}
	return body[w : w+int(n)], body[w+int(n):], nil
}

// findLong looks for a long key. It returns the row's key, if there is one
// with its value, else one that is free.
func (t *table) findLong(txn *badger.Txn, key []byte) (row, value []byte, found bool, err error) {
	prefix := t.longPrefix(nil, key)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	free := uint32(0)
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		if len(item.Key()) != prefixSize+longKey {
			return nil, nil, false, fmt.Errorf("%w: row of a long key", storage.ErrDamaged)
		}
		body, err := t.place.body(txn, nil, item)
		if err != nil {
			return nil, nil, false, err
		}
		rest, value, err := splitBody(body)
		if err != nil {
			return nil, nil, false, err
		}
		if bytes.Equal(rest, key[maxKey:]) {
			return item.KeyCopy(nil), value, true, nil
		}
		if binary.BigEndian.Uint32(item.Key()[len(prefix):]) == free {
			free++
		}
	}
	return binary.BigEndian.AppendUint32(prefix, free), nil, false, nil
}

// putLong writes or deletes the row of a long key. It reads what is there, so
// what was written before must be readable.
func (t *table) putLong(w *writer, row storage.Row) error {
	if err := w.flush(); err != nil {
		return err
	}
	key, _, found, err := t.findLong(t.db.latest, row.Key)
	if err != nil {
		return err
	}
	if row.Value == nil {
		if !found {
			return nil
		}
		return t.remove(w, key)
	}
	rest := row.Key[maxKey:]
	body := make([]byte, 0, binary.MaxVarintLen64+len(rest)+len(row.Value))
	body = binary.AppendUvarint(body, uint64(len(rest)))
	body = append(append(body, rest...), row.Value...)
	return t.store1(w, key, body, metaLong)
}
