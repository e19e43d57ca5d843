package stream

import "github.com/rekastream/reka/processor"

// Process runs a callback of package processor for each record: it may use
// handles, which are declared by edges, and hand on any number of records
// through emit. The context stands at the key and time of the record as it is
// here. Records without a value are counted and dropped.
func Process[T, U any](f Flow[T], fn func(ctx *processor.Context, v T, emit func(key string, v U)) error, edges []processor.Edge, opts ...Option) Flow[U] {
	out, ok := mapped[T, U](f, "process", fn != nil, opts)
	out.rekeyed = true
	out.n.edges = edges
	if !ok {
		return out
	}
	nulls := out.n.counter("records without a value")
	f.add(func(x *exec, e event[T]) {
		if e.null {
			x.count(nulls)
			return
		}
		key, at := x.rec.Key(), x.rec.Time()
		x.rec.Stand(e.key, e.time)
		err := fn(x.ctx, e.value, func(key string, v U) {
			out.out.emit(x, event[U]{key: bytesOf(key), value: v, time: e.time})
		})
		x.rec.Stand(key, at)
		if err != nil {
			x.fail(err)
		}
	})
	return out
}
