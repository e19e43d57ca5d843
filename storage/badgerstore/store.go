package badgerstore

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/rekastream/reka/storage"
)

// store is one user's hold of an open directory.
type store struct {
	sh *sharedDB
	db *db

	// guarded by db.mu
	closed bool
	open   map[*table]struct{}
}

func (s *store) ProcessID() string { return s.db.dir.id }

func (s *store) Number(name string) (uint32, error) {
	if err := s.alive(); err != nil {
		return 0, err
	}
	n, err := s.db.names.number(name)
	return n, placed(s.db.dir.path, err)
}

func (s *store) Table(name string, partition int32) (storage.Table, error) {
	number, err := s.Number(name)
	if err != nil {
		return nil, err
	}
	t := &table{
		id:    storage.TableID{Name: name, Partition: partition},
		store: s,
		db:    s.db,
		place: placeOf(number, partition),
	}
	if err := s.hold(t); err != nil {
		return nil, t.failed(err)
	}
	if err := t.load(); err != nil {
		_ = t.Close() // always nil
		return nil, t.failed(err)
	}
	return t, nil
}

// hold makes t the holder of its table.
func (s *store) hold(t *table) error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	switch {
	case s.closed:
		return storage.ErrClosed
	case s.db.tables[t.id] != nil:
		return storage.ErrBusy
	}
	s.db.tables[t.id] = t
	s.open[t] = struct{}{}
	return nil
}

func (s *store) Tables() ([]storage.TableID, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	var ids []storage.TableID
	for name, number := range s.db.names.all() {
		err := s.db.do(func() error {
			ids = s.db.partitions(ids, name, number)
			return nil
		})
		if err != nil {
			return nil, placed(s.db.dir.path, err)
		}
	}
	slices.SortFunc(ids, func(a, b storage.TableID) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return int(a.Partition) - int(b.Partition)
	})
	return ids, nil
}

// partitions appends those partitions of a table that hold anything.
func (d *db) partitions(ids []storage.TableID, name string, number uint32) []storage.TableID {
	first := binary.BigEndian.AppendUint32(nil, number)
	it := d.latest.NewIterator(badger.IteratorOptions{Prefix: first})
	defer it.Close()
	for it.Seek(first); it.Valid(); {
		p := partitionOf(it.Item().Key())
		at := placeOf(number, p)
		ids = append(ids, storage.TableID{Name: name, Partition: p})
		it.Seek(at.key(nil, 0xff, nil)) // behind all kinds
	}
	return ids
}

// Close closes the tables that were opened through s.
func (s *store) Close() error {
	s.db.mu.Lock()
	if s.closed {
		s.db.mu.Unlock()
		return nil
	}
	s.closed = true
	open := s.open
	s.open = nil
	s.db.mu.Unlock()
	for t := range open {
		_ = t.Close() // always nil
	}
	return s.sh.release()
}

func (s *store) alive() error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.closed {
		return placed(s.db.dir.path, storage.ErrClosed)
	}
	return nil
}
