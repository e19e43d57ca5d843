package badgerstore

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/rekastream/reka/storage"
)

// cursor is one Scan. Badger's order is that of the record keys but for long
// ones: those that share their first maxKey bytes follow each other in the
// order of their hashes, behind the key that is just these bytes. Such a
// group is read whole, its values left out, and sorted.
type cursor struct {
	s     *snapshot
	r     storage.Range
	it    *badger.Iterator // nil: not started
	ahead bool             // it already stands on the next row
	group []longRow        // rows to come before it
	value []byte           // buffer
}

// longRow is a long key's row: what its key has behind the first maxKey
// bytes, and the row's key.
type longRow struct{ rest, row []byte }

// next returns the next row, valid until the next call, false at the end.
func (c *cursor) next() (row storage.Row, ok bool, err error) {
	err = c.s.do(func() error {
		row, ok, err = c.step()
		return err
	})
	return row, ok && err == nil, err
}

func (c *cursor) step() (row storage.Row, ok bool, err error) {
	for {
		if len(c.group) > 0 {
			l := c.group[0]
			c.group = c.group[1:]
			key := slices.Concat(l.row[prefixSize:prefixSize+maxKey], l.rest)
			if !c.r.Contains(key) {
				continue
			}
			row, err = c.long(key, l.row)
			return row, err == nil, err
		}
		if !c.advance() {
			return row, false, nil
		}
		key := c.it.Item().Key()[prefixSize:]
		switch {
		case len(key) > maxKey:
			if err := c.gather(); err != nil {
				return row, false, err
			}
		case c.r.To != nil && bytes.Compare(key, c.r.To) >= 0:
			if !c.r.Reverse {
				return row, false, nil
			}
		case bytes.Compare(key, c.r.From) < 0:
			if c.r.Reverse {
				return row, false, nil
			}
		default:
			c.value, err = c.s.t.place.body(c.s.txn, c.value[:0], c.it.Item())
			return storage.Row{Key: slices.Clip(key), Value: slices.Clip(c.value)}, err == nil, err
		}
	}
}

// advance puts the iterator on the next row of Badger's.
func (c *cursor) advance() bool {
	switch {
	case c.it == nil:
		c.it = c.s.txn.NewIterator(badger.IteratorOptions{
			Prefix:  c.s.t.place.key(nil, kindRow, nil),
			Reverse: c.r.Reverse,
		})
		c.s.scans[c] = true
		c.it.Seek(c.start())
	case c.ahead:
		c.ahead = false
	default:
		c.it.Next()
	}
	return c.it.Valid()
}

// start returns where the first row can be.
func (c *cursor) start() []byte {
	p := c.s.t.place
	if !c.r.Reverse {
		return p.key(nil, kindRow, c.r.From[:min(maxKey, len(c.r.From))])
	}
	switch {
	case c.r.To == nil:
		return p.key(nil, kindRow+1, nil)
	case len(c.r.To) > maxKey:
		end := p.key(nil, kindRow, c.r.To[:maxKey])
		return append(end, bytes.Repeat([]byte{0xff}, longKey-maxKey)...)
	}
	return p.key(nil, kindRow, c.r.To)
}

// gather reads the group of long keys that the iterator stands on.
func (c *cursor) gather() error {
	head := c.it.Item().KeyCopy(nil)[:prefixSize+maxKey]
	c.group = c.group[:0]
	for ; c.it.Valid(); c.it.Next() {
		item := c.it.Item()
		if len(item.Key()) <= len(head) || !bytes.HasPrefix(item.Key(), head) {
			break
		}
		body, err := c.s.t.place.body(c.s.txn, nil, item)
		if err != nil {
			return err
		}
		rest, _, err := splitBody(body)
		if err != nil {
			return err
		}
		c.group = append(c.group, longRow{bytes.Clone(rest), item.KeyCopy(nil)})
	}
	slices.SortFunc(c.group, func(a, b longRow) int {
		if c.r.Reverse {
			a, b = b, a
		}
		return bytes.Compare(a.rest, b.rest)
	})
	c.ahead = true
	return nil
}

// long reads the row of a long key.
func (c *cursor) long(key, row []byte) (storage.Row, error) {
	item, err := c.s.txn.Get(row)
	if err != nil {
		return storage.Row{}, fmt.Errorf("%w: row of a long key: %w", storage.ErrDamaged, err)
	}
	if c.value, err = c.s.t.place.body(c.s.txn, c.value[:0], item); err != nil {
		return storage.Row{}, err
	}
	_, value, err := splitBody(c.value)
	return storage.Row{Key: key, Value: slices.Clip(value)}, err
}

// close gives the iterator back, unless the snapshot has done so.
func (c *cursor) close() {
	d := c.s.t.db
	d.gate.RLock()
	defer d.gate.RUnlock()
	if c.it != nil && !c.s.ended {
		c.it.Close()
	}
	delete(c.s.scans, c)
}
