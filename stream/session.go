package stream

import (
	"bytes"

	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/window"
)

// A key's sessions that are not closed lie in one row, so that a record reads
// one row and writes it, whatever it merges. Beside it the key has one entry in
// the timeline, at the end of a session or before:
//
//	open ‖ time ‖ key    the key is to be looked at
//	list ‖ key           where that entry is, and the sessions
//	kept ‖ last ‖ key    a session after it was closed, until it expires
//
// An entry whose session has grown stays where it is, and is set again when it
// comes due. No two closed sessions of a key end at the same time, for a
// closed one takes no record any more, and one that ended with it would be
// closed, too.
const rowList = 3

type sessionOp[T, A any] struct {
	*windowOp[T, A]
	st   *store
	kept bool
}

// session is one of a key's sessions. Its result has the time of its end.
type session struct {
	win window.Window
	raw []byte // the aggregate's encoding
}

// sessionRow is a key's row of kind list.
type sessionRow struct {
	entry int64 // time of the entry in the timeline
	due   bool  // the entry has come due
	list  []session
}

// noEntry is the entry of a key that has none, nor sessions.
const noEntry = -1

// sessions returns what runs a record.
func sessions[T, A any](p *windowOp[T, A]) sink[event[T]] {
	s := &sessionOp[T, A]{windowOp: p, st: p.n.store("", lineOpen, lineKept), kept: keptOn(p.w)}
	p.n.build = func() {
		p.n.before, p.n.expiry = nil, nil
		closing := &task.Timed{Lines: []task.Line{{Prefix: lineOpen, Lag: p.w.CloseTime(p.w.At(0))}}, Run: s.close}
		if p.finals {
			p.n.before = append(p.n.before, closing)
		} else {
			p.n.expiry = append(p.n.expiry, closing)
		}
		if s.kept {
			p.n.expiry = append(p.n.expiry, expiring(lineKept, p.w.ExpiryTime(p.w.At(0)), s.st))
		}
	}
	return s.add
}

// add merges a record with the sessions that it touches.
func (s *sessionOp[T, A]) add(x *exec, e event[T]) {
	row, ok := s.row(x, e.key)
	if !ok {
		return
	}
	now := x.now(s.clock)
	win := window.Window{Start: e.time, End: e.time}
	for i := range row.list {
		if s.merges(&row.list[i], e.time, now) {
			win = win.Merge(row.list[i].win)
		}
	}
	if s.w.Closed(win, now) {
		s.missed(x, &e, []window.Window{win})
		return
	}
	changes, ok := s.merge(x, &e, &row)
	if !ok {
		return
	}
	s.set(x, e.key, row)
	for i := range changes {
		s.out.out.emit(x, changes[i])
	}
}

// merges reports whether a record at t becomes part of a session: one that is
// closed stays as it is.
func (s *sessionOp[T, A]) merges(o *session, t, now int64) bool {
	return s.w.Touches(o.win, t) && !s.w.Closed(o.win, now)
}

// merge makes one of the sessions that a record touches, and returns what
// happened: sessions that were taken back come before their successor.
func (s *sessionOp[T, A]) merge(x *exec, e *event[T], row *sessionRow) ([]windowChange[A], bool) {
	now := x.now(s.clock)
	a := s.by.init()
	ch := windowChange[A]{window.Window{Start: e.time, End: e.time}, change[A]{key: e.key}}
	changes := make([]windowChange[A], 0, 2)
	rest := make([]session, 0, len(row.list)+1)
	for i := range row.list {
		o := &row.list[i]
		if !s.merges(o, e.time, now) {
			rest = append(rest, *o)
			continue
		}
		was, ok := decodeStored(x, s.out.codec, o.raw, place{s.st.spec.Changelog, e.key})
		if !ok {
			return nil, false
		}
		a = s.by.Merge(x.key(e.key), a, was)
		ch.win = ch.win.Merge(o.win)
		changes = append(changes, windowChange[A]{o.win, change[A]{key: e.key, old: was, hasOld: true, time: o.win.End}})
	}
	if len(changes) == 1 && ch.win.Start == ch.win.End { // more records at one time
		ch.old, ch.hasOld = changes[0].old, true
		changes = changes[:0]
	}
	ch.time = ch.win.End
	if ch.new, ch.hasNew = s.by.step(x, e, a); ch.hasNew {
		raw := encode(x, s.out.codec, ch.new)
		if raw == nil {
			return nil, false
		}
		rest = insertSession(rest, session{ch.win, raw})
	}
	row.list = rest
	if ch.hasNew || ch.hasOld {
		changes = append(changes, ch)
	}
	return changes, true
}

