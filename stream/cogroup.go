package stream

import "github.com/rekastream/reka/window"

// Cogrouped are several streams of one key that are folded into one aggregate.
type Cogrouped[A any] struct {
	g Grouped[step[A]]
}

// step is a record of one of the streams, as what it does to the aggregate.
type step[A any] func(key string, a A) A

// Adding is one of the streams of Cogroup with its own function.
type Adding[A any] struct{ in *Flow[step[A]] }

// Add says how the values of one stream are added to an aggregate.
func Add[T, A any](g Grouped[T], add func(key string, v T, a A) A) Adding[A] {
	in := g.flow()
	out := newFlow[step[A]](in.b().node("cogroup", in.n), nil)
	if add == nil {
		in.b().failIn(out.n, "no function")
		return Adding[A]{&out}
	}
	in.add(func(x *exec, e event[T]) {
		v := e.value
		out.out.emit(x, event[step[A]]{key: e.key, null: e.null, time: e.time, value: func(key string, a A) A { return add(key, v, a) }})
	})
	return Adding[A]{&out}
}

// Cogroup gathers several streams by key, to be folded into one aggregate,
// each by a function of its own.
func Cogroup[A any](first Adding[A], others ...Adding[A]) Cogrouped[A] {
	flows := make([]Flow[step[A]], 0, len(others))
	for _, o := range others {
		flows = append(flows, *o.in)
	}
	return Cogrouped[A]{g: first.in.Merge(flows...).GroupByKey()}
}

// Aggregate folds the records of each key into an aggregate that begins with
// init; nil: the zero A. See the function Aggregate.
func (c Cogrouped[A]) Aggregate(init func() A, opts ...Option) Table[A] {
	return Aggregate(c.g, Aggregator[step[A], A]{Init: init, Add: apply[A]}, opts...)
}

func apply[A any](key string, s step[A], a A) A { return s(key, a) }

// Windowed gathers them by window, too.
func (c Cogrouped[A]) Windowed(w window.Windows) CogroupedWindows[A] {
	return CogroupedWindows[A]{c.g.Windowed(w)}
}

// CogroupedWindows are several streams of one key by window.
type CogroupedWindows[A any] struct{ w Windowed[step[A]] }

// Aggregate folds the records of each key and window into an aggregate that
// begins with init; nil: the zero A. Merge joins two aggregates: required for
// sessions.
func (c CogroupedWindows[A]) Aggregate(init func() A, merge func(key string, a, b A) A, opts ...Option) Windows[A] {
	return AggregateWindows(c.w, Aggregator[step[A], A]{Init: init, Add: apply[A], Merge: merge}, opts...)
}
