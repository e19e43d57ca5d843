package stream

import (
	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
)

// GlobalTable is a table of which every process has all rows. They are loaded
// to their end before the group's first record, and follow the topic from then
// on as its records come, whatever their times.
type GlobalTable[T any] struct {
	b     *Builder
	topic string
	codec codec.Codec[T]
}

// Global reads a topic as a table that is at hand everywhere, by any key.
// Records without a value delete, those without a key are passed over.
func Global[T any](b *Builder, t reka.Table[T]) GlobalTable[T] {
	if t.Name() == "" || t.Codec() == nil {
		b.failf(&node{b: b, op: "global"}, "a topic without a name or a codec (declare it with NewTable)")
	}
	return GlobalTable[T]{b: b, topic: t.Name(), codec: t.Codec()}
}

// JoinGlobal joins each record with the row of a global table whose key keyOf
// returns; false says that there is none. The result has the record's key and
// time. A record without a row is dropped; one without a value, or without
// such a key, is counted, too. The key of the record itself may be missing.
func JoinGlobal[L, R, V any](f Flow[L], t GlobalTable[R], keyOf func(key string, v L) (string, bool), fn func(key string, l L, r R) V, opts ...Option) Flow[V] {
	j := globalJoin[L, R, V]{keyOf: keyOf}
	if fn != nil {
		j.fn = func(key string, l L, r *R) V { return fn(key, l, *r) }
	}
	return j.declare(f, t, "joinglobal", opts)
}

// LeftJoinGlobal is JoinGlobal with a result for every record that has a
// value; the row is nil if there is none.
func LeftJoinGlobal[L, R, V any](f Flow[L], t GlobalTable[R], keyOf func(key string, v L) (string, bool), fn func(key string, l L, r *R) V, opts ...Option) Flow[V] {
	j := globalJoin[L, R, V]{keyOf: keyOf, fn: fn, left: true}
	return j.declare(f, t, "leftjoinglobal", opts)
}

type globalJoin[L, R, V any] struct {
	keyOf func(key string, v L) (string, bool)
	fn    func(key string, l L, r *R) V
	left  bool
}

func (j *globalJoin[L, R, V]) declare(f Flow[L], t GlobalTable[R], op string, opts []Option) Flow[V] {
	n := f.b().node(op, f.n)
	o := fold(opts)
	out := newFlow(n, codecOf[V](n, &o, nil))
	out.rekeyed = f.rekeyed
	switch {
	case t.b != n.b:
		n.b.failf(n, "its global table is of another builder, or was not made by one")
		return out
	case j.keyOf == nil || j.fn == nil:
		n.b.failf(n, "no function")
		return out
	case t.codec == nil:
		return out // reported by Global
	}
	rows := n.lookup(t.topic)
	n.details = append(n.details, t.topic)
	nulls, keys := n.counter("records without a value"), n.counter("records without a key of the table")
	f.add(func(x *exec, e event[L]) {
		if e.null {
			x.count(nulls)
			return
		}
		var r R
		key, ok := j.keyOf(x.key(e.key), e.value)
		if !ok && !j.left {
			x.count(keys)
			return
		}
		if ok {
			x.valueBuf, ok = x.rec.Lookup(rows.index, x.valueBuf[:0], bytesOf(key))
		}
		if ok {
			r, ok = decodeStored(x, t.codec, x.valueBuf, place{t.topic, bytesOf(key)})
		}
		if x.failed() || !ok && !j.left {
			return
		}
		out.out.emit(x, event[V]{key: e.key, value: j.fn(x.key(e.key), e.value, optional(&r, ok)), time: e.time})
	})
	return out
}
