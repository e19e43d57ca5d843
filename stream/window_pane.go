package stream

import (
	"encoding/binary"

	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/window"
)

// Hopping windows whose aggregates can be merged, and that are emitted on
// close only, are kept as panes, of which each window is a whole number: a
// record changes one of them, however many windows it is in
// (Li et al., "No pane, no gain", SIGMOD Record 34(1), 2005). Rows have the
// keys
//
//	open ‖ start ‖ key       the next window to be closed, of any key; key is
//	                         the first one that it is still to be closed for
//	next ‖ 8 bytes ‖ key     a key that has panes; the start of its newest one
//	pane ‖ start ‖ key       aggregate of a pane
//
// When a window closes, the panes of each key are merged, and those that are in
// no later window are deleted.
const (
	lineKeys = 3
	rowPane  = 4
)

// paneKeys is how many keys a window is closed for at a time.
const paneKeys = 64

type paneOp[T, A any] struct {
	*windowOp[T, A]
	st    *store
	panes *rows[A]
}

func newPaneOp[T, A any](p *windowOp[T, A], st *store) *paneOp[T, A] {
	return &paneOp[T, A]{windowOp: p, st: st, panes: stored(st, p.out.codec)}
}

func (p *paneOp[T, A]) steps() {
	p.n.before = []*task.Timed{{Lines: []task.Line{{Prefix: lineOpen, Lag: p.w.CloseTime(p.w.At(0))}}, Run: p.close, Chunk: 1}}
}

// keyRow returns the key of a key's own row in scratch memory.
func (p *paneOp[T, A]) keyRow(x *exec, key []byte) []byte {
	x.keyBuf = windowRow(x.keyBuf[:0], lineKeys, 0, key)
	return x.keyBuf
}

// newest returns the start of a key's newest pane.
func (p *paneOp[T, A]) newest(x *exec, key []byte) (start int64, ok bool) {
	raw, ok := x.rec.Get(p.st.index, p.keyRow(x, key))
	if !ok || len(raw) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(raw)), true
}

func (p *paneOp[T, A]) setNewest(x *exec, key []byte, start int64) {
	x.valueBuf = binary.BigEndian.AppendUint64(x.valueBuf[:0], uint64(start))
	x.rec.Set(p.st.index, p.keyRow(x, key), x.valueBuf)
}

// paneRow returns the key of a pane in scratch memory.
func (p *paneOp[T, A]) paneRow(x *exec, pane window.Window, key []byte) []byte {
	x.keyBuf = windowRow(x.keyBuf[:0], rowPane, pane.Start, key)
	return x.keyBuf
}

// add adds a record to its pane.
func (p *paneOp[T, A]) add(x *exec, e *event[T]) {
	now := x.now(p.clock)
	win, ok := p.w.First(e.time)
	if !ok {
		return // before the epoch
	}
	first := win.Start
	if p.w.Closed(win, now) {
		p.missedSome(x, *e, now)
		for p.w.Closed(p.w.At(first), now) {
			if first += p.w.Advance(); first > e.time {
				return
			}
		}
	}
	pane := p.w.Pane(e.time)
	a, at, ok := p.panes.get(x, p.paneRow(x, pane, e.key))
	if x.failed() {
		return
	}
	if !ok {
		p.opened(x, e.key, pane, first)
		a = p.by.init()
	}
	p.forget(x, e.key, pane)
	a, _ = p.by.step(x, e, a)
	p.panes.set(x, row[A]{p.paneRow(x, pane, e.key), a, true, max(at, e.time)})
}

// opened notes a pane that was not there, and the first window to be closed
// for it.
func (p *paneOp[T, A]) opened(x *exec, key []byte, pane window.Window, first int64) {
	if newest, ok := p.newest(x, key); !ok || newest < pane.Start {
		p.setNewest(x, key, pane.Start)
	}
	next, ok := p.next(x)
	if ok && entryTime(next) <= first {
		return
	}
	if ok {
		x.rec.Set(p.st.index, next, nil)
	}
	x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, first, nil)
	x.rec.Set(p.st.index, x.keyBuf, []byte{})
	x.rec.Set(p.st.index, nextRow, x.keyBuf)
}

