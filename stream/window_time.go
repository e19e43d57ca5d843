package stream

import (
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/window"
)

// Rows of tumbling and hopping windows have the keys
//
//	open ‖ start ‖ key     until the window is closed, or, if nothing is
//	                       emitted on close, until it expires
//	kept ‖ start ‖ key     after its final result, until it expires
//
// so that they lie in the order in which windows close, and a row is found by
// one read. Their value is the aggregate, their time that of the result.
const (
	lineOpen = 1
	lineKept = 2
)

// timeWindows returns what runs a record.
func timeWindows[T, A any](p *windowOp[T, A]) sink[event[T]] {
	rows := stored(p.n.store("", lineOpen, lineKept, lineKeys), p.out.codec)
	paned := false
	panes := newPaneOp(p, rows.st)
	p.n.build = func() {
		paned = p.finals && len(p.out.out.sinks) == 0 && p.w.Kind() == window.KindHopping && p.by.Mergeable && p.by.Merge != nil && p.by.Delete == nil
		p.n.before, p.n.expiry = nil, nil
		switch {
		case paned:
			panes.steps()
		case p.finals:
			p.n.before = []*task.Timed{{Lines: []task.Line{{Prefix: lineOpen, Lag: p.w.CloseTime(p.w.At(0))}}, Run: finals(p, rows)}}
		default:
			p.n.expiry = append(p.n.expiry, p.expiring(lineOpen, rows.st))
		}
		if p.finals && keptOn(p.w) {
			p.n.expiry = append(p.n.expiry, p.expiring(lineKept, rows.st))
		}
	}
	plain := eachWindow(p, rows)
	return func(x *exec, e event[T]) {
		if paned {
			panes.add(x, &e)
			return
		}
		plain(x, e)
	}
}

// expiring deletes rows of tumbling and hopping windows that are not visible
// any more: more at a time than a record can make.
func (p *windowOp[T, A]) expiring(line byte, st *store) *task.Timed {
	t := expiring(line, p.w.ExpiryTime(p.w.At(0)), st)
	t.Chunk += int(2 * (p.w.Size() / p.w.Advance()))
	return t
}

// keptOn reports whether rows stay after they are final.
func keptOn(w window.Windows) bool { return w.ExpiryTime(w.At(0)) > w.CloseTime(w.At(0)) }

// eachWindow adds a record to every open window that contains it.
func eachWindow[T, A any](p *windowOp[T, A], rows *rows[A]) sink[event[T]] {
	advance := p.w.Advance()
	return func(x *exec, e event[T]) {
		win, ok := p.w.First(e.time)
		if !ok {
			return // before the epoch
		}
		now := x.now(p.clock)
		closed := p.w.Closed(win, now)
		for open := !closed; ok; open = open || !p.w.Closed(win, now) {
			if open {
				p.addTo(x, e, win, rows)
			}
			if ok = win.Start <= e.time-advance; ok {
				win = p.w.At(win.Start + advance)
			}
		}
		if closed {
			p.missedSome(x, e, now)
		}
	}
}

// missedSome accounts for the closed windows that a record is in.
func (p *windowOp[T, A]) missedSome(x *exec, e event[T], now int64) {
	var missed []window.Window
	for win := range p.w.Each(e.time) {
		if p.w.Closed(win, now) {
			missed = append(missed, win)
		}
	}
	p.missed(x, &e, missed)
}

// addTo adds a record to a window.
func (p *windowOp[T, A]) addTo(x *exec, e event[T], win window.Window, rows *rows[A]) {
	x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, win.Start, e.key)
	ch := windowChange[A]{win, change[A]{key: e.key, time: e.time}}
	var at int64
	if ch.old, at, ch.hasOld = rows.get(x, x.keyBuf); x.failed() {
		return
	}
	a := ch.old
	if !ch.hasOld {
		a = p.by.init()
	} else {
		ch.time = max(ch.time, at)
	}
	if ch.new, ch.hasNew = p.by.step(x, &e, a); !ch.hasOld && !ch.hasNew {
		return
	}
	x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, win.Start, e.key) // functions may have used it
	rows.set(x, row[A]{x.keyBuf, ch.new, ch.hasNew, ch.time})
	p.out.out.emit(x, ch)
}

// windowRow appends the key of a window's row.
func windowRow(dst []byte, line byte, start int64, key []byte) []byte {
	return append(window.AppendTime(append(dst, line), start), key...)
}

// rowHead is what stands before the record's key in a window's row.
const rowHead = 1 + 8

// finals releases windows that are closed.
func finals[T, A any](p *windowOp[T, A], rows *rows[A]) func(*task.Record, []task.Entry) error {
	kept := keptOn(p.w)
	return func(r *task.Record, due []task.Entry) error {
		x := execOf(r)
		for i := range due {
			e := &due[i]
			if i > 0 && r.Crowded() {
				break
			}
			v, ok := decodeStored(x, rows.codec, e.Value, place{rows.st.spec.Changelog, e.Key[rowHead:]})
			if !ok {
				break
			}
			r.Set(rows.st.index, e.Key, nil)
			if kept {
				x.keyBuf = windowRow(x.keyBuf[:0], lineKept, e.Time, e.Key[rowHead:])
				r.SetRow(rows.st.index, task.Row{Key: x.keyBuf, Value: e.Value, Time: e.RowTime})
			}
			release(x, p.out.final.emit, windowChange[A]{p.w.At(e.Time), change[A]{key: e.Key[rowHead:], new: v, hasNew: true, time: e.RowTime}})
		}
		return nil
	}
}

// expiring deletes rows that are not visible any more.
func expiring(line byte, lag int64, st *store) *task.Timed {
	return &task.Timed{Lines: []task.Line{{Prefix: line, Lag: lag}}, Chunk: 256, Run: func(r *task.Record, due []task.Entry) error {
		for i := range due {
			r.Set(st.index, due[i].Key, nil)
		}
		return nil
	}}
}
