package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// ErrInactive says that a record was used after its callback had returned.
var ErrInactive = errors.New("used outside its callback")

// Record is a record in processing: what it is, and what its callback has
// done so far. A task has one and uses it again for each record. Owned by the
// task's goroutine; valid while the handler runs.
//
// The first thing that goes wrong sticks: later verbs do nothing and the
// record fails with that error, whatever the handler returns.
type Record struct {
	// Attached is the caller's own, kept over all records of the task.
	Attached any

	task   *Task
	in     *input // nil: a visit
	source *kafka.Record
	time   int64 // milliseconds since the epoch
	began  int64 // time when the handler began, see Stand
	key    []byte
	arg    any // of a visit

	active   bool
	deferred *Deferred // nil: finished when the handler returns
	err      error
	staged   []staged
	bytes    []byte // of staged rows
	index    stagedIndex
	emitted  []*outbox
	counted  []counted
	size     int // staged bytes, outputs included
}

// counted is something to be counted if the record succeeds.
type counted struct {
	counter int
	n       int64
}

// staged is a row change of this record. Its bytes lie in Record.bytes.
type staged struct {
	store    int
	key      span
	value    span
	time     int64
	isDelete bool
}

type span struct{ from, to int }

func (r *Record) begin(in *input, source *kafka.Record, time int64) {
	r.in, r.source, r.time, r.began, r.key = in, source, time, time, source.Key
	r.active, r.deferred, r.err, r.size, r.arg = true, nil, nil, 0, nil
	r.staged, r.bytes, r.emitted, r.counted = r.staged[:0], r.bytes[:0], r.emitted[:0], r.counted[:0]
	r.index.reset()
}

// keep makes the record's effects part of the active epoch.
func (r *Record) keep() {
	r.active = false
	for i := range r.staged {
		s := &r.staged[i]
		var value []byte
		if !s.isDelete {
			value = r.bytes[s.value.from:s.value.to:s.value.to]
		}
		st, key := r.task.stores[s.store], r.bytes[s.key.from:s.key.to]
		had := st.table.Set(key, value, s.time)
		for _, l := range st.lines {
			if (s.isDelete || !had) && len(key) > 0 && key[0] == l.prefix {
				l.changed(key, s.isDelete)
			}
		}
	}
	for _, c := range r.counted {
		r.task.counters[c.counter] += c.n
	}
	r.task.active.bytes += r.size
}

// void forgets everything that the record's callback did.
func (r *Record) void() {
	r.active, r.deferred = false, nil
	for i := len(r.emitted) - 1; i >= 0; i-- {
		r.emitted[i].drop()
	}
	r.staged, r.emitted, r.counted = r.staged[:0], r.emitted[:0], r.counted[:0]
}

// Context lives as long as the task.
func (r *Record) Context() context.Context { return r.task.ctx }

// Input returns the index of the record's input, -1 in a visit.
func (r *Record) Input() int {
	if r.in == nil {
		return -1
	}
	return r.in.slot
}

// Source returns the record as it was read. It must not be changed.
func (r *Record) Source() *kafka.Record { return r.source }

// Place returns where the record was read. In a visit the topic is empty.
func (r *Record) Place() kafka.TopicPartition {
	if r.in == nil {
		return kafka.TopicPartition{Partition: r.task.partition}
	}
	return r.in.TopicPartition
}

// Time returns the record's time in milliseconds since the epoch.
func (r *Record) Time() int64 { return r.time }

// Key returns the record's key, nil if it has none.
func (r *Record) Key() []byte { return r.key }

// Partition returns the task's partition.
func (r *Record) Partition() int32 { return r.task.partition }

// Arg returns what a visit was started with.
func (r *Record) Arg() any { return r.arg }

// Active reports whether the record's callback runs.
func (r *Record) Active() bool { return r.active }

// Err returns what has stuck.
func (r *Record) Err() error { return r.err }

// Stick makes the record fail with err unless it has failed already. After
// its callback it fails the task instead.
func (r *Record) Stick(err error) {
	if !r.active {
		r.task.misuse(err)
		return
	}
	if r.err == nil {
		r.err = err
	}
}

// usable reports whether a verb may do anything.
func (r *Record) usable() bool {
	if !r.active {
		r.task.misuse(ErrInactive)
		return false
	}
	return r.err == nil
}

// Get returns the newest value of key in a store, this record's own changes
// included. The value is valid until the next call on the record.
func (r *Record) Get(store int, key []byte) ([]byte, bool) {
	value, _, ok := r.GetRow(store, key)
	return value, ok
}

// GetRow is Get with the time of the row.
func (r *Record) GetRow(store int, key []byte) (value []byte, time int64, ok bool) {
	if !r.usable() {
		return nil, 0, false
	}
	if i := r.lastStaged(store, key); i >= 0 {
		s := &r.staged[i]
		return r.bytes[s.value.from:s.value.to:s.value.to], s.time, !s.isDelete
	}
	value, time, ok, err := r.task.stores[store].table.Get(key)
	if err != nil {
		r.Stick(&StoreError{Store: r.task.stores[store].name(), Err: err})
		return nil, 0, false
	}
	return value, time, ok
}

