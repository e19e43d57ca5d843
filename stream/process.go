package stream

import "github.com/rekastream/reka/processor"

// ProcessValues is Process for a callback that keeps the key: what it hands on
// lies where it is.
func ProcessValues[T, U any](f Flow[T], fn func(ctx *processor.Context, v T, emit func(v U)) error, edges []processor.Edge, opts ...Option) Flow[U] {
	var keyed func(*processor.Context, T, func(string, U)) error
	if fn != nil {
		keyed = func(ctx *processor.Context, v T, emit func(string, U)) error {
			return fn(ctx, v, func(v U) { emit("", v) })
		}
	}
	return processed(f, keyed, true, edges, opts)
}

// Process runs a callback of package processor for each record: it may use
// handles, which are declared by edges, and hand on any number of records
// through emit. The context stands at the key and time of the record as it is
// here. Records without a value are counted and dropped.
func Process[T, U any](f Flow[T], fn func(ctx *processor.Context, v T, emit func(key string, v U)) error, edges []processor.Edge, opts ...Option) Flow[U] {
	return processed(f, fn, false, edges, opts)
}

func processed[T, U any](f Flow[T], fn func(ctx *processor.Context, v T, emit func(key string, v U)) error, keep bool, edges []processor.Edge, opts []Option) Flow[U] {
	out, ok := mapped[T, U](f, "process", fn != nil, opts)
	out.rekeyed = out.rekeyed || !keep
	out.n.edges = edges
	if !ok {
		return out
	}
	f.addValued(out.n, func(x *exec, e event[T]) {
		key, at := x.rec.Key(), x.rec.Time()
		x.rec.Stand(e.key, e.time)
		err := fn(x.ctx, e.value, func(key string, v U) {
			to := event[U]{key: e.key, value: v, time: e.time}
			if !keep {
				to.key = bytesOf(key)
			}
			out.out.emit(x, to)
		})
		x.rec.Stand(key, at)
		if err != nil {
			x.fail(err)
		}
	})
	return out
}
