package tester

import (
	"context"
	"slices"

	"github.com/rekastream/reka/storage"
)

// guardBuilder gives the code of one incarnation its stores. When the process
// dies nothing reaches them any more, and what it held is freed once its
// goroutines have ended.
type guardBuilder struct {
	inc   *incarnation
	inner storage.Builder
}

// Open implements storage.Builder.
func (b guardBuilder) Open() (storage.Store, error) {
	if b.inc.isDead() {
		return nil, &storage.Error{Place: b.inner.String(), Err: storage.ErrClosed}
	}
	s, err := b.inner.Open()
	if err != nil {
		return nil, err
	}
	g := &guardStore{Store: s, inc: b.inc, place: b.inner.String()}
	w := b.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	b.inc.stores = append(b.inc.stores, g)
	return g, nil
}

func (b guardBuilder) String() string { return b.inner.String() }

// guardStore is a store of one incarnation.
type guardStore struct {
	storage.Store
	inc   *incarnation
	place string

	// Guarded by world.mu.
	tables []*guardTable // open ones
	shut   bool
}

func (s *guardStore) closed() error {
	if s.inc.isDead() {
		return &storage.Error{Place: s.place, Err: storage.ErrClosed}
	}
	return nil
}

// Number implements storage.Store.
func (s *guardStore) Number(name string) (uint32, error) {
	if err := s.closed(); err != nil {
		return 0, err
	}
	return s.Store.Number(name)
}

// Table implements storage.Store.
func (s *guardStore) Table(name string, partition int32) (storage.Table, error) {
	var g *guardTable
	c := Call{Op: OpOpenTable, Topic: name, Partition: partition}
	err := s.inc.call(context.Background(), c, func(half bool) error {
		if half {
			return nil
		}
		t, err := s.Store.Table(name, partition)
		if err != nil {
			return err
		}
		g = &guardTable{Table: t, s: s, name: name, partition: partition}
		w := s.inc.w
		w.mu.Lock()
		defer w.mu.Unlock()
		s.tables = append(s.tables, g)
		return nil
	})
	if err != nil {
		return nil, s.dead(err)
	}
	return g, nil
}

// dead translates the error of a dead process's call.
func (s *guardStore) dead(err error) error {
	if c := s.closed(); c != nil {
		return c
	}
	return err
}

// Tables implements storage.Store.
func (s *guardStore) Tables() ([]storage.TableID, error) {
	if err := s.closed(); err != nil {
		return nil, err
	}
	return s.Store.Tables()
}

// Close implements storage.Store.
func (s *guardStore) Close() error {
	w := s.inc.w
	w.mu.Lock()
	again := s.shut
	s.shut = true
	if i := slices.Index(s.inc.stores, s); i >= 0 {
		s.inc.stores = slices.Delete(s.inc.stores, i, i+1)
	}
	w.mu.Unlock()
	if again {
		return &storage.Error{Place: s.place, Err: storage.ErrClosed}
	}
	return s.Store.Close()
}

// guardTable is a table of one incarnation.
type guardTable struct {
	storage.Table
	s         *guardStore
	name      string
	partition int32
}

// Get implements storage.Table.
func (t *guardTable) Get(dst, key []byte) ([]byte, bool, error) {
	if err := t.s.closed(); err != nil {
		return dst, false, err
	}
	return t.Table.Get(dst, key)
}

// Checkpoint implements storage.Table.
func (t *guardTable) Checkpoint() (storage.Checkpoint, bool, error) {
	if err := t.s.closed(); err != nil {
		return storage.Checkpoint{}, false, err
	}
	return t.Table.Checkpoint()
}

// Snapshot implements storage.Table.
func (t *guardTable) Snapshot() (storage.Snapshot, error) {
	if err := t.s.closed(); err != nil {
		return nil, err
	}
	return t.Table.Snapshot()
}

// Apply implements storage.Table.
func (t *guardTable) Apply(rows []storage.Row, cp *storage.Checkpoint) error {
	err := t.call(OpApply, func(half bool) error {
		if half {
			rows, cp = rows[:len(rows)/2], nil
		}
		return t.Table.Apply(rows, cp)
	})
	return err
}

// Clear implements storage.Table.
func (t *guardTable) Clear() error {
	return t.call(OpClear, func(half bool) error {
		if half {
			return nil
		}
		return t.Table.Clear()
	})
}

func (t *guardTable) call(op Op, effect func(half bool) error) error {
	err := t.s.inc.call(context.Background(), Call{Op: op, Topic: t.name, Partition: t.partition}, effect)
	if err != nil {
		return t.s.dead(err)
	}
	return nil
}

// Close implements storage.Table.
func (t *guardTable) Close() error {
	w := t.s.inc.w
	w.mu.Lock()
	if i := slices.Index(t.s.tables, t); i >= 0 {
		t.s.tables = slices.Delete(t.s.tables, i, i+1)
	}
	w.mu.Unlock()
	return t.Table.Close()
}

// reap frees what a dead incarnation held, when its goroutines have ended.
func (inc *incarnation) reap() {
	w := inc.w
	w.mu.Lock()
	stores := slices.Clone(inc.stores)
	var tables []*guardTable
	for _, s := range stores {
		tables = append(tables, s.tables...)
	}
	w.mu.Unlock()
	for _, t := range tables {
		_ = t.Close() // what matters is that it is let go
	}
	for _, s := range stores {
		_ = s.Close() // likewise
	}
}
