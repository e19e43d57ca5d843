package stream

import (
	"fmt"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/processor"
)

// Table is a table on its way through the graph: the last value of each key,
// and the changes that make it.
type Table[T any] struct {
	n       *node
	out     *port[change[T]]
	codec   codec.Codec[T] // nil: unknown
	rekeyed bool

	// get returns a row as it is after the change at hand, and its time.
	get func(x *exec, key []byte) (v T, time int64, ok bool)
}

func newTable[T any](n *node, c codec.Codec[T]) Table[T] {
	return Table[T]{n: n, out: &port[change[T]]{}, codec: c}
}

func (t Table[T]) b() *Builder {
	if t.n == nil {
		return NewBuilder("")
	}
	return t.n.b
}

func (t Table[T]) add(s sink[change[T]]) {
	if t.out != nil {
		t.out.add(s)
	}
}

// TableOption is an option of FromTable.
type TableOption interface{ applyTable(*graph.Join) }

type tableOption func(*graph.Join)

func (f tableOption) applyTable(j *graph.Join) { f(j) }

// TableFirst loads the table to its end before the group's first record.
// Afterwards its changes are merged by time like any others.
func TableFirst() TableOption { return tableOption(func(j *graph.Join) { j.First = true }) }

// FromTable reads a topic as a table. The topic is its changelog: it should be
// a compacted one. Records without a value delete, those without a key are
// counted and dropped.
func FromTable[T any](b *Builder, t reka.Table[T], opts ...TableOption) Table[T] {
	src := sourceOf[T](b, t, "fromtable")
	if src == nil {
		return newTable[T](b.node("fromtable"), nil)
	}
	n := src.n
	if n.join != nil {
		if len(opts) > 0 {
			b.failIn(n, "options belong to the first use of a table")
		}
		out, _ := n.table.(Table[T])
		return out
	}
	out := newTable(n, t.Codec())
	j := &join{spec: graph.Join{Topic: t.Name()}}
	for _, o := range opts {
		if o == nil {
			b.failIn(n, "a nil option")
			continue
		}
		o.applyTable(&j.spec)
	}
	n.join, n.table = j, out
	c := t.Codec()
	out.get = func(x *exec, key []byte) (v T, time int64, ok bool) {
		raw, time, ok := x.rec.JoinRow(j.index, key)
		if !ok {
			return v, 0, false
		}
		v, ok = decodeStored(x, c, raw, place{topic: t.Name(), key: key})
		return v, time, ok
	}
	n.join.run = func(ctx *processor.Context) error {
		x := execIn(ctx)
		src := x.rec.Source()
		if src.Key == nil {
			return nil
		}
		e := change[T]{key: src.Key, time: x.rec.Time(), hasNew: src.Value != nil}
		var err error
		if e.hasNew {
			if e.new, err = c.Decode(src.Value); err != nil {
				return &task.DecodeError{Err: err}
			}
		}
		if raw, ok := x.rec.FormerRow(); ok {
			if e.old, err = c.Decode(raw); err != nil {
				return fmt.Errorf("the row before: %w", err)
			}
			e.hasOld = true
		}
		out.out.emit(x, e)
		return nil
	}
	return out
}

// place is where a stored value that cannot be decoded stands.
type place struct {
	topic string
	key   []byte
}

// decodeStored decodes a row; one that cannot be decoded fails the record.
func decodeStored[T any](x *exec, c codec.Codec[T], raw []byte, at place) (v T, ok bool) {
	v, err := c.Decode(raw)
	if err != nil {
		x.fail(processor.StoredValueError(at.topic, at.key, err))
		return v, false
	}
	return v, true
}

// Changes returns the changes of a table as a stream: the new value of each
// row, none where it was deleted.
func Changes[T any](t Table[T]) Flow[T] {
	out := newFlow(t.b().node("changes", t.n), t.codec)
	out.rekeyed = t.rekeyed
	t.add(func(x *exec, e change[T]) {
		out.out.emit(x, event[T]{key: e.key, value: e.new, null: !e.hasNew, time: e.time})
	})
	return out
}

// ToTable makes a table of the stream: the last value of each key; a record
// without a value deletes. It keeps the rows in a store (Named). Records
// without a key are counted and dropped.
func (f Flow[T]) ToTable(opts ...Option) Table[T] {
	o := fold(opts)
	in := f.placed(o)
	n := f.b().node("totable", in.n)
	c := codecOf(n, &o, f.codec)
	n.own(o.name)
	out := newTable(n, c)
	if !needCodec(n, c) {
		return out
	}
	rows := stored(n, n.store(""), c)
	out.get = rows.get
	nulls := n.counter("records without a key")
	in.add(func(x *exec, e event[T]) {
		if e.key == nil {
			x.count(nulls)
			return
		}
		ch := change[T]{key: e.key, new: e.value, hasNew: !e.null, time: e.time}
		ch.old, _, ch.hasOld = rows.get(x, e.key)
		if x.failed() || !ch.hasOld && !ch.hasNew {
			return
		}
		rows.set(x, row[T]{e.key, e.value, !e.null, e.time})
		out.out.emit(x, ch)
	})
	return out
}

// rows is a store of plain rows: the record's key, the value's encoding, and
// the time of the result as the row's time.
type rows[T any] struct {
	st    *store
	codec codec.Codec[T]
}

// row is a row to be set; not ok deletes.
type row[T any] struct {
	key   []byte
	value T
	ok    bool
	time  int64
}

func stored[T any](_ *node, st *store, c codec.Codec[T]) *rows[T] { return &rows[T]{st, c} }

func (r *rows[T]) get(x *exec, key []byte) (v T, time int64, ok bool) {
	raw, time, ok := x.rec.GetRow(r.st.index, key)
	if !ok {
		return v, 0, false
	}
	v, ok = decodeStored(x, r.codec, raw, place{r.st.spec.Changelog, key})
	return v, time, ok
}

func (r *rows[T]) set(x *exec, to row[T]) {
	var raw []byte
	if to.ok {
		if raw = encode(x, r.codec, to.value); raw == nil {
			return
		}
	}
	x.rec.SetRow(r.st.index, task.Row{Key: to.key, Value: raw, Time: to.time})
}
