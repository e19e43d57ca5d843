package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/rekastream/reka/storage"
)

var errNumbers = errors.New("no table number is left")

// names is the map from table names to numbers. Numbers start at 1 and are
// kept for ever.
type names struct {
	d *db

	mu      sync.Mutex
	numbers map[string]uint32
	last    uint32
}

// loadNames reads the map. It runs before anybody else uses Badger.
func loadNames(d *db) (*names, error) {
	n := &names{d: d, numbers: map[string]uint32{}}
	it := d.latest.NewIterator(badger.IteratorOptions{Prefix: nameKey("")})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		name := string(it.Item().Key()[4:])
		err := it.Item().Value(func(v []byte) error {
			if len(v) != 4 {
				return fmt.Errorf("%w: number of table %q", storage.ErrDamaged, name)
			}
			n.numbers[name] = binary.BigEndian.Uint32(v)
			n.last = max(n.last, n.numbers[name])
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return n, nil
}

// number returns the number of a name, a new one if it has none.
func (n *names) number(name string) (uint32, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, ok := n.numbers[name]; ok {
		return id, nil
	}
	if len(name) > maxKey {
		return 0, fmt.Errorf("name of %d bytes is too long", len(name))
	}
	if n.last == maxTable {
		return 0, errNumbers
	}
	id := n.last + 1
	err := n.d.do(func() error {
		return n.d.write(nil, true, func(w *writer) error {
			return w.set(nameKey(name), binary.BigEndian.AppendUint32(nil, id), 0)
		})
	})
	if err != nil {
		return 0, err
	}
	n.numbers[name], n.last = id, id
	return id, nil
}

// all returns a copy of the map.
func (n *names) all() map[string]uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := make(map[string]uint32, len(n.numbers))
	for name, id := range n.numbers {
		m[name] = id
	}
	return m
}
