package stream

// This file holds the operations without state that change the type of
// values. They are functions: a method cannot have a type of its own.

// Map makes another record, key and value, of each. One without a value is
// counted and dropped: see SelectKey.
func Map[T, U any](f Flow[T], fn func(key string, v T) (string, U), opts ...Option) Flow[U] {
	if fn == nil {
		return TryMap[T, U](f, nil, opts...)
	}
	return TryMap(f, func(key string, v T) (string, U, error) {
		k, u := fn(key, v)
		return k, u, nil
	}, opts...)
}

// TryMap is Map with a function that can fail. An error fails the input's
// record: see processor.OnError.
func TryMap[T, U any](f Flow[T], fn func(key string, v T) (string, U, error), opts ...Option) Flow[U] {
	out, ok := mapped[T, U](f, "map", fn != nil, opts)
	out.rekeyed = true
	if !ok {
		return out
	}
	f.addValued(out.n, func(x *exec, e event[T]) {
		key, v, err := fn(x.key(e.key), e.value)
		if err != nil {
			x.fail(err)
			return
		}
		out.out.emit(x, event[U]{key: bytesOf(key), value: v, time: e.time})
	})
	return out
}

// MapValues makes another value of each. Records without a value pass.
func MapValues[T, U any](f Flow[T], fn func(key string, v T) U, opts ...Option) Flow[U] {
	out, ok := mapped[T, U](f, "mapvalues", fn != nil, opts)
	if !ok {
		return out
	}
	f.add(func(x *exec, e event[T]) {
		u := event[U]{key: e.key, null: e.null, time: e.time}
		if !e.null {
			u.value = fn(x.key(e.key), e.value)
		}
		out.out.emit(x, u)
	})
	return out
}

// TryMapValues is MapValues with a function that can fail.
func TryMapValues[T, U any](f Flow[T], fn func(key string, v T) (U, error), opts ...Option) Flow[U] {
	out, ok := mapped[T, U](f, "mapvalues", fn != nil, opts)
	if !ok {
		return out
	}
	f.add(func(x *exec, e event[T]) {
		u := event[U]{key: e.key, null: e.null, time: e.time}
		if !e.null {
			var err error
			if u.value, err = fn(x.key(e.key), e.value); err != nil {
				x.fail(err)
				return
			}
		}
		out.out.emit(x, u)
	})
	return out
}

// FlatMap makes any number of records of each: those that fn gives to emit.
// One without a value is counted and dropped.
func FlatMap[T, U any](f Flow[T], fn func(key string, v T, emit func(key string, v U)), opts ...Option) Flow[U] {
	out, ok := mapped[T, U](f, "flatmap", fn != nil, opts)
	out.rekeyed = true
	if !ok {
		return out
	}
	f.addValued(out.n, func(x *exec, e event[T]) {
		fn(x.key(e.key), e.value, func(key string, v U) {
			out.out.emit(x, event[U]{key: bytesOf(key), value: v, time: e.time})
		})
	})
	return out
}

// FlatMapValues makes any number of values of each, under the same key. One
// without a value is counted and dropped.
func FlatMapValues[T, U any](f Flow[T], fn func(key string, v T, emit func(v U)), opts ...Option) Flow[U] {
	out, ok := mapped[T, U](f, "flatmapvalues", fn != nil, opts)
	if !ok {
		return out
	}
	f.addValued(out.n, func(x *exec, e event[T]) {
		fn(x.key(e.key), e.value, func(v U) {
			out.out.emit(x, event[U]{key: e.key, value: v, time: e.time})
		})
	})
	return out
}

// mapped declares an operation from T to U.
func mapped[T, U any](f Flow[T], op string, ok bool, opts []Option) (Flow[U], bool) {
	o := fold(opts)
	n := f.b().node(op, f.n)
	out := newFlow(n, codecOf[U](n, &o, nil))
	out.rekeyed = f.rekeyed
	if !ok {
		f.b().failf(n, "no function")
	}
	return out, ok
}
