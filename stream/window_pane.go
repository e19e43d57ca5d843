package stream

import (
	"encoding/binary"

	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/window"
)

// Hopping windows whose aggregates can be merged, and that are emitted on
// close only, are kept as panes, of which each window is a whole number: a
// record changes one of them, however many windows it is in. Beside the panes
// each key has one entry in the timeline, for its next window:
//
//	open ‖ start ‖ key     the next window of the key to be closed
//	next ‖ key             start of that window, and of the key's newest pane
//	pane ‖ start ‖ key     aggregate of a pane
//
// When the window closes, its panes are merged, those that are in no later one
// are deleted, and the entry moves to the next window that has a pane.
// (Li et al., "No pane, no gain", SIGMOD Record 34(1), 2005.)
const (
	rowNext = 3
	rowPane = 4
)

type paneOp[T, A any] struct {
	*windowOp[T, A]
	st    *store
	panes *rows[A]
}

func newPaneOp[T, A any](p *windowOp[T, A], st *store) *paneOp[T, A] {
	return &paneOp[T, A]{windowOp: p, st: st, panes: stored(p.n, st, p.out.codec)}
}

func (p *paneOp[T, A]) steps() {
	p.n.before = []*task.Timed{{Lines: []task.Line{{Prefix: lineOpen, Lag: p.w.CloseTime(p.w.At(0))}}, Run: p.close}}
}

// upcoming is a key's row of kind next.
type upcoming struct{ start, newest int64 }

func (p *paneOp[T, A]) upcoming(x *exec, key []byte) (u upcoming, ok bool) {
	x.keyBuf = append(append(x.keyBuf[:0], rowNext), key...)
	raw, ok := x.rec.Get(p.st.index, x.keyBuf)
	if !ok || len(raw) != 16 {
		return u, false
	}
	return upcoming{int64(binary.BigEndian.Uint64(raw)), int64(binary.BigEndian.Uint64(raw[8:]))}, true
}

func (p *paneOp[T, A]) setUpcoming(x *exec, key []byte, u upcoming) {
	x.keyBuf = append(append(x.keyBuf[:0], rowNext), key...)
	x.valueBuf = binary.BigEndian.AppendUint64(x.valueBuf[:0], uint64(u.start))
	x.valueBuf = binary.BigEndian.AppendUint64(x.valueBuf, uint64(u.newest))
	x.rec.Set(p.st.index, x.keyBuf, x.valueBuf)
}

func (p *paneOp[T, A]) setEntry(x *exec, key []byte, start int64, on bool) {
	x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, start, key)
	var value []byte
	if on {
		value = []byte{}
	}
	x.rec.Set(p.st.index, x.keyBuf, value)
}

// add adds a record to its pane.
func (p *paneOp[T, A]) add(x *exec, e *event[T]) {
	now := x.now(p.clock)
	var missed []window.Window
	first := int64(-1)
	for win := range p.w.Each(e.time) {
		if !p.w.Closed(win, now) {
			first = win.Start
			break
		}
		missed = append(missed, win)
	}
	if len(missed) > 0 {
		p.missed(x, e, missed)
	}
	if first < 0 {
		return
	}
	pane := p.w.Pane(e.time)
	u, known := p.upcoming(x, e.key)
	was := u
	switch {
	case !known:
		u = upcoming{first, pane.Start}
	default:
		u.start, u.newest = min(u.start, first), max(u.newest, pane.Start)
	}
	if !known || u != was {
		if known && u.start != was.start {
			p.setEntry(x, e.key, was.start, false)
		}
		if !known || u.start != was.start {
			p.setEntry(x, e.key, u.start, true)
		}
		p.setUpcoming(x, e.key, u)
	}
	x.keyBuf = windowRow(x.keyBuf[:0], rowPane, pane.Start, e.key)
	a, at, ok := p.panes.get(x, x.keyBuf)
	if x.failed() {
		return
	}
	if !ok {
		a = p.by.init()
	}
	a, _ = p.by.step(x, e, a)
	x.keyBuf = windowRow(x.keyBuf[:0], rowPane, pane.Start, e.key)
	p.panes.set(x, row[A]{x.keyBuf, a, true, max(at, e.time)})
}

// close emits the windows that are closed, one a key, and moves the keys on.
func (p *paneOp[T, A]) close(r *task.Record, due []task.Entry) error {
	x := execOf(r)
	for i := range due {
		if i > 0 && due[i].Time > due[i-1].Time {
			return nil // entries that have moved may come before the rest
		}
		key := due[i].Key[rowHead:]
		win := p.w.At(due[i].Time)
		ch := windowChange[A]{win, change[A]{key: key}}
		ch.new, ch.time, ch.hasNew = p.merge(x, key, win)
		r.Set(p.st.index, due[i].Key, nil)
		p.moveOn(x, key, win)
		if x.failed() {
			return nil
		}
		if !ch.hasNew {
			continue
		}
		if keptOn(p.w) {
			x.keyBuf = windowRow(x.keyBuf[:0], lineKept, win.Start, key)
			p.panes.set(x, row[A]{x.keyBuf, ch.new, true, ch.time})
		}
		p.out.final.emit(x, ch)
	}
	return nil
}

// merge returns the aggregate of a window.
func (p *paneOp[T, A]) merge(x *exec, key []byte, win window.Window) (a A, at int64, ok bool) {
	for pane := range p.w.Panes(win) {
		x.keyBuf = windowRow(x.keyBuf[:0], rowPane, pane.Start, key)
		v, t, found := p.panes.get(x, x.keyBuf)
		switch {
		case x.failed():
			return a, 0, false
		case !found:
		case !ok:
			a, at, ok = v, t, true
		default:
			a, at = p.by.Merge(x.key(key), a, v), max(at, t)
		}
	}
	return a, at, ok
}

// moveOn deletes the panes that were in this window last, and sets the entry
// of the next window that has one.
func (p *paneOp[T, A]) moveOn(x *exec, key []byte, win window.Window) {
	u, ok := p.upcoming(x, key)
	if !ok {
		return
	}
	next := p.w.At(win.Start + p.w.Advance())
	for pane := range p.w.Panes(win) {
		if pane.Start >= next.Start {
			break
		}
		x.keyBuf = windowRow(x.keyBuf[:0], rowPane, pane.Start, key)
		if _, ok := x.rec.Get(p.st.index, x.keyBuf); ok {
			x.rec.Set(p.st.index, x.keyBuf, nil)
		}
	}
	if u.newest < next.Start { // nothing is left
		x.keyBuf = append(append(x.keyBuf[:0], rowNext), key...)
		x.rec.Set(p.st.index, x.keyBuf, nil)
		return
	}
	for !p.has(x, key, next) {
		if x.failed() {
			return
		}
		next = p.w.At(next.Start + p.w.Advance())
	}
	u.start = next.Start
	p.setEntry(x, key, u.start, true)
	p.setUpcoming(x, key, u)
}

// has reports whether a window has a pane of the key.
func (p *paneOp[T, A]) has(x *exec, key []byte, win window.Window) bool {
	for pane := range p.w.Panes(win) {
		x.keyBuf = windowRow(x.keyBuf[:0], rowPane, pane.Start, key)
		if _, ok := x.rec.Get(p.st.index, x.keyBuf); ok || x.failed() {
			return ok
		}
	}
	return false
}
