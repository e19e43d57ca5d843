package stream

import (
	"errors"
	"fmt"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

// JoinWindow says which records of two streams belong together: the right one
// is at most before earlier and at most after later than the left one, both
// included. See Within and Between.
type JoinWindow struct {
	before, after, grace time.Duration
	declared             bool // by Within or Between
}

// Within joins records whose times differ by at most d. A record is waited for
// until stream time has passed its window by grace.
func Within(d, grace time.Duration) JoinWindow { return JoinWindow{d, d, grace, true} }

// Between joins a left record with the right ones from before earlier to after
// later. One of them may be negative, but not their sum.
func Between(before, after, grace time.Duration) JoinWindow {
	return JoinWindow{before, after, grace, true}
}

// String describes the window.
func (w JoinWindow) String() string {
	return fmt.Sprintf("from %v before to %v after, grace %v", w.before, w.after, w.grace)
}

func (w JoinWindow) validate() error {
	if !w.declared {
		return errors.New("no window: make one with Within or Between")
	}
	for _, d := range []time.Duration{w.before, w.after, w.grace} {
		if d%time.Millisecond != 0 {
			return fmt.Errorf("%v is no whole number of milliseconds", d)
		}
	}
	switch {
	case w.before+w.after < 0:
		return fmt.Errorf("the window ends before it begins: before %v + after %v", w.before, w.after)
	case w.grace < 0:
		return fmt.Errorf("grace %v is negative", w.grace)
	}
	return nil
}

// Join joins two streams by key: fn is called for each pair whose times fit.
// The result has the later time. Records without a key or value join nothing.
//
// Both need a codec, since their records are kept until their windows close.
func Join[L, R, V any](l Flow[L], r Flow[R], w JoinWindow, fn func(key string, l L, r R) V, opts ...Option) Flow[V] {
	p := newStreamJoin[L, R, V](l.placed(options{}), r.placed(options{}), w, opts)
	p.n.details = append(p.n.details, "inner, "+w.String())
	if fn == nil {
		p.n.b.failf(p.n, "no function")
		return p.out
	}
	p.fn = func(key string, l *L, r *R) V { return fn(key, *l, *r) }
	p.declare(false, false)
	return p.out
}

// LeftJoin is Join with a result for every left record: one without a right
// one (nil) when its window has closed, if it found no partner until then.
func LeftJoin[L, R, V any](l Flow[L], r Flow[R], w JoinWindow, fn func(key string, l L, r *R) V, opts ...Option) Flow[V] {
	p := newStreamJoin[L, R, V](l.placedWithNulls(options{}), r.placed(options{}), w, opts)
	p.n.details = append(p.n.details, "left, "+w.String())
	if fn == nil {
		p.n.b.failf(p.n, "no function")
		return p.out
	}
	p.fn = func(key string, l *L, r *R) V { return fn(key, *l, r) }
	p.declare(true, false)
	return p.out
}

// OuterJoin is Join with a result for every record of both sides: one without
// the other (nil) when its window has closed, if it found no partner until
// then.
func OuterJoin[L, R, V any](l Flow[L], r Flow[R], w JoinWindow, fn func(key string, l *L, r *R) V, opts ...Option) Flow[V] {
	p := newStreamJoin[L, R, V](l.placedWithNulls(options{}), r.placedWithNulls(options{}), w, opts)
	p.n.details = append(p.n.details, "outer, "+w.String())
	if fn == nil {
		p.n.b.failf(p.n, "no function")
		return p.out
	}
	p.fn = fn
	p.declare(true, true)
	return p.out
}

// LateLeft writes left records that come too late to a topic, each once.
func LateLeft[T any](t reka.Stream[T]) Option {
	return optionFunc(func(o *options) { o.lateLeft = t })
}

// LateRight writes right records that come too late to a topic, each once.
func LateRight[T any](t reka.Stream[T]) Option {
	return optionFunc(func(o *options) { o.lateRight = t })
}

// streamJoin is a join of two streams.
type streamJoin[L, R, V any] struct {
	n     *node
	out   Flow[V]
	w     JoinWindow
	st    *store
	fn    func(key string, l *L, r *R) V
	left  *joinSide[L]
	right *joinSide[R]

	lateness
	missing *counter
}

// joinSide is one side of it: how it keeps its records, and where its partners
// lie.
type joinSide[T any] struct {
	in    Flow[T]
	codec codec.Codec[T]
	side  byte // in row keys
	line  byte // of records that wait for a partner
	nulls bool // a record without a partner has a result
	// A partner of a record at t lies from t-back to t+ahead. The record's own
	// window ends at t+ends-1, and closes at t+closes.
	back, ahead, closes int64
	bucket              int64
	late                func(x *exec, e *event[T], headers ...kafka.Header)
	st                  *store
}

func newStreamJoin[L, R, V any](l Flow[L], r Flow[R], w JoinWindow, opts []Option) *streamJoin[L, R, V] {
	n := l.b().node("join", l.n, r.n)
	o := fold(opts)
	out := newFlow(n, codecOf[V](n, &o, nil))
	n.own(o.name)
	p := &streamJoin[L, R, V]{n: n, out: out, w: w}
	before, after, grace := w.before.Milliseconds(), w.after.Milliseconds(), w.grace.Milliseconds()
	p.left = &joinSide[L]{in: l, codec: l.codec, side: sideLeft, line: lineLeft, back: before, ahead: after, closes: max(0, after) + 1 + grace}
	p.right = &joinSide[R]{in: r, codec: r.codec, side: sideRight, line: lineRight, back: after, ahead: before, closes: max(0, before) + 1 + grace}
	p.left.bucket, p.right.bucket = before+after+1, before+after+1
	p.left.late, p.right.late = lateSide[L](n, o.lateLeft), lateSide[R](n, o.lateRight)
	return p
}

// lateSide returns what writes late records of one side, nil if nothing does.
func lateSide[T any](n *node, topic any) func(*exec, *event[T], ...kafka.Header) {
	if topic == nil {
		return nil
	}
	t, ok := topic.(reka.Stream[T])
	if !ok || t.Name() == "" || t.Codec() == nil {
		n.b.failf(n, "the late output (LateLeft, LateRight) is a %T, the records of that side are %T, or it has no name or codec", topic, *new(T))
		return nil
	}
	return lateOutput(n, t)
}

// declare puts the join into the graph.
func (p *streamJoin[L, R, V]) declare(left, right bool) {
	n := p.n
	if err := p.w.validate(); err != nil {
		n.b.failf(n, "%w", err)
		return
	}
	if !needCodec(n, p.left.codec) || !needCodec(n, p.right.codec) {
		return
	}
	p.left.nulls, p.right.nulls = left, right
	p.missing, p.lateness = n.counter("records without a key or value"), n.lateness()
	p.st = n.store("", lineBucket, lineLeft, lineRight)
	p.left.st, p.right.st = p.st, p.st
	n.expiry = []*task.Timed{expiring(lineBucket, p.left.bucket-1+max(p.left.closes, p.right.closes), p.st)}
	if left {
		n.holds(max(p.left.closes, p.right.closes))
		n.before = []*task.Timed{{
			Lines: []task.Line{{Prefix: lineRight, Lag: p.right.closes}, {Prefix: lineLeft, Lag: p.left.closes}}, Run: p.release,
		}}
	}
	p.left.in.add(p.takeLeft)
	p.right.in.add(p.takeRight)
}

// emit hands a result on.
func (p *streamJoin[L, R, V]) emit(x *exec, key []byte, l *L, r *R, time int64) {
	p.out.out.emit(x, event[V]{key: key, value: p.fn(x.key(key), l, r), time: time})
}

// tooLate accounts for a late record; log says whether nothing else tells of
// it.
func (p *streamJoin[L, R, V]) tooLate(x *exec, key []byte, time int64, log bool) {
	p.count(x, 1)
	if !log {
		return
	}
	x.rec.Note("late record", func() error {
		return fmt.Errorf("%s: key %s at %d is late: stream time is %d", p.n.name, kafka.QuoteKey(key), time, p.now(x))
	})
}