// Row is a row to be set. A nil Value deletes.
type Row struct {
	Key, Value []byte
	Time       int64
}

// Set stages a row at the record's time; a nil value deletes. Both are copied.
func (r *Record) Set(store int, key, value []byte) {
	r.SetRow(store, Row{Key: key, Value: value, Time: r.time})
}

// SetRow is Set with a time of the row's own.
func (r *Record) SetRow(store int, to Row) {
	if !r.usable() {
		return
	}
	key, value := to.Key, to.Value
	st := r.task.stores[store]
	row := kafka.Record{Key: key, Value: value}
	if size := row.Size(); st.limit > 0 && size+batchBytes > st.limit {
		r.Stick(&kafka.Error{TopicPartition: st.changelog, Offset: -1, Key: bytes.Clone(key),
			Err: fmt.Errorf("%w: %d bytes, the topic takes %d", kafka.ErrTooLarge, size, st.limit)})
		return
	}
	if !r.count(len(key) + len(value) + 32) {
		return
	}
	s := staged{store: store, time: to.Time, isDelete: value == nil}
	s.key.from = len(r.bytes)
	r.bytes = append(r.bytes, key...)
	s.key.to, s.value.from = len(r.bytes), len(r.bytes)
	r.bytes = append(r.bytes, value...)
	s.value.to = len(r.bytes)
	r.staged = append(r.staged, s)
}

// count bounds what one record may stage.
func (r *Record) count(n int) bool {
	if r.size += n; r.size > r.task.env.RecordBytes {
		r.Stick(fmt.Errorf("one record's changes and emits exceed %d bytes (Tuning.RecordBytes)", r.task.env.RecordBytes))
		return false
	}
	return true
}

// Scan yields the newest rows of a store in byte order of their keys, this
// record's own changes included. The bytes are valid until the next step. The
// store must not be changed from within the loop.
func (r *Record) Scan(store int, rng storage.Range) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		if !r.usable() {
			return
		}
		own := r.ownRows(store, rng)
		for row, err := range r.task.stores[store].table.Scan(rng) {
			if err != nil {
				err = &StoreError{Store: r.task.stores[store].name(), Err: err}
				r.Stick(err)
				yield(storage.Row{}, err)
				return
			}
			for len(own) > 0 && goesBefore(own[0].Key, row.Key, rng.Reverse) {
				if own[0].Value != nil && !yield(own[0], nil) {
					return
				}
				own = own[1:]
			}
			out := storage.Row{Key: row.Key, Value: row.Value}
			if len(own) > 0 && string(own[0].Key) == string(row.Key) {
				out, own = own[0], own[1:]
			}
			if out.Value != nil && !yield(out, nil) {
				return
			}
		}
		for _, row := range own {
			if row.Value != nil && !yield(row, nil) {
				return
			}
		}
	}
}

// Join returns the row of the record's own key in a joined table.
func (r *Record) Join(join int) ([]byte, bool) {
	value, _, ok := r.JoinRow(join, r.key)
	return value, ok
}

// JoinRow returns the row of a key in a joined table, and its time; a nil key
// has none. While a row of that table is processed, it is the row of its key.
func (r *Record) JoinRow(join int, key []byte) (value []byte, time int64, ok bool) {
	if !r.usable() || key == nil {
		return nil, 0, false
	}
	if r.in != nil && r.in.join == join && bytes.Equal(key, r.source.Key) {
		return r.source.Value, r.time, r.source.Value != nil
	}
	value, time, ok, err := r.task.joins[join].table.Get(key)
	if err != nil {
		r.Stick(&StoreError{Store: r.task.env.Graph.Joins[join].Topic, Err: err})
		return nil, 0, false
	}
	return value, time, ok
}

// FormerRow returns the row that the one being processed, of a joined table,
// will replace.
func (r *Record) FormerRow() (value []byte, ok bool) {
	if !r.usable() || r.in == nil || r.in.join < 0 || r.source.Key == nil {
		return nil, false
	}
	value, _, ok, err := r.task.joins[r.in.join].table.Get(r.source.Key)
	if err != nil {
		r.Stick(&StoreError{Store: r.in.Topic, Err: err})
		return nil, false
	}
	return value, ok
}

// Lookup appends the row of a key in a whole table to dst.
func (r *Record) Lookup(lookup int, dst, key []byte) ([]byte, bool) {
	if !r.usable() {
		return dst, false
	}
	value, _, ok, err := r.task.env.Lookups[lookup].Get(dst, key, false)
	if err != nil {
		r.Stick(&StoreError{Store: r.task.env.Graph.Lookups[lookup].Topic, Err: err})
		return dst, false
	}
	return value, ok
}

// StoreError is a failure of a store during a callback. It ends the
// processor, whatever the error policy says: skipping records because a disk
// is full would lose them.
type StoreError struct {
	Store string
	Err   error
}

// Error names the store.
func (e *StoreError) Error() string { return fmt.Sprintf("store %q: %v", e.Store, e.Err) }

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }
