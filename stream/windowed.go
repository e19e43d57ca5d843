package stream

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/window"
)

// Windowed is a stream whose records are gathered by key and window.
type Windowed[T any] struct {
	g    Grouped[T]
	w    window.Windows
	late *reka.Stream[T]
}

// Windowed gathers the records by window, too.
func (g Grouped[T]) Windowed(w window.Windows) Windowed[T] { return Windowed[T]{g: g, w: w} }

// Late writes the records that come too late for a window to a topic, each
// once, under the key by which they are grouped, with the windows that it
// missed in its headers (see LateWindows). Late records are counted in any
// case; without a late output they are logged, too.
func (w Windowed[T]) Late(t reka.Stream[T]) Windowed[T] {
	w.late = &t
	return w
}

// Windows are the results of an aggregation by window: a table whose rows are
// of a key and a window.
type Windows[A any] struct {
	n     *node
	out   *port[windowChange[A]] // every update
	final *port[windowChange[A]] // once, on close
	codec codec.Codec[A]
	w     window.Windows
	// onClose makes the operation release finals; it is called before the
	// graph is built.
	onClose func()
	// settled says why finals cannot be had of these results; empty: they can.
	settled string
}

const finalAlready = "the results are final already"

// windowChange is what happened to a row of a window.
type windowChange[A any] struct {
	win window.Window
	change[A]
}

// Count counts the records of each key and window. See Grouped.Count.
func (w Windowed[T]) Count(opts ...Option) Windows[int64] {
	return aggregateWindows(w, "count", counting[T](), append([]Option{WithCodec(codec.Int64())}, opts...))
}

// Reduce folds the values of each key and window into one of their kind. fn
// must be associative: sessions grow together.
func (w Windowed[T]) Reduce(fn func(a, b T) T, opts ...Option) Windows[T] {
	by := Aggregator[T, reduced[T]]{
		Add: func(_ string, v T, a reduced[T]) reduced[T] {
			if a.ok {
				v = fn(a.v, v)
			}
			return reduced[T]{v, true}
		},
		Merge: func(_ string, a, b reduced[T]) reduced[T] {
			if a.ok && b.ok {
				return reduced[T]{fn(a.v, b.v), true}
			}
			if a.ok {
				return a
			}
			return b
		},
	}
	if fn == nil {
		by.Add = nil
	}
	o := fold(opts)
	c := w.g.in.codec
	if set, ok := o.codec.(codec.Codec[T]); ok {
		c = set
	}
	if c != nil {
		opts = append(slices.Clip(opts), WithCodec[reduced[T]](reducedCodec[T]{c}))
	}
	in := aggregateWindows(w, "reduce", by, opts)
	plain := func(e windowChange[reduced[T]]) windowChange[T] {
		return windowChange[T]{e.win, change[T]{key: e.key, old: e.old.v, new: e.new.v, hasOld: e.hasOld, hasNew: e.hasNew, time: e.time}}
	}
	out := Windows[T]{n: in.n, out: &port[windowChange[T]]{}, final: &port[windowChange[T]]{}, codec: c, w: w.w, onClose: in.onClose}
	in.out.add(func(x *exec, e windowChange[reduced[T]]) { out.out.emit(x, plain(e)) })
	in.final.add(func(x *exec, e windowChange[reduced[T]]) { out.final.emit(x, plain(e)) })
	return out
}

// reduced is a value, or none yet.
type reduced[T any] struct {
	v  T
	ok bool
}

// reducedCodec stores what there is: rows without a value do not exist.
type reducedCodec[T any] struct{ codec.Codec[T] }

func (c reducedCodec[T]) Append(dst []byte, r reduced[T]) ([]byte, error) {
	return c.Codec.Append(dst, r.v)
}

func (c reducedCodec[T]) Decode(b []byte) (reduced[T], error) {
	v, err := c.Codec.Decode(b)
	return reduced[T]{v, true}, err
}

// AggregateWindows folds the values of each key and window into an aggregate.
// See Aggregate; sessions need Aggregator.Merge.
func AggregateWindows[T, A any](w Windowed[T], by Aggregator[T, A], opts ...Option) Windows[A] {
	return aggregateWindows(w, "aggregate", by, opts)
}

// windowOp is an aggregation by window on its way into the graph.
type windowOp[T, A any] struct {
	n   *node
	in  Flow[T]
	w   window.Windows
	by  Aggregator[T, A]
	out Windows[A]

	lateness
	nulls   *counter
	lateOut func(x *exec, e *event[T], missed []window.Window)
	finals  bool
}

func aggregateWindows[T, A any](w Windowed[T], op string, by Aggregator[T, A], opts []Option) Windows[A] {
	in := w.g.flow()
	n := in.b().node(op, in.n)
	o := fold(opts)
	c := codecOf[A](n, &o, nil)
	n.own(o.name)
	n.details = append(n.details, w.w.String())
	p := &windowOp[T, A]{n: n, in: in, w: w.w, by: by}
	p.out = Windows[A]{n: n, out: &port[windowChange[A]]{}, final: &port[windowChange[A]]{}, codec: c, w: w.w, onClose: func() { p.finals = true }}
	if err := w.w.Validate(); err != nil {
		n.b.failf(n, "%w", err)
		return p.out
	}
	if by.Add == nil {
		n.b.failf(n, "no function to add with")
		return p.out
	}
	if by.Merge == nil && w.w.Kind() == window.KindSession {
		n.b.failf(n, "sessions need a function to merge with (Aggregator.Merge)")
		return p.out
	}
	if !needCodec(n, c) {
		return p.out
	}
	p.nulls, p.lateness = n.counter("records without a key or value"), n.lateness()
	if w.late != nil {
		p.lateTo(*w.late)
	}
	var run sink[event[T]]
	switch w.w.Kind() {
	case window.KindSession:
		run = sessions(p)
	case window.KindSliding:
		run = sliding(p)
	default:
		run = timeWindows(p)
	}
	in.add(func(x *exec, e event[T]) {
		if e.key == nil || e.null {
			x.count(p.nulls)
			return
		}
		run(x, e)
	})
	return p.out
}

