package stream

import (
	"encoding/binary"
	"errors"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/processor"
)

// GroupedTable is a table whose rows are gathered by another key. A row that
// changes is taken out of its aggregate and put in again; one that is deleted
// is taken out.
type GroupedTable[T any] struct {
	n     *node
	out   *port[change[T]]
	codec codec.Codec[T]
}

// GroupTable gathers the rows of a table by the key that by returns, each as
// the value beside it. by must depend on nothing else: a row that is replaced
// is taken out by what by says of it then.
//
// The changes go through a repartition topic (Named, Partitions). The codec of
// the values is required (WithCodec) unless the table's own does.
func GroupTable[T, U any](t Table[T], by func(key string, v T) (string, U), opts ...Option) GroupedTable[U] {
	n := t.b().node("grouptable", t.n)
	o := fold(opts)
	own, _ := any(t.codec).(codec.Codec[U])
	c := codecOf(n, &o, own)
	topic := n.b.repartition(n.own(o.name))
	src := repartitioned(n, o.partitions)
	out := GroupedTable[U]{n: src, out: &port[change[U]]{}, codec: c}
	if by == nil {
		n.b.failf(n, "no function")
		return out
	}
	if !needCodec(n, c) {
		return out
	}
	t.needChanges(n)
	src.input = &input{
		spec:   graph.Input{Topic: topic, Repartition: &graph.Repartition{Partitions: o.partitions}},
		decode: func(b []byte) error { _, err := decodeChange(c, b); return err },
		run: func(ctx *processor.Context) error {
			x := execIn(ctx)
			rec := x.rec.Source()
			ch, err := decodeChange(c, rec.Value)
			if err != nil {
				return &task.DecodeError{Err: err}
			}
			ch.key, ch.time = rec.Key, x.rec.Time()
			out.out.emit(x, ch)
			return nil
		},
	}
	to := n.output(topic)
	t.add(func(x *exec, e change[T]) {
		var was, is change[U]
		var from, into string
		if e.hasOld {
			from, was.old = by(x.key(e.key), e.old)
			was.hasOld = true
		}
		if e.hasNew {
			into, is.new = by(x.key(e.key), e.new)
			is.hasNew = true
		}
		if was.hasOld && is.hasNew && from == into {
			is.old, is.hasOld = was.old, true
			was.hasOld = false
		}
		if was.hasOld {
			was.key, was.time = bytesOf(from), e.time
			writeChange(x, to, c, &was)
		}
		if is.hasNew {
			is.key, is.time = bytesOf(into), e.time
			writeChange(x, to, c, &is)
		}
	})
	return out
}

// A change on its way is what it has (a byte), and the values: the old one with
// its length before it if the new one follows.
const (
	changeHasOld = 1
	changeHasNew = 2
)

var errChange = errors.New("not a change of a table")

func writeChange[T any](x *exec, to *output, c codec.Codec[T], ch *change[T]) {
	x.wireBuf = append(x.wireBuf[:0], 0)
	b := x.wireBuf
	if ch.hasOld {
		b[0] |= changeHasOld
		raw := encode(x, c, ch.old)
		if ch.hasNew {
			b = binary.AppendUvarint(b, uint64(len(raw)))
		}
		b = append(b, raw...)
	}
	if ch.hasNew {
		b[0] |= changeHasNew
		b = append(b, encode(x, c, ch.new)...)
	}
	x.wireBuf = b
	x.rec.Emit(to.index, task.Emission{Key: ch.key, Value: b, Time: ch.time, Partition: -1})
}

func decodeChange[T any](c codec.Codec[T], b []byte) (ch change[T], err error) {
	if len(b) == 0 || b[0] == 0 || b[0] > changeHasOld|changeHasNew {
		return ch, errChange
	}
	ch.hasOld, ch.hasNew = b[0]&changeHasOld != 0, b[0]&changeHasNew != 0
	b = b[1:]
	if ch.hasOld {
		raw := b
		if ch.hasNew {
			n, size := binary.Uvarint(b)
			if size <= 0 || n > uint64(len(b)-size) {
				return ch, errChange
			}
			raw, b = b[size:size+int(n)], b[size+int(n):]
		}
		if ch.old, err = c.Decode(raw); err != nil {
			return ch, err
		}
	}
	if ch.hasNew {
		ch.new, err = c.Decode(b)
	}
	return ch, err
}

