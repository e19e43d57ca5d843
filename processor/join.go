package processor

import (
	"fmt"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/graph"
)

// Joined is the handle of a co-partitioned table, read at the key of the
// record at hand.
type Joined[T any] struct {
	table reka.Table[T]
	first bool
	bad   bool // a nil option
	binding
}

// JoinOption is an option of Join.
type JoinOption interface{ applyJoin(*joinOptions) }

type joinOptions struct{ first, bad bool }

type joinOption func(*joinOptions)

func (f joinOption) applyJoin(o *joinOptions) { f(o) }

// TableFirst loads the table to its end before the group's first record.
// Afterwards its changes are merged by time like any others.
func TableFirst() JoinOption { return joinOption(func(o *joinOptions) { o.first = true }) }

// Join declares a table that is joined by key. It must have as many
// partitions as the inputs, placed by the same partitioner.
//
// The table is an input of the task like the others: its changes take their
// turn by timestamp, before records of the same time, so that a record sees
// the table as of its own time, the same on every run.
func Join[T any](t reka.Table[T], opts ...JoinOption) *Joined[T] {
	var o joinOptions
	for _, opt := range opts {
		if opt == nil {
			o.bad = true
			continue
		}
		opt.applyJoin(&o)
	}
	return &Joined[T]{table: t, first: o.first, bad: o.bad}
}

func (j *Joined[T]) declare(d *declaration) error {
	if j == nil {
		return fmt.Errorf("join: nil handle")
	}
	if err := checkTopic[T](j.table); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if j.bad {
		return fmt.Errorf("join %s: a nil option", j.table.Name())
	}
	if err := d.once(j, "join "+j.table.Name()); err != nil {
		return err
	}
	if j.table.Name() == reka.TableTopic(d.graph.Group) {
		return fmt.Errorf("join %s: a group reads its own table with Persist", j.table.Name())
	}
	d.slots[j] = len(d.graph.Joins)
	d.graph.Joins = append(d.graph.Joins, graph.Join{Topic: j.table.Name(), First: j.first})
	return nil
}

// Get returns the row of the record's key, and whether there is one. The
// value is the caller's own.
func (j *Joined[T]) Get(ctx *Context) (v T, ok bool) {
	slot, ok := j.slot(ctx, j, "join "+j.table.Name())
	if !ok {
		return v, false
	}
	raw, ok := ctx.rec.Join(slot)
	if !ok {
		return v, false
	}
	return decodeRow(ctx, raw, ctx.rec.Key(), rowCodec[T]{j.table.Name(), j.table.Codec()})
}

// Global is the handle of a whole table, read at any key. Every instance has
// a copy of it, which is complete before the first callback runs and follows
// the table from then on.
type Global[T any] struct {
	table reka.Table[T]
	binding
}

// Lookup declares a table of which every instance keeps a whole copy. It may
// have any number of partitions.
func Lookup[T any](t reka.Table[T]) *Global[T] { return &Global[T]{table: t} }

func (l *Global[T]) declare(d *declaration) error {
	if l == nil {
		return fmt.Errorf("lookup: nil handle")
	}
	if err := checkTopic[T](l.table); err != nil {
		return fmt.Errorf("lookup: %w", err)
	}
	if err := d.once(l, "lookup "+l.table.Name()); err != nil {
		return err
	}
	d.slots[l] = len(d.graph.Lookups)
	d.graph.Lookups = append(d.graph.Lookups, graph.Lookup{Topic: l.table.Name()})
	return nil
}

// Get returns the row of a key as the copy has it now, and whether there is
// one. The value is the caller's own.
func (l *Global[T]) Get(ctx *Context, key string) (v T, ok bool) {
	slot, ok := l.slot(ctx, l, "lookup "+l.table.Name())
	if !ok {
		return v, false
	}
	raw, ok := ctx.rec.Lookup(slot, ctx.valueBuf[:0], ctx.keyBytes(key))
	if !ok {
		return v, false
	}
	ctx.valueBuf = raw
	return decodeRow(ctx, raw, []byte(key), rowCodec[T]{l.table.Name(), l.table.Codec()})
}
