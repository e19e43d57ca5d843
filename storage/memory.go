package storage

import (
	"crypto/rand"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"sync"
)

// memoryChunk is how many rows Apply writes before it lets readers in.
const memoryChunk = 1024

// Memory returns a Builder whose rows live in this process's memory. They
// survive Close and a later Open of the same Builder value, and are gone with
// the value.
//
// The Builder has one more method, Crash(), for tests: it does to the store
// what the death of its process does to one on disk. All that were opened
// before answer ErrClosed from then on, their tables are free for the next
// holder, and the rows stay.
func Memory() Builder {
	return &memory{
		id:      NewProcessID(),
		numbers: map[string]uint32{},
		tables:  map[TableID]*memoryRows{},
		handles: map[*memoryStore]struct{}{},
	}
}

// NewProcessID returns a random process identity for implementations of
// Store: letters and digits only.
func NewProcessID() string {
	var b [10]byte
	rand.Read(b[:]) // never fails, by its contract
	return hex.EncodeToString(b[:])
}

// memory is the Builder and what its stores share.
type memory struct {
	id string // fixed

	mu      sync.Mutex
	numbers map[string]uint32
	tables  map[TableID]*memoryRows
	handles map[*memoryStore]struct{} // open stores
}

func (m *memory) Open() (Store, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &memoryStore{m: m, open: map[*memoryTable]struct{}{}}
	m.handles[s] = struct{}{}
	return s, nil
}

func (m *memory) String() string { return "memory" }

// Crash closes every store that was opened. See Memory.
func (m *memory) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.handles {
		m.closeStore(s)
	}
}

// closeStore ends a store and frees its tables. mu is held.
func (m *memory) closeStore(s *memoryStore) {
	delete(m.handles, s)
	for t := range s.open {
		t.rows.leave(t)
	}
	clear(s.open)
}

// memoryStore is one Open of a memory. It is open while memory.handles has it.
type memoryStore struct {
	m    *memory
	open map[*memoryTable]struct{} // guarded by m.mu
}

func (s *memoryStore) ProcessID() string { return s.m.id }

func (s *memoryStore) Number(name string) (uint32, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if !s.isOpen() {
		return 0, memoryError(ErrClosed)
	}
	n, ok := s.m.numbers[name]
	if !ok {
		n = uint32(len(s.m.numbers)) + 1
		s.m.numbers[name] = n
	}
	return n, nil
}

func (s *memoryStore) Table(name string, partition int32) (Table, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if !s.isOpen() {
		return nil, memoryError(ErrClosed)
	}
	id := TableID{name, partition}
	rows := s.m.tables[id]
	if rows == nil {
		rows = &memoryRows{}
		s.m.tables[id] = rows
	}
	t := &memoryTable{store: s, id: id, rows: rows}
	if !rows.enter(t) {
		return nil, &Error{Place: "memory: " + id.String(), Err: ErrBusy}
	}
	s.open[t] = struct{}{}
	return t, nil
}

func (s *memoryStore) Tables() ([]TableID, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if !s.isOpen() {
		return nil, memoryError(ErrClosed)
	}
	var ids []TableID
	for id, rows := range s.m.tables {
		if rows.exist() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareTables)
	return ids, nil
}

func (s *memoryStore) Close() error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.closeStore(s)
	return nil
}

func (s *memoryStore) isOpen() bool {
	_, ok := s.m.handles[s]
	return ok
}

// memoryRows is one partition: what outlives its holders.
type memoryRows struct {
	mu     sync.RWMutex
	holder *memoryTable // nil: free
	tree   tree
	cp     *Checkpoint // never changed in place
}

func (r *memoryRows) enter(t *memoryTable) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holder != nil {
		return false
	}
	r.holder = t
	return true
}

func (r *memoryRows) leave(t *memoryTable) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holder == t {
		r.holder = nil
	}
}

func (r *memoryRows) exist() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tree.len > 0 || r.cp != nil
}

// memoryTable is one holder's Table. It is open while rows.holder is itself.
type memoryTable struct {
	store *memoryStore
	id    TableID
	rows  *memoryRows
}

func (t *memoryTable) Get(dst, key []byte) ([]byte, bool, error) {
	r := t.rows
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.holder != t {
		return dst, false, t.closed()
	}
	v, ok := r.tree.root.get(key)
	return append(dst, v...), ok, nil
}

func (t *memoryTable) Apply(rows []Row, cp *Checkpoint) error {
	for chunk := range slices.Chunk(rows, memoryChunk) {
		if err := t.change(func(r *memoryRows) { r.tree.apply(chunk) }); err != nil {
			return err
		}
	}
	return t.change(func(r *memoryRows) {
		if cp != nil {
			c := cp.clone()
			r.cp = &c
		}
	})
}

func (t *memoryTable) Checkpoint() (Checkpoint, bool, error) {
	r := t.rows
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch {
	case r.holder != t:
		return Checkpoint{}, false, t.closed()
	case r.cp == nil:
		return Checkpoint{}, false, nil
	}
	return r.cp.clone(), true, nil
}

func (t *memoryTable) Snapshot() (Snapshot, error) {
	var s *memorySnapshot
	err := t.change(func(r *memoryRows) { s = &memorySnapshot{root: r.tree.freeze()} })
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (t *memoryTable) Clear() error {
	return t.change(func(r *memoryRows) { r.cp, r.tree = nil, tree{} })
}

func (t *memoryTable) Close() error {
	t.store.m.mu.Lock()
	defer t.store.m.mu.Unlock()
	delete(t.store.open, t)
	t.rows.leave(t)
	return nil
}

// change runs f with the rows locked, if t still holds them.
func (t *memoryTable) change(f func(*memoryRows)) error {
	t.rows.mu.Lock()
	defer t.rows.mu.Unlock()
	if t.rows.holder != t {
		return t.closed()
	}
	f(t.rows)
	return nil
}

func (t *memoryTable) closed() error {
	return &Error{Place: "memory: " + t.id.String(), Err: ErrClosed}
}

// memorySnapshot reads nodes that no writer changes any more.
type memorySnapshot struct {
	root     *node
	released bool
}

func (s *memorySnapshot) Get(dst, key []byte) ([]byte, bool, error) {
	if s.released {
		return dst, false, memoryError(ErrClosed)
	}
	v, ok := s.root.get(key)
	return append(dst, v...), ok, nil
}

func (s *memorySnapshot) Scan(r Range) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if s.released {
			yield(Row{}, memoryError(ErrClosed))
			return
		}
		step := func(row Row) bool { return yield(row, nil) }
		if r.Reverse {
			s.root.descend(r, step)
		} else {
			s.root.ascend(r, step)
		}
	}
}

func (s *memorySnapshot) Release() { s.released, s.root = true, nil }

func memoryError(err error) error { return &Error{Place: "memory", Err: err} }

func compareTables(a, b TableID) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return int(a.Partition) - int(b.Partition)
}
