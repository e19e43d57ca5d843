package stream

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/window"
)

// Sliding windows are made by their records, and those of a key are kept in
// buckets of time, each as wide as a window. A bucket has the records of its
// time, and the windows that start in it with what they hold:
//
//	open ‖ start ‖ key     the next window of a bucket to be closed
//	kept ‖ start ‖ key     a bucket, until its last window expires
//
// A record at t is in windows that start from t-difference to t, makes one that
// starts at t+1, and these lie in two buckets that follow each other; a window
// that it makes may reach into a third. So a record reads three rows, writes
// two, and its cost is that of what lies within two differences of it.
//
// A new window is open, so it was open when its records came: all that are
// still kept belong to it, and none that belongs to it is gone.
type slidingOp[T, A any] struct {
	*windowOp[T, A]
	st     *store
	values codec.Codec[T]
	width  int64
}

// sliding returns what runs a record.
func sliding[T, A any](p *windowOp[T, A]) sink[event[T]] {
	s := &slidingOp[T, A]{windowOp: p, st: p.n.store("", lineOpen, lineKept), values: p.in.codec, width: p.w.Difference() + 1}
	if !needCodec(p.n, s.values) {
		return func(*exec, event[T]) {}
	}
	p.n.build = func() {
		p.n.before = nil
		if p.finals {
			p.n.before = []*task.Timed{{Lines: []task.Line{{Prefix: lineOpen, Lag: p.w.CloseTime(p.w.At(0))}}, Run: s.close}}
		}
		p.n.expiry = []*task.Timed{expiring(lineKept, p.w.ExpiryTime(p.w.At(p.w.Difference())), s.st)}
	}
	return s.add
}

// add adds a record to the windows that contain it, and makes its own.
func (s *slidingOp[T, A]) add(x *exec, e event[T]) {
	now := x.now(s.clock)
	if s.w.Closed(s.w.At(e.time), now) {
		s.missed(x, &e, []window.Window{s.w.Left(e.time)})
		return
	}
	around, ok := s.around(x, &e)
	if !ok {
		return
	}
	if !s.keepRecord(x, &e, around) {
		return
	}
	changes, ok := s.change(x, &e, around)
	if !ok {
		return
	}
	for _, b := range around {
		if b.changed {
			s.purge(b, now)
			s.set(x, e.key, b)
		}
	}
	slices.SortFunc(changes, func(a, b windowChange[A]) int { return cmp.Compare(a.win.Start, b.win.Start) })
	for i := range changes {
		s.out.out.emit(x, changes[i])
	}
}

// around reads the buckets from that of the left window to the one behind the
// record's.
func (s *slidingOp[T, A]) around(x *exec, e *event[T]) ([]*bucket, bool) {
	from := s.bucketOf(s.w.Left(e.time).Start)
	last := s.bucketOf(e.time)
	if last <= last+s.width {
		last += s.width
	}
	out := make([]*bucket, 0, 3)
	for at := from; at <= last && at >= from; at += s.width {
		b, ok := s.bucket(x, e.key, at)
		if !ok {
			return nil, false
		}
		out = append(out, b)
	}
	return out, true
}

// bucketOf returns the start of the bucket that t is in.
func (s *slidingOp[T, A]) bucketOf(t int64) int64 { return t - t%s.width }

// in returns the bucket of t among those read, nil if it is not.
func (s *slidingOp[T, A]) in(around []*bucket, t int64) *bucket {
	i := (s.bucketOf(t) - around[0].start) / s.width
	if i < 0 || i >= int64(len(around)) {
		return nil
	}
	return around[i]
}

// keepRecord puts the record into its bucket. Its number is above those of all
// records that it shares a window with.
func (s *slidingOp[T, A]) keepRecord(x *exec, e *event[T], around []*bucket) bool {
	raw := encode(x, s.values, e.value)
	if raw == nil {
		return false
	}
	var number int64
	for _, b := range around {
		number = max(number, b.number)
	}
	b := s.in(around, e.time)
	b.number = number + 1
	b.records = append(b.records, slidingRecord{e.time, b.number, bytes.Clone(raw)})
	b.changed = true
	return true
}

// change updates and makes windows, and returns what happened to them.
func (s *slidingOp[T, A]) change(x *exec, e *event[T], around []*bucket) (changes []windowChange[A], ok bool) {
	now := x.now(s.clock)
	left := s.w.Left(e.time)
	hasLeft := s.w.Closed(left, now)
	for _, b := range around {
		for i := range b.windows {
			w := &b.windows[i]
			win := s.w.At(w.start)
			if w.start < left.Start || w.start > e.time || s.w.Closed(win, now) {
				continue
			}
			hasLeft = hasLeft || w.start == left.Start
			ch, ok := s.grow(x, e, w)
			if !ok {
				return nil, false
			}
			b.changed = true
			if ch.hasOld || ch.hasNew {
				changes = append(changes, ch)
			}
		}
	}
	if !hasLeft {
		if changes, ok = s.make(x, e, making[A]{around, changes, left}); !ok {
			return nil, false
		}
	}
	if right, ok := s.w.Right(e.time); ok {
		return s.make(x, e, making[A]{around, changes, right})
	}
	return changes, true
}