// Count counts the rows of each group. A group that had rows and has none has
// the count 0.
func (g GroupedTable[T]) Count(opts ...Option) Table[int64] {
	return aggregatedTable(g, "count", counting[T](), append([]Option{WithCodec(codec.Int64())}, opts...))
}

// Reduce folds the values of each group into one of their kind, beginning with
// the first: add returns the result with a value more, subtract with one less.
func (g GroupedTable[T]) Reduce(add, subtract func(a, v T) T, opts ...Option) Table[T] {
	n := g.b().node("reduce", g.n)
	o := fold(opts)
	c := codecOf(n, &o, g.codec)
	n.own(o.name)
	out := newTable(n, c)
	if add == nil || subtract == nil {
		n.b.failf(n, "no function to add with, or none to subtract with")
		return out
	}
	if !needCodec(n, c) {
		return out
	}
	keepTable(g, &out, func(_ *exec, e *change[T], a T, ok bool) (T, bool) {
		if ok && e.hasOld {
			a = subtract(a, e.old)
		}
		switch {
		case !e.hasNew:
			return a, ok
		case !ok:
			return e.new, true
		}
		return add(a, e.new), true
	})
	return out
}

// AggregateTable folds the values of each group into an aggregate: one with
// Aggregator.Add and Aggregator.Subtract. The codec of the aggregates is
// required (WithCodec).
func AggregateTable[T, A any](g GroupedTable[T], by Aggregator[T, A], opts ...Option) Table[A] {
	return aggregatedTable(g, "aggregate", by, opts)
}

func aggregatedTable[T, A any](g GroupedTable[T], op string, by Aggregator[T, A], opts []Option) Table[A] {
	n := g.b().node(op, g.n)
	o := fold(opts)
	c := codecOf[A](n, &o, nil)
	n.own(o.name)
	out := newTable(n, c)
	if by.Add == nil || by.Subtract == nil {
		n.b.failf(n, "no function to add with, or none to subtract with (Aggregator.Add, Aggregator.Subtract)")
		return out
	}
	if !needCodec(n, c) {
		return out
	}
	keepTable(g, &out, func(x *exec, e *change[T], a A, ok bool) (A, bool) {
		key := x.key(e.key)
		if ok && e.hasOld { // without a row: it was deleted although there were values
			a = by.Subtract(key, e.old, a)
			ok = by.Delete == nil || !by.Delete(key, a)
		}
		if e.hasNew {
			if !ok {
				a = by.init()
			}
			a = by.Add(key, e.new, a)
			ok = by.Delete == nil || !by.Delete(key, a)
		}
		return a, ok
	})
	return out
}

func (g GroupedTable[T]) b() *Builder {
	if g.n == nil {
		return NewBuilder("")
	}
	return g.n.b
}

// keepTable makes out the table of what step makes of its rows. The time of a
// row is the highest of the changes in it.
func keepTable[T, A any](g GroupedTable[T], out *Table[A], step func(x *exec, e *change[T], a A, ok bool) (A, bool)) {
	rows := stored(out.n.store(""), out.codec)
	out.get = rows.get
	if g.out == nil {
		return // of no builder: an error has been reported
	}
	to := out.out
	g.out.add(func(x *exec, e change[T]) {
		ch := change[A]{key: e.key, time: e.time}
		var at int64
		if ch.old, at, ch.hasOld = rows.get(x, e.key); x.failed() {
			return
		}
		ch.new, ch.hasNew = step(x, &e, ch.old, ch.hasOld)
		if ch.hasOld {
			ch.time = max(ch.time, at)
		}
		if !ch.hasOld && !ch.hasNew {
			return
		}
		rows.set(x, row[A]{e.key, ch.new, ch.hasNew, ch.time})
		to.emit(x, ch)
	})
}