// insertSession keeps the list in order of time.
func insertSession(list []session, s session) []session {
	i := len(list)
	list = append(list, s)
	for ; i > 0 && list[i-1].win.Start > s.win.Start; i-- {
		list[i], list[i-1] = list[i-1], s
	}
	return list
}

// row reads a key's list. Its bytes are valid until the next call on the
// record.
func (s *sessionOp[T, A]) row(x *exec, key []byte) (row sessionRow, ok bool) {
	row.entry = noEntry
	x.keyBuf = append(append(x.keyBuf[:0], rowList), key...)
	raw, known := x.rec.Get(s.st.index, x.keyBuf)
	if !known {
		return row, !x.failed()
	}
	r := reader{b: raw}
	row.entry = r.number()
	for len(r.b) > 0 {
		o := session{win: window.Window{Start: r.number()}}
		o.win.End = o.win.Start + r.number()
		o.raw = r.bytes()
		row.list = append(row.list, o)
	}
	return row, r.end(x, place{s.st.spec.Changelog, key})
}

// set writes a key's list, and sees to the entry in the timeline: it moves if
// it would be too late, or if it has come due.
func (s *sessionOp[T, A]) set(x *exec, key []byte, to sessionRow) {
	next := int64(noEntry)
	if !to.due && len(to.list) > 0 {
		next = to.entry
	}
	for i := range to.list {
		if end := to.list[i].win.End; next == noEntry || end < next {
			next = end
		}
	}
	var b []byte // nil: no row
	if next != noEntry {
		b = appendNumber(x.listBuf[:0], next)
		for i := range to.list {
			o := &to.list[i]
			b = appendNumber(b, o.win.Start)
			b = appendNumber(b, o.win.End-o.win.Start)
			b = appendBytes(b, o.raw)
		}
		x.listBuf = b
	}
	x.keyBuf = append(append(x.keyBuf[:0], rowList), key...)
	if b != nil || to.entry != noEntry {
		x.rec.Set(s.st.index, x.keyBuf, b)
	}
	if next == to.entry {
		return
	}
	if to.entry != noEntry {
		x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, to.entry, key)
		x.rec.Set(s.st.index, x.keyBuf, nil)
	}
	if next != noEntry {
		x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, next, key)
		x.rec.Set(s.st.index, x.keyBuf, []byte{})
	}
}

// close takes sessions that are closed out of their lists, and emits them.
func (s *sessionOp[T, A]) close(r *task.Record, due []task.Entry) error {
	x := execOf(r)
	var set again
	for i := range due {
		if set.before(due[i].Key) || i > 0 && r.Crowded() {
			break
		}
		key := due[i].Key[rowHead:]
		row, ok := s.row(x, key)
		if !ok {
			break
		}
		if row.entry != due[i].Time { // nobody's
			r.Set(s.st.index, due[i].Key, nil)
			continue
		}
		if next := s.closeOf(x, key, row); next != noEntry {
			x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, next, key)
			set.add(x.keyBuf)
		}
		if x.failed() {
			break
		}
	}
	return nil
}

// closeOf closes the session of a list that ends at the time of its entry, if
// there is one, and returns where the entry was set again.
func (s *sessionOp[T, A]) closeOf(x *exec, key []byte, row sessionRow) (next int64) {
	var done *session
	rest := make([]session, 0, len(row.list))
	next = noEntry
	for _, o := range row.list {
		if o.win.End <= row.entry {
			done = &session{o.win, bytes.Clone(o.raw)}
			continue
		}
		rest = append(rest, o)
		if next == noEntry || o.win.End < next {
			next = o.win.End
		}
	}
	s.set(x, key, sessionRow{entry: row.entry, due: true, list: rest})
	if done == nil {
		return next
	}
	if s.kept {
		x.keyBuf = windowRow(x.keyBuf[:0], lineKept, done.win.End, key)
		x.listBuf = append(appendNumber(x.listBuf[:0], done.win.Start), done.raw...)
		x.rec.SetRow(s.st.index, task.Row{Key: x.keyBuf, Value: x.listBuf, Time: done.win.End})
	}
	if !s.finals {
		return next
	}
	if a, ok := decodeStored(x, s.out.codec, done.raw, place{s.st.spec.Changelog, key}); ok {
		release(x, s.out.final.emit, windowChange[A]{done.win, change[A]{key: key, new: a, hasNew: true, time: done.win.End}})
	}
	return next
}
