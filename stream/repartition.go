package stream

import (
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/processor"
)

// Repartition sends the records through a topic of the group's own, so that
// each lies in the partition of its key. What groups or joins by key does that
// by itself where it must; this one is for a partition count (Partitions), or a
// name (Named), of one's own. Records without a key are counted and dropped.
func (f Flow[T]) Repartition(opts ...Option) Flow[T] {
	o := fold(opts)
	f.codec = codecOf(f.then("repartition").n, &o, f.codec)
	return f.through("repartition", o, new(bool))
}

// placed returns the flow with each record in the partition of its key: as it
// is, or behind a repartition topic that everything behind this flow shares.
func (f Flow[T]) placed(o options) Flow[T] {
	if !f.rekeyed || f.n == nil {
		return f
	}
	if f.shared.flow == nil {
		through := f.through("keyed", options{name: o.name, partitions: o.partitions}, &f.shared.nullKeys)
		f.shared.flow = &through
	}
	return *f.shared.flow
}

// placedWithNulls is placed for operations that have a result for records
// without a key: these go through the topic, too, to any partition.
func (f Flow[T]) placedWithNulls(o options) Flow[T] {
	if f.shared != nil {
		f.shared.nullKeys = true
	}
	return f.placed(o)
}

// through is the flow behind a repartition topic. Records without a key pass
// if nullKeys is set by the time that the graph runs.
func (f Flow[T]) through(op string, o options, nullKeys *bool) Flow[T] {
	b := f.b()
	n := b.node(op, f.n)
	topic := b.repartition(n.own(o.name))
	src := repartitioned(n, o.partitions)
	out := newFlow(src, f.codec)
	if !needCodec(n, f.codec) {
		return out
	}
	src.input = sourceInput(out, graph.Input{Topic: topic, Nulls: true, NullKeys: true, Repartition: &graph.Repartition{Partitions: o.partitions}})
	write := toTopic(n, topic, f.codec)
	keys := n.counter("records without a key")
	f.add(func(x *exec, e event[T]) {
		if e.key == nil && !*nullKeys {
			x.count(keys)
			return
		}
		write(x, e)
	})
	return out
}

// repartitioned is the source behind a repartition topic that n writes.
func repartitioned(n *node, partitions int32) *node {
	src := n.b.node("repartitioned")
	src.base, src.name = n.name, n.name
	src.hold = n.hold + n.adds // what comes through it is as far behind
	src.links = []*node{n}
	if partitions < 0 {
		n.b.failf(n, "Partitions(%d)", partitions)
	}
	return src
}

// toTopic returns what writes events to a topic, with their times.
func toTopic[T any](n *node, topic string, c codec.Codec[T]) sink[event[T]] {
	to := n.output(topic)
	return func(x *exec, e event[T]) {
		out := task.Emission{Key: e.key, Time: e.time, Partition: -1}
		if !e.null {
			if out.Value = encode(x, c, e.value); out.Value == nil {
				return
			}
		}
		x.rec.Emit(to.index, out)
	}
}

// encode returns the bytes of a value in scratch memory, never nil unless the
// record has failed.
func encode[T any](x *exec, c codec.Codec[T], v T) []byte {
	b, err := c.Append(x.valueBuf[:0], v)
	if err != nil {
		x.fail(&processor.EncodeError{Err: err})
		return nil
	}
	if b == nil {
		b = []byte{}
	}
	x.valueBuf = b
	return b
}
