package stream

import (
	"errors"
	"math"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/window"
)

// Cogrouped are several streams of one key that are folded into one aggregate.
type Cogrouped[A any] struct {
	g Grouped[step[A]]
}

// step is a record of one of the streams, as what it does to the aggregate.
type step[A any] interface {
	add(key string, a A) A
	append(dst []byte) ([]byte, error)
}

// addition is what the records of one stream do.
type addition[T, A any] struct {
	fn     func(key string, v T, a A) A
	codec  codec.Codec[T]
	number byte // of the stream
}

type stepOf[T, A any] struct {
	of *addition[T, A]
	v  T
}

func (s stepOf[T, A]) add(key string, a A) A { return s.of.fn(key, s.v, a) }

func (s stepOf[T, A]) append(dst []byte) ([]byte, error) {
	return s.of.codec.Append(append(dst, s.of.number), s.v)
}

// stepCodec is the codec of steps: the number of the stream, then the value.
type stepCodec[A any] struct {
	decode []func([]byte) (step[A], error) // by number
}

func (stepCodec[A]) Append(dst []byte, s step[A]) ([]byte, error) { return s.append(dst) }

func (c stepCodec[A]) Decode(b []byte) (step[A], error) {
	if len(b) == 0 || int(b[0]) >= len(c.decode) {
		return nil, errNoStream
	}
	return c.decode[b[0]](b[1:])
}

var errNoStream = errors.New("a record of a stream that is not there")

// Adding is one of the streams of Cogroup with its own function.
type Adding[A any] struct {
	in     *Flow[step[A]]
	number *byte
	decode func([]byte) (step[A], error) // nil: without a codec
}

// Add says how the values of one stream are added to an aggregate.
func Add[T, A any](g Grouped[T], add func(key string, v T, a A) A) Adding[A] {
	in := g.flow()
	out := newFlow[step[A]](in.b().node("cogroup", in.n), nil)
	by := &addition[T, A]{fn: add, codec: in.codec}
	a := Adding[A]{in: &out, number: &by.number}
	if add == nil {
		in.b().failf(out.n, "no function")
		return a
	}
	if in.codec != nil {
		a.decode = func(b []byte) (step[A], error) {
			v, err := in.codec.Decode(b)
			return stepOf[T, A]{by, v}, err
		}
	}
	in.add(func(x *exec, e event[T]) {
		out.out.emit(x, event[step[A]]{key: e.key, null: e.null, time: e.time, value: stepOf[T, A]{by, e.value}})
	})
	return a
}

// Cogroup gathers several streams by key, at most 256, to be folded into one
// aggregate, each by a function of its own.
func Cogroup[A any](first Adding[A], others ...Adding[A]) Cogrouped[A] {
	var c stepCodec[A]
	var flows []Flow[step[A]]
	whole := true
	for i, a := range append([]Adding[A]{first}, others...) {
		if a.in == nil || i > math.MaxUint8 {
			flows = append(flows, Flow[step[A]]{}) // reported by Merge
			continue
		}
		*a.number = byte(i)
		flows = append(flows, *a.in)
		c.decode = append(c.decode, a.decode)
		whole = whole && a.decode != nil
	}
	in := flows[0].Merge(flows[1:]...)
	if whole {
		in = in.WithCodec(c)
	}
	return Cogrouped[A]{g: in.GroupByKey()}
}

// Aggregate folds the records of each key into an aggregate that begins with
// init; nil: the zero A. See the function Aggregate.
func (c Cogrouped[A]) Aggregate(init func() A, opts ...Option) Table[A] {
	return Aggregate(c.g, Aggregator[step[A], A]{Init: init, Add: apply[A]}, opts...)
}

func apply[A any](key string, s step[A], a A) A { return s.add(key, a) }

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
