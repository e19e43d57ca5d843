package stream

import (
	"fmt"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/processor"
)

// Flow is a stream of records on its way through the graph. Its methods
// declare what is done with each record; they run nothing. A flow can be used
// any number of times: each use sees every record.
type Flow[T any] struct {
	n       *node
	out     *port[event[T]]
	codec   codec.Codec[T] // nil: unknown
	rekeyed bool           // keys may lie in other partitions than they should
	shared  *shared[T]     // the one repartition topic of this flow
}

// shared is made by the first operation that needs it.
type shared[T any] struct {
	flow     *Flow[T]
	nullKeys bool // something behind it has a result for records without a key
}

func newFlow[T any](n *node, c codec.Codec[T]) Flow[T] {
	return Flow[T]{n: n, out: &port[event[T]]{}, codec: c, shared: &shared[T]{}}
}

// then declares an operation that changes neither type nor key.
func (f Flow[T]) then(op string, parents ...*node) Flow[T] {
	out := newFlow(f.b().node(op, append([]*node{f.n}, parents...)...), f.codec)
	out.rekeyed = f.rekeyed
	return out
}

// b returns the builder. The zero Flow has one that nobody reads.
func (f Flow[T]) b() *Builder {
	if f.n == nil {
		return NewBuilder("")
	}
	return f.n.b
}

// SourceOption is an option of From: those of processor.Input.
type SourceOption = processor.InputOption

// From reads a topic as a stream. Several flows may read one topic, as streams
// and as tables.
//
// Records without a key or without a value pass; each operation says what it
// does with them. Functions are never called without a value.
func From[T any](b *Builder, t reka.Topic[T], opts ...SourceOption) Flow[T] {
	src := sourceOf(b, t, "from")
	if src == nil {
		return newFlow[T](b.node("from"), nil)
	}
	if j := src.n.join; j != nil && j.spec.First {
		b.failf(src.n, "read as a table, too, whose rows come before any record: TableFirst does not go with it")
	}
	if src.n.input == nil {
		spec := graph.Input{Topic: t.Name()}
		for _, o := range opts {
			if o == nil {
				b.failf(src.n, "a nil option")
				continue
			}
			processor.ApplyInput(o, &spec)
		}
		spec.Nulls, spec.NullKeys = true, true
		src.n.input = sourceInput(src.flow, spec)
	} else if len(opts) > 0 {
		b.failf(src.n, "options belong to the first use of a topic")
	}
	return src.flow
}

// source is a topic that the graph reads, as a stream, as a table, or both.
type source[T any] struct {
	n    *node
	flow Flow[T]
}

// sourceOf returns what stands for a topic in the graph, nil if it is none, or
// has another type already.
func sourceOf[T any](b *Builder, t reka.Topic[T], op string) *source[T] {
	if t == nil || t.Name() == "" || t.Codec() == nil {
		b.fail(fmt.Errorf("%s: a topic without a name or a codec (declare it with NewStream or NewTable)", op))
		return nil
	}
	if was, ok := b.sources[t.Name()]; ok {
		src, ok := was.(*source[T])
		if !ok {
			var zero T
			b.fail(fmt.Errorf("%s: topic %s is read as two types, one of them %T", op, t.Name(), zero))
			return nil
		}
		return src
	}
	n := b.node("from")
	n.base = t.Name()
	src := &source[T]{n: n, flow: newFlow(n, t.Codec())}
	b.sources[t.Name()] = src
	return src
}

// sourceInput is the input whose records a flow begins with.
func sourceInput[T any](f Flow[T], spec graph.Input) *input {
	c := f.codec
	return &input{
		spec:   spec,
		decode: func(b []byte) error { _, err := c.Decode(b); return err },
		run: func(ctx *processor.Context) error {
			x := execIn(ctx)
			src := x.rec.Source()
			e := event[T]{key: src.Key, time: x.rec.Time(), null: src.Value == nil}
			if !e.null {
				var err error
				if e.value, err = c.Decode(src.Value); err != nil {
					return &task.DecodeError{Err: err}
				}
			}
			f.out.emit(x, e)
			return nil
		},
	}
}

// WithCodec sets the codec of the flow's values, for operations behind it that
// need bytes.
func (f Flow[T]) WithCodec(c codec.Codec[T]) Flow[T] {
	f.codec = c
	return f
}

// Filter passes the records for which keep is true, and those without a value.
func (f Flow[T]) Filter(keep func(key string, v T) bool) Flow[T] {
	out := f.then("filter")
	if keep == nil {
		f.b().failf(out.n, "no function")
		return out
	}
	f.add(func(x *exec, e event[T]) {
		if e.null || keep(x.key(e.key), e.value) {
			out.out.emit(x, e)
		}
	})
	return out
}

// FilterNot passes the records for which drop is false, and those without a
// value.
func (f Flow[T]) FilterNot(drop func(key string, v T) bool) Flow[T] {
	if drop == nil {
		return f.Filter(nil)
	}
	return f.Filter(func(key string, v T) bool { return !drop(key, v) })
}

// Peek calls look for every record that has a value, and passes all.
func (f Flow[T]) Peek(look func(key string, v T)) Flow[T] {
	out := f.then("peek")
	if look == nil {
		f.b().failf(out.n, "no function")
		return out
	}
	f.add(func(x *exec, e event[T]) {
		if !e.null {
			look(x.key(e.key), e.value)
		}
		out.out.emit(x, e)
	})
	return out
}

// Merge passes the records of several flows. Those of one flow keep their
// order.
func (f Flow[T]) Merge(others ...Flow[T]) Flow[T] {
	parents := make([]*node, 0, len(others))
	for _, o := range others {
		parents = append(parents, o.n)
	}
	out := f.then("merge", parents...)
	for _, in := range append([]Flow[T]{f}, others...) {
		out.rekeyed = out.rekeyed || in.rekeyed
		in.add(out.out.emit)
	}
	return out
}

// SelectKey gives each record another key. Records without a value have
// nothing to make a key of: they are counted and dropped.
func (f Flow[T]) SelectKey(key func(key string, v T) string) Flow[T] {
	out := f.then("selectkey")
	out.rekeyed = true
	if key == nil {
		f.b().failf(out.n, "no function")
		return out
	}
	f.addValued(out.n, func(x *exec, e event[T]) {
		e.key = bytesOf(key(x.key(e.key), e.value))
		out.out.emit(x, e)
	})
	return out
}

// add puts an operation behind the flow.
func (f Flow[T]) add(s sink[event[T]]) {
	if f.out != nil && !f.n.b.built {
		f.out.add(s)
	}
}

// addValued is add for an operation n that needs a value: records without one
// are counted and dropped.
func (f Flow[T]) addValued(n *node, s sink[event[T]]) {
	nulls := n.counter("records without a value")
	f.add(func(x *exec, e event[T]) {
		if e.null {
			x.count(nulls)
			return
		}
		s(x, e)
	})
}