// grow adds a record to a window that is there.
func (s *slidingOp[T, A]) grow(x *exec, e *event[T], w *slidingWindow) (ch windowChange[A], ok bool) {
	ch = windowChange[A]{s.w.At(w.start), change[A]{key: e.key, time: e.time}}
	a := s.by.init()
	if w.state != slidingEmpty {
		if a, ok = decodeStored(x, s.out.codec, w.raw, place{s.st.spec.Changelog, e.key}); !ok {
			return ch, false
		}
		ch.old, ch.hasOld, ch.time = a, true, max(e.time, w.time)
	}
	ch.new, ch.hasNew = s.by.step(x, e, a)
	return ch, s.hold(x, w, &ch)
}

// hold stores what has become of a window.
func (s *slidingOp[T, A]) hold(x *exec, w *slidingWindow, ch *windowChange[A]) bool {
	w.state, w.time, w.raw = slidingEmpty, ch.time, nil
	if !ch.hasNew {
		return true
	}
	raw := encode(x, s.out.codec, ch.new)
	w.state, w.raw = slidingOpen, bytes.Clone(raw)
	return raw != nil
}

// making is a window to be made, if it is not there.
type making[A any] struct {
	around  []*bucket
	changes []windowChange[A]
	win     window.Window
}

// make makes a window of the records that are in it, in the order in which
// they came. One without records waits for the first.
func (s *slidingOp[T, A]) make(x *exec, e *event[T], m making[A]) ([]windowChange[A], bool) {
	b := s.in(m.around, m.win.Start)
	if b == nil {
		return m.changes, true
	}
	at, there := slices.BinarySearchFunc(b.windows, m.win.Start, func(w slidingWindow, start int64) int { return cmp.Compare(w.start, start) })
	if there {
		return m.changes, true
	}
	w := slidingWindow{start: m.win.Start}
	ch := windowChange[A]{m.win, change[A]{key: e.key}}
	for _, r := range within(m.around, m.win) {
		v, ok := decodeStored(x, s.values, r.raw, place{s.st.spec.Changelog, e.key})
		if !ok {
			return nil, false
		}
		a := ch.new
		if !ch.hasNew {
			a = s.by.init()
		}
		ch.new, ch.hasNew = s.by.step(x, &event[T]{key: e.key, value: v, time: r.time}, a)
		ch.time = max(ch.time, r.time)
	}
	if !s.hold(x, &w, &ch) {
		return nil, false
	}
	b.windows = slices.Insert(b.windows, at, w)
	b.changed = true
	if ch.hasNew {
		m.changes = append(m.changes, ch)
	}
	return m.changes, true
}

// within returns the records of a window in the order in which they came.
func within(around []*bucket, win window.Window) (in []slidingRecord) {
	for _, b := range around {
		for _, r := range b.records {
			if r.time >= win.Start && r.time <= win.End {
				in = append(in, r)
			}
		}
	}
	slices.SortFunc(in, func(a, b slidingRecord) int { return cmp.Compare(a.number, b.number) })
	return in
}

// purge drops what nothing needs any more: records that no window can take, and
// windows that never got one, or have expired.
func (s *slidingOp[T, A]) purge(b *bucket, now int64) {
	b.records = slices.DeleteFunc(b.records, func(r slidingRecord) bool { return s.w.Closed(s.w.At(r.time), now) })
	b.windows = slices.DeleteFunc(b.windows, func(w slidingWindow) bool {
		win := s.w.At(w.start)
		return w.state == slidingEmpty && s.w.Closed(win, now) || s.w.Expired(win, now)
	})
}

// close emits windows that are closed, and moves the entries of their buckets
// on.
func (s *slidingOp[T, A]) close(r *task.Record, due []task.Entry) error {
	x := execOf(r)
	var set again
	for i := range due {
		if set.before(due[i].Key) || i > 0 && r.Crowded() {
			break
		}
		key := due[i].Key[rowHead:]
		b, ok := s.bucket(x, key, s.bucketOf(due[i].Time))
		if !ok {
			break
		}
		if b.entry != due[i].Time { // nobody's
			r.Set(s.st.index, due[i].Key, nil)
			continue
		}
		var next []byte
		if i+1 < len(due) {
			next = due[i+1].Key
		}
		done, ok := s.finish(x, key, finishing{b, &set, next})
		if !ok {
			break
		}
		b.due = true
		s.set(x, key, b)
		if b.entry != noEntry {
			set.add(windowRow(nil, lineOpen, b.entry, key))
		}
		for i := range done {
			release(x, s.out.final.emit, done[i])
		}
	}
	return nil
}

// finishing is a bucket whose entry has come due, and what comes behind it:
// entries that were set again, and the next that is due; nil: it is not known.
type finishing struct {
	*bucket
	again *again
	next  []byte
}

// finishMost is how many windows of a bucket are closed at a time.
const finishMost = 64

// finish takes windows that are closed for done: the one at the bucket's entry,
// and those that nothing else comes before.
func (s *slidingOp[T, A]) finish(x *exec, key []byte, b finishing) (done []windowChange[A], ok bool) {
	now := x.now(s.clock)
	for i := range b.windows {
		w := &b.windows[i]
		if w.start < b.entry || w.state != slidingOpen {
			continue
		}
		if w.start > b.entry {
			x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, w.start, key)
			if len(done) == finishMost || b.next == nil || bytes.Compare(b.next, x.keyBuf) < 0 || b.again.before(x.keyBuf) || !s.w.Closed(s.w.At(w.start), now) {
				break
			}
		}
		ch := windowChange[A]{s.w.At(w.start), change[A]{key: key, time: w.time}}
		if ch.new, ch.hasNew = decodeStored(x, s.out.codec, w.raw, place{s.st.spec.Changelog, key}); !ch.hasNew {
			return nil, false
		}
		w.state = slidingDone
		done = append(done, ch)
	}
	return done, true
}
