package stream

import (
	"github.com/rekastream/reka/codec"
)

// Grouped is a stream whose records are gathered by key: what aggregates it
// has all records of a key in one place.
type Grouped[T any] struct {
	in Flow[T]
	o  options
}

// GroupByKey gathers the records by their keys. If these were changed since
// the records were read, they go through a repartition topic first, which all
// operations behind this flow share (Named and Partitions are about that
// topic).
func (f Flow[T]) GroupByKey(opts ...Option) Grouped[T] {
	o := fold(opts)
	n := &node{b: f.b(), op: "groupbykey"} // for errors only: it is no operation
	if f.n != nil {
		n.base = f.n.base
	}
	switch name := o.misplaced(n.op); {
	case o.bad:
		f.b().failf(n, "a nil option")
	case name != "":
		f.b().failf(n, "%s is no option of it", name)
	case o.partitions != 0 && !f.rekeyed && f.n != nil:
		f.b().failf(n, "Partitions(%d): keys are unchanged, so nothing is repartitioned (see Repartition)", o.partitions)
	}
	return Grouped[T]{in: f, o: o}
}

// GroupBy gathers the records by another key: SelectKey, then GroupByKey.
func (f Flow[T]) GroupBy(key func(key string, v T) string, opts ...Option) Grouped[T] {
	return f.SelectKey(key).GroupByKey(opts...)
}

// flow returns the records, each where its key belongs.
func (g Grouped[T]) flow() Flow[T] { return g.in.placed(g.o) }

// Aggregator says how values become an aggregate. Add is required, the others
// where they say so. The functions must not change what they are given, nor
// keep it: the aggregate of before is handed on beside the new one, and may be
// merged again. So append to a copy (slices.Concat), and not in place.
type Aggregator[T, A any] struct {
	// Init returns the aggregate of no values. Nil: the zero A.
	Init func() A

	// Add returns the aggregate with a value more.
	Add func(key string, v T, a A) A

	// Subtract returns the aggregate with a value less: required for tables,
	// where a row that changes is subtracted first and added then.
	Subtract func(key string, v T, a A) A

	// Merge returns the aggregate of both: required for sessions, which grow
	// together.
	Merge func(key string, a, b A) A

	// Mergeable says that Merge is associative and commutative, and that Init
	// changes nothing in it. Then the cost of a record in hopping windows that
	// are emitted on close does not grow with their number.
	Mergeable bool

	// Delete reports whether an aggregate is to be deleted. Nil: none is.
	Delete func(key string, a A) bool
}

func (g *Aggregator[T, A]) init() (a A) {
	if g.Init != nil {
		return g.Init()
	}
	return a
}

// step is one value more.
func (g *Aggregator[T, A]) step(x *exec, e *event[T], a A) (A, bool) {
	key := x.key(e.key)
	a = g.Add(key, e.value, a)
	return a, g.Delete == nil || !g.Delete(key, a)
}

// counting is the aggregator of Count.
func counting[T any]() Aggregator[T, int64] {
	return Aggregator[T, int64]{
		Add:      func(_ string, _ T, n int64) int64 { return n + 1 },
		Subtract: func(_ string, _ T, n int64) int64 { return n - 1 },
		Merge:    func(_ string, a, b int64) int64 { return a + b }, Mergeable: true,
	}
}

// Count counts the records of each key. Records without a key or value are
// counted apart and do not count.
func (g Grouped[T]) Count(opts ...Option) Table[int64] {
	return aggregated(g, "count", counting[T](), append([]Option{WithCodec(codec.Int64())}, opts...))
}

// Reduce folds the values of each key into one of their kind, beginning with
// the first. Records without a key or value are counted and dropped.
func (g Grouped[T]) Reduce(fn func(a, b T) T, opts ...Option) Table[T] {
	in := g.flow()
	n := in.b().node("reduce", in.n)
	o := fold(opts)
	c := codecOf(n, &o, in.codec)
	n.own(o.name)
	out := newTable(n, c)
	if fn == nil {
		n.b.failf(n, "no function")
		return out
	}
	if !needCodec(n, c) {
		return out
	}
	keep(n, in, &out, func(_ *exec, e *event[T], old T, was bool) (T, bool) {
		if !was {
			return e.value, true
		}
		return fn(old, e.value), true
	})
	return out
}

// Aggregate folds the values of each key into an aggregate. Records without a
// key or value are counted and dropped. The codec of the aggregates is
// required (WithCodec).
func Aggregate[T, A any](g Grouped[T], by Aggregator[T, A], opts ...Option) Table[A] {
	return aggregated(g, "aggregate", by, opts)
}

func aggregated[T, A any](g Grouped[T], op string, by Aggregator[T, A], opts []Option) Table[A] {
	in := g.flow()
	n := in.b().node(op, in.n)
	o := fold(opts)
	c := codecOf[A](n, &o, nil)
	n.own(o.name)
	out := newTable(n, c)
	if by.Add == nil {
		n.b.failf(n, "Aggregator.Add is missing")
		return out
	}
	if !needCodec(n, c) {
		return out
	}
	keep(n, in, &out, func(x *exec, e *event[T], old A, was bool) (A, bool) {
		if !was {
			old = by.init()
		}
		return by.step(x, e, old)
	})
	return out
}

// keep makes out the table of what step makes of the rows of n. The time of a
// row is the highest of the records in it.
func keep[T, A any](n *node, in Flow[T], out *Table[A], step func(x *exec, e *event[T], old A, was bool) (A, bool)) {
	rows := stored(n.store(""), out.codec)
	out.get = rows.get
	nulls := n.counter("records without a key or value")
	to := out.out
	in.add(func(x *exec, e event[T]) {
		if e.key == nil || e.null {
			x.count(nulls)
			return
		}
		ch := change[A]{key: e.key, time: e.time}
		var at int64
		if ch.old, at, ch.hasOld = rows.get(x, e.key); x.failed() {
			return
		}
		ch.new, ch.hasNew = step(x, &e, ch.old, ch.hasOld)
		if !ch.hasOld && !ch.hasNew {
			return
		}
		if ch.hasOld {
			ch.time = max(ch.time, at)
		}
		rows.set(x, row[A]{e.key, ch.new, ch.hasNew, ch.time})
		to.emit(x, ch)
	})
}
