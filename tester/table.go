package tester

import (
	"maps"
	"slices"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

// TableTopic reads a table from its topic: what a process that starts with
// an empty disk would see. Every method settles first.
type TableTopic[T any] struct {
	t     *Tester
	table reka.Table[T]

	// The fold of the topic up to next.
	next cursor
	rows map[string]raw
}

// Table returns a handle that reads a table. A topic that does not exist is
// created, as by Input.
func Table[T any](t *Tester, table reka.Table[T]) *TableTopic[T] {
	t.tb.Helper()
	t.enter()
	t.ensure(specOf[T](table))
	return &TableTopic[T]{t: t, table: table}
}

// Get returns the row of a key, if there is one.
func (tb *TableTopic[T]) Get(key string) (T, bool) {
	tb.t.tb.Helper()
	tb.fold()
	r, ok := tb.rows[key]
	if !ok {
		var zero T
		return zero, false
	}
	return decode[T](tb.t, tb.table, r).Value, true
}

// Keys returns the keys of all rows, in byte order.
func (tb *TableTopic[T]) Keys() []string {
	tb.t.tb.Helper()
	tb.fold()
	return slices.Sorted(maps.Keys(tb.rows))
}

// All returns all rows by key.
func (tb *TableTopic[T]) All() map[string]T {
	tb.t.tb.Helper()
	tb.fold()
	out := make(map[string]T, len(tb.rows))
	for k, r := range tb.rows {
		out[k] = decode[T](tb.t, tb.table, r).Value
	}
	return out
}

// fold takes in what was written since it was last called.
func (tb *TableTopic[T]) fold() {
	tb.t.tb.Helper()
	tb.t.Settle()
	w := tb.t.w
	w.mu.Lock()
	id := kafka.TopicID{}
	if tp := w.topics[tb.table.Name()]; tp != nil {
		id = tp.id
	}
	w.mu.Unlock()
	if tb.next.enter(id) {
		tb.rows = map[string]raw{}
	}
	for _, r := range tb.t.read(tb.table.Name(), &tb.next) {
		tb.next.pass(r)
		if r.Value == nil {
			delete(tb.rows, string(r.Key))
		} else {
			tb.rows[string(r.Key)] = r
		}
	}
}