// lateTo makes a topic take late records.
func (p *windowOp[T, A]) lateTo(t reka.Stream[T]) {
	if t.Name() == "" || t.Codec() == nil {
		p.n.b.failf(p.n, "a late output without a name or a codec")
		return
	}
	write := lateOutput(p.n, t)
	p.lateOut = func(x *exec, e *event[T], missed []window.Window) {
		var list []byte
		for i, w := range missed {
			if i > 0 {
				list = append(list, ',')
			}
			list = strconv.AppendInt(list, w.Start, 10)
			list = append(list, '-')
			list = strconv.AppendInt(list, w.End, 10)
		}
		write(x, e, kafka.Header{Key: LateWindows, Value: list})
	}
}

// missed accounts for a late record: counted windows were closed.
func (p *windowOp[T, A]) missed(x *exec, e *event[T], wins []window.Window) {
	n := int64(len(wins))
	if p.w.Kind() == window.KindSliding || p.w.Kind() == window.KindSession {
		n = 1
	}
	p.count(x, n)
	if p.lateOut != nil {
		p.lateOut(x, e, wins)
		return
	}
	x.rec.Note("late record", func() error {
		return fmt.Errorf("%s: key %s at %d is late for the window %d-%d: stream time is %d",
			p.n.name, kafka.QuoteKey(e.key), e.time, wins[0].Start, wins[0].End, x.now(p.clock))
	})
}

// OnClose emits the result of each window once, when it is closed: it is
// final. Results come in order of the windows' ends, then of their keys.
func (w Windows[A]) OnClose() Windows[A] {
	b := w.b()
	out := w
	out.n = b.node("onclose", w.n)
	out.n.holds(w.w.Hold())
	out.out = &port[windowChange[A]]{}
	if w.final == nil || w.onClose == nil {
		b.failf(out.n, "%s", w.settled)
		return out
	}
	w.onClose()
	out.final, out.onClose, out.settled = nil, nil, finalAlready
	w.final.add(out.out.emit)
	return out
}

func (w Windows[A]) b() *Builder {
	if w.n == nil {
		return NewBuilder("")
	}
	return w.n.b
}

func (w Windows[A]) add(s sink[windowChange[A]]) {
	if w.out != nil && !w.n.b.built {
		w.out.add(s)
	}
}

// Result is the result of one window.
type Result[A any] struct {
	Window window.Window
	Value  A
}

// Results returns the results as a stream, under the key without the window.
// Results that were taken back (sessions that have grown together) have no
// value.
func Results[A any](w Windows[A]) Flow[Result[A]] {
	out := newFlow[Result[A]](w.b().node("results", w.n), nil)
	w.add(func(x *exec, e windowChange[A]) {
		out.out.emit(x, event[Result[A]]{key: e.key, value: Result[A]{e.win, e.new}, null: !e.hasNew, time: e.time})
	})
	return out
}

// sameWindows reports whether windows have the same bounds: grace and retention
// do not matter to who reads them.
func sameWindows(a, b window.Windows) bool {
	return a.Kind() == b.Kind() && a.Size() == b.Size() && a.Advance() == b.Advance() && a.Gap() == b.Gap() && a.Difference() == b.Difference()
}

// To writes the results to a topic, under keys that Kafka Streams'
// deserialisers read. All results of a key go to one partition, that of the key
// without the window. A session that was taken back is a tombstone. Results
// are not deleted when their windows expire: create the topic with the cleanup
// policy "compact,delete" and a retention, or they stay.
func (w Windows[A]) To(t reka.WindowTable[A]) {
	n := w.b().node("to", w.n)
	if t.Name() == "" || t.Codec() == nil {
		w.b().failf(n, "a topic without a name or a codec (declare it with NewWindowTable)")
		return
	}
	if w.w.Validate() == nil && !sameWindows(w.w, t.Windows()) { // else it is reported where it is declared
		w.b().failf(n, "topic %s is declared with %v windows, the results have %v ones", t.Name(), t.Windows(), w.w)
		return
	}
	n.details = append(n.details, t.Name())
	to := n.output(t.Name())
	w.add(func(x *exec, e windowChange[A]) {
		out := task.Emission{Time: e.time, Partition: -1, PlaceBy: e.key}
		if e.hasNew {
			if out.Value = encode(x, t.Codec(), e.new); out.Value == nil {
				return
			}
		}
		x.keyBuf = w.w.AppendTopicKey(x.keyBuf[:0], e.key, e.win)
		out.Key = x.keyBuf
		x.rec.Emit(to.index, out)
	})
}