// nextRow is the key of the row that holds the key of the only entry.
var nextRow = []byte{rowPane}

// next returns the key of the entry.
func (p *paneOp[T, A]) next(x *exec) ([]byte, bool) {
	raw, ok := x.rec.Get(p.st.index, nextRow)
	if !ok || len(raw) < rowHead {
		return nil, false
	}
	return append([]byte(nil), raw...), true
}

// close emits a window that is closed, for some of the keys, and moves the
// entry on: to the other keys, or to the next window.
func (p *paneOp[T, A]) close(r *task.Record, due []task.Entry) error {
	x := execOf(r)
	win, from := p.w.At(due[0].Time), due[0].Key[rowHead:]
	next := p.w.At(win.Start + p.w.Advance())
	keys := r.Keys(nil, p.st.index, windowRow(nil, lineKeys, 0, from), paneKeys+1)
	held := false // something
	for i, k := range keys {
		if i == paneKeys || i > 0 && r.Crowded() {
			p.move(x, due[0].Key, windowRow(nil, lineOpen, win.Start, k[rowHead:]))
			return nil
		}
		held = p.closeKey(x, k[rowHead:], win, next) || held
		if x.failed() {
			return nil
		}
	}
	if !held {
		next = p.upcoming(x, next)
	}
	p.move(x, due[0].Key, p.following(x, next))
	return nil
}

// upcoming returns the first window from next on that has a pane. It costs a
// scan, but no look at each of the windows that have none.
func (p *paneOp[T, A]) upcoming(x *exec, next window.Window) window.Window {
	for row, err := range x.rec.Scan(p.st.index, storage.Range{From: windowRow(nil, rowPane, next.Start, nil), To: []byte{rowPane + 1}}) {
		if err != nil || len(row.Key) < rowHead {
			break // the record has failed
		}
		if first, ok := p.w.First(entryTime(row.Key)); ok && first.Start > next.Start {
			return first
		}
		break
	}
	return next
}

// following returns the key of the entry of the next window, nil if no key has
// panes.
func (p *paneOp[T, A]) following(x *exec, next window.Window) []byte {
	// Keys that are left have panes in next, or later. How much later is not
	// looked up: a window without panes costs a look at each key.
	from := []byte{lineKeys}
	for {
		keys := x.rec.Keys(nil, p.st.index, from, paneKeys)
		for _, k := range keys {
			if newest, ok := p.newest(x, k[rowHead:]); ok && newest >= next.Start {
				return windowRow(nil, lineOpen, next.Start, nil)
			}
		}
		if len(keys) < paneKeys {
			return nil
		}
		from = append(append([]byte(nil), keys[len(keys)-1]...), 0)
	}
}

// move replaces the entry; nil: there is none any more.
func (p *paneOp[T, A]) move(x *exec, was, to []byte) {
	x.rec.Set(p.st.index, was, nil)
	if to == nil {
		x.rec.Set(p.st.index, nextRow, nil)
		return
	}
	x.rec.Set(p.st.index, to, []byte{})
	x.rec.Set(p.st.index, nextRow, to)
}

// closeKey emits a window for a key, and deletes panes that are in no later
// one. It reports whether there was something in it.
func (p *paneOp[T, A]) closeKey(x *exec, key []byte, win, next window.Window) bool {
	ch := windowChange[A]{win, change[A]{key: key}}
	m := p.merged(x, key, win)
	if x.failed() || !m.ok {
		return false
	}
	ch.new, ch.time, ch.hasNew = m.a, m.time, true
	for pane := range p.w.Panes(win) {
		if pane.Start >= next.Start {
			break
		}
		row := p.paneRow(x, pane, key)
		if _, ok := x.rec.Get(p.st.index, row); ok {
			x.rec.Set(p.st.index, row, nil)
		}
	}
	if newest, ok := p.newest(x, key); ok && newest < next.Start { // nothing is left
		x.rec.Set(p.st.index, p.keyRow(x, key), nil)
		p.drop(x, key)
	}
	if keptOn(p.w) {
		x.keyBuf = windowRow(x.keyBuf[:0], lineKept, win.Start, key)
		p.panes.set(x, row[A]{x.keyBuf, ch.new, true, ch.time})
	}
	release(x, p.out.final.emit, ch)
	return true
}
