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

	// asOf returns a row as it was at a time; nil: not known, see Versioned.
	// A record that waits for the table was held back before the history was
	// over, so that it sees what there was then. history is how far back that
	// is sure to be known, in milliseconds.
	asOf    func(x *exec, key []byte, at moment) (v T, ok bool)
	history int64

	// first says that some rows came without a change.
	first bool
}

// moment is a time that a table is asked for.
type moment struct {
	time   int64
	waited bool
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
	if t.out != nil && !t.n.b.built {
		t.out.add(s)
	}
}

// TableFirst is an option of FromTable: it loads the table to its end before
// the group's first record. Afterwards its changes are merged by time like any
// others. What is loaded so is there to be joined with, but makes no changes:
// operations that live by them do not take such a table.
func TableFirst() Option { return optionFunc(func(o *options) { o.first = true }) }

// FromTable reads a topic as a table. The topic is its changelog: it should be
// a compacted one. Records without a value delete, those without a key are
// counted and dropped.
//
// Options are TableFirst, Versioned and Named. With a name, the rows are kept
// in a store of the group's own, too. Without one, rows that a move to another
// process has to load are read from the topic, where compaction may have taken
// what a later change replaces.
func FromTable[T any](b *Builder, t reka.Table[T], opts ...Option) Table[T] {
	src := sourceOf[T](b, t, "fromtable")
	if src == nil {
		return newTable[T](b.node("fromtable"), nil)
	}
	n := src.n
	if out, ok := n.table.(Table[T]); ok {
		if len(opts) > 0 {
			b.failf(n, "options belong to the first use of a table")
		}
		return out
	}
	o := fold(opts)
	codecOf(n, &o, t.Codec())
	if o.first && (o.history != nil || o.name != "") {
		b.failf(n, "TableFirst does not go with Versioned or Named")
	}
	var out Table[T]
	switch {
	case o.history != nil:
		out = versionsOf(src.asInput(), &o)
	case o.name != "":
		in := src.asInput()
		kept := b.node("fromtable", in.n)
		kept.own(o.name)
		out = in.tableIn(kept, t.Codec(), in.out.addFirst)
	default:
		out = joined(n, t, o.first)
	}
	n.table = out
	return out
}

// asInput returns the topic's records, which the group reads as an input whose
// records go before those of streams.
func (src *source[T]) asInput() Flow[T] {
	if src.n.input == nil {
		src.n.input = sourceInput(src.flow, graph.Input{Topic: src.n.base, Nulls: true, NullKeys: true})
	}
	src.n.input.spec.Table = true
	return src.flow
}

// joined is a table whose rows follow its topic.
func joined[T any](n *node, t reka.Table[T], first bool) Table[T] {
	out := newTable(n, t.Codec())
	if out.first = first; first && n.input != nil {
		n.b.failf(n, "read as a stream, too, which would miss rows: TableFirst does not go with it")
	}
	j := &join{spec: graph.Join{Topic: t.Name(), First: first}}
	n.join = j
	c := t.Codec()
	out.get = func(x *exec, key []byte) (v T, time int64, ok bool) {
		raw, time, ok := x.rec.JoinRow(j.index, key)
		if !ok {
			return v, 0, false
		}
		v, ok = decodeStored(x, c, raw, place{topic: t.Name(), key: key})
		return v, time, ok
	}
	j.run = func(ctx *processor.Context) error {
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
	t.needChanges(out.n)
	t.add(func(x *exec, e change[T]) {
		out.out.emit(x, event[T]{key: e.key, value: e.new, null: !e.hasNew, time: e.time})
	})
	return out
}

// needChanges reports that an operation lives by changes of all rows.
func (t Table[T]) needChanges(n *node) {
	if t.first {
		t.b().failf(n, "lives by the changes of a table, which has rows that came without any: TableFirst does not go with it")
	}
}

// ToTable makes a table of the stream: the last value of each key; a record
// without a value deletes. It keeps the rows in a store (Named). Records
// without a key are counted and dropped.
func (f Flow[T]) ToTable(opts ...Option) Table[T] {
	o := fold(opts)
	in := f.placed(options{partitions: o.partitions})
	n := f.b().node("totable", in.n)
	c := codecOf(n, &o, f.codec)
	n.own(o.name)
	return in.tableIn(n, c, in.add)
}

// tableIn makes a table of the stream in a store of n.
func (f Flow[T]) tableIn(n *node, c codec.Codec[T], add func(sink[event[T]])) Table[T] {
	out := newTable(n, c)
	if !needCodec(n, c) {
		return out
	}
	rows := stored(n.store(""), c)
	out.get = rows.get
	nulls := n.counter("records without a key")
	add(func(x *exec, e event[T]) {
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

func stored[T any](st *store, c codec.Codec[T]) *rows[T] { return &rows[T]{st, c} }

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
