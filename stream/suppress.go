package stream

import (
	"fmt"
	"time"
)

// Suppression says how long the results of an operation are held back, so that
// only the newest of each row goes on. Made by UntilClosed, UntilElapsed or
// UntilFull.
type Suppression struct {
	kind                 suppressKind
	wait                 time.Duration
	maxRecords, maxBytes int64
	fail                 bool
	fault                string
}

type suppressKind int8

const (
	untilClosed suppressKind = iota + 1
	untilElapsed
	untilFull
)

// UntilClosed holds the results of windows until these are closed: one result
// comes of each, and it is final. What was taken back by then does not come.
// With MaxRecords or MaxBytes the record that would hold more back fails
// (FullError): to let go of results that are not final is no choice here.
//
// OnClose gives the same results and keeps nothing twice; it emits before the
// record that closes a window, this after it.
func UntilClosed() Suppression { return Suppression{kind: untilClosed} }

// UntilElapsed holds each row's results until stream time is d past the first
// of them. 0 holds nothing.
func UntilElapsed(d time.Duration) Suppression { return Suppression{kind: untilElapsed, wait: d} }

// UntilFull holds results for as long as there is room: MaxRecords, MaxBytes.
// There is no bound on their age, so operations behind it may count them late.
func UntilFull() Suppression { return Suppression{kind: untilFull} }

// MaxRecords bounds how many rows are held back, in each partition. Beyond
// it the one held longest is let go, unless OrFail says otherwise.
func (s Suppression) MaxRecords(n int64) Suppression {
	if s.maxRecords = n; n <= 0 {
		s.fault = fmt.Sprintf("MaxRecords(%d) is not above 0", n)
	}
	return s
}

// MaxBytes bounds the bytes of keys and values that are held back, in each
// partition. Beyond it those held longest are let go, unless OrFail says
// otherwise.
func (s Suppression) MaxBytes(n int64) Suppression {
	if s.maxBytes = n; n <= 0 {
		s.fault = fmt.Sprintf("MaxBytes(%d) is not above 0", n)
	}
	return s
}

// OrFail has the record fail (FullError) that would hold back more than there
// is room for.
func (s Suppression) OrFail() Suppression {
	s.fail = true
	return s
}

// FullError is the error of a record for whose results a suppression has no
// room.
type FullError struct {
	Operation      string // its name
	Records, Bytes int64  // what would be held back, in this partition
}

// Error says what would be held back.
func (e *FullError) Error() string {
	return fmt.Sprintf("suppress %q has no room for %d rows of %d bytes", e.Operation, e.Records, e.Bytes)
}

// bounded reports whether there is a bound on what is held back.
func (s *Suppression) bounded() bool { return s.maxRecords > 0 || s.maxBytes > 0 }

// String describes it as it is declared.
func (s Suppression) String() string {
	out := map[suppressKind]string{untilClosed: "until closed", untilElapsed: "until elapsed " + s.wait.String(), untilFull: "until full"}[s.kind]
	if s.maxRecords > 0 {
		out += fmt.Sprintf(", at most %d rows", s.maxRecords)
	}
	if s.maxBytes > 0 {
		out += fmt.Sprintf(", at most %d bytes", s.maxBytes)
	}
	if s.fail {
		out += ", or fail"
	}
	return out
}

// check reports what is wrong with a suppression in general.
func (s *Suppression) check(n *node) bool {
	n.details = append(n.details, s.String())
	what := s.fault
	if s.kind == untilElapsed {
		if _, err := wholeMillis(s.wait); err != nil {
			what = "UntilElapsed: " + err.Error()
		}
	}
	switch {
	case s.kind == 0:
		what = "no suppression: make one with UntilClosed, UntilElapsed or UntilFull"
	case what != "":
	case s.kind == untilFull && !s.bounded():
		what = "UntilFull needs MaxRecords or MaxBytes"
	case s.kind == untilFull && s.fail:
		what = "UntilFull and OrFail: nothing would ever be let go"
	case s.kind == untilElapsed && s.fail && !s.bounded():
		what = "OrFail needs MaxRecords or MaxBytes"
	}
	if what != "" {
		n.b.failf(n, "%s", what)
	}
	return what == ""
}

// Suppress holds the changes of each row back and lets the newest go on: see
// UntilElapsed and UntilFull. A row that is deleted before anything of it went
// on leaves nothing. What reads the table reads the rows that went on. It keeps
// what it holds back in a store (Named).
//
// Changes are let go after the record that moves time, those held longest
// first, then in order of their keys.
func (t Table[T]) Suppress(by Suppression, opts ...Option) Table[T] {
	n := t.b().node("suppress", t.n)
	o := fold(opts)
	c := codecOf(n, &o, t.codec)
	n.own(o.name)
	out := newTable(n, c)
	out.rekeyed, out.first = t.rekeyed, t.first
	if !by.check(n) {
		return out
	}
	if by.kind == untilClosed {
		n.b.failf(n, "UntilClosed is for windows")
		return out
	}
	if by.kind == untilElapsed && by.wait == 0 {
		out.get = t.get
		t.add(out.out.emit)
		return out
	}
	if !needCodec(n, c) {
		return out
	}
	h := newHeldRows(n, c, by)
	h.out = func(x *exec, id []byte, ch change[T]) {
		ch.key = id
		out.out.emit(x, ch)
	}
	out.get = func(x *exec, key []byte) (v T, time int64, ok bool) {
		if v, ok, held := h.before(x, key); held {
			return v, noTime, ok
		}
		return t.get(x, key)
	}
	t.add(func(x *exec, e change[T]) { h.put(x, e.key, &e) })
	return out
}

// noTime is the time of a row of which it is not known any more.
const noTime = -1

// Suppress holds the results of each window back and lets the newest go on: see
// UntilClosed, UntilElapsed and UntilFull. It keeps what it holds back in a
// store (Named).
//
// Results are let go after the record that moves time: of windows that are
// closed in order of their ends, else those held longest first; then in order
// of their keys.
func (w Windows[A]) Suppress(by Suppression, opts ...Option) Windows[A] {
	b := w.b()
	n := b.node("suppress", w.n)
	o := fold(opts)
	c := codecOf(n, &o, w.codec)
	n.own(o.name)
	out := Windows[A]{n: n, out: &port[windowChange[A]]{}, codec: c, w: w.w, settled: "the results are behind Suppress: what is emitted on close must come before it"}
	if !by.check(n) {
		return out
	}
	if by.kind == untilElapsed && by.wait == 0 {
		w.add(out.out.emit)
		return out
	}
	if !needCodec(n, c) {
		return out
	}
	if by.kind == untilClosed {
		if w.settled != "" {
			b.failf(n, "UntilClosed: %s", w.settled)
			return out
		}
		out.settled = finalAlready
		h := newHeldWindows(n, w.w, heldWindows[A]{codec: c, bound: bound{Suppression: by}})
		h.out = out.out
		w.add(h.put)
		return out
	}
	h := newHeldRows(n, c, by)
	h.out = func(x *exec, id []byte, ch change[A]) {
		key, win, err := w.w.SplitTopicKey(id)
		if err != nil {
			x.fail(err)
			return
		}
		ch.key = key
		out.out.emit(x, windowChange[A]{win, ch})
	}
	w.add(func(x *exec, e windowChange[A]) {
		x.endBuf = w.w.AppendTopicKey(x.endBuf[:0], e.key, e.win)
		h.put(x, x.endBuf, &e.change)
	})
	return out
}
