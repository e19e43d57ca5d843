package stream

import (
	"bytes"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/window"
)

// heldWindows are results that wait until their windows are closed, one row
// each, whose time is the result's:
//
//	open ‖ start ‖ key    tumbling, hopping and sliding windows
//	open ‖ last ‖ key     sessions; the first time is in the value
//	total                 see heldRows
//
// A result that is taken back has no row. Of a key's sessions only one can end
// at a time: it is taken back before another one ends with it.
type heldWindows[A any] struct {
	bound
	codec codec.Codec[A]
	w     window.Windows
	out   *port[windowChange[A]]
}

func newHeldWindows[A any](n *node, w window.Windows, h heldWindows[A]) *heldWindows[A] {
	h.n, h.w, h.st = n, w, n.store("", lineOpen)
	h.lag, h.clock = w.CloseTime(w.At(0)), n.ownClock()
	n.holds(w.Hold())
	n.released = append(n.released, &task.Timed{Lines: []task.Line{{Prefix: lineOpen, Lag: h.lag}}, Run: h.due})
	return &h
}

// line is where a window's row lies in the timeline.
func (h *heldWindows[A]) line(win window.Window) int64 {
	if h.w.Kind() == window.KindSession {
		return win.End
	}
	return win.Start
}

// split returns the window of a row, and the encoding of its result.
func (h *heldWindows[A]) split(line int64, value []byte) (win window.Window, raw []byte) {
	if h.w.Kind() != window.KindSession {
		return h.w.At(line), value
	}
	r := reader{b: value}
	return window.Window{Start: r.number(), End: line}, r.b
}

// put holds a result back in place of the one before it.
func (h *heldWindows[A]) put(x *exec, e windowChange[A]) {
	var value []byte // nil: the result was taken back
	if e.hasNew {
		raw := encode(x, h.codec, e.new)
		if raw == nil {
			return
		}
		if value = raw; h.w.Kind() == window.KindSession {
			x.listBuf = append(appendNumber(x.listBuf[:0], e.win.Start), raw...)
			value = x.listBuf
		}
	}
	x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, h.line(e.win), e.key)
	was, known := []byte(nil), false
	if h.bounded() || !e.hasNew {
		if was, known = x.rec.Get(h.st.index, x.keyBuf); x.failed() {
			return
		}
		if win, _ := h.split(h.line(e.win), was); !e.hasNew && (!known || win != e.win) {
			return // nothing is held back of it
		}
	}
	more := total{0, int64(len(value) - len(was))}
	switch {
	case !known:
		more = total{1, int64(len(x.keyBuf) + len(value))}
	case !e.hasNew:
		more = total{-1, -int64(len(x.keyBuf) + len(was))}
	}
	x.rec.SetRow(h.st.index, task.Row{Key: x.keyBuf, Value: value, Time: e.time})
	if h.count(x, more) {
		h.makeRoom(x, func(x *exec, entry []byte) {
			if value, at, ok := x.rec.GetRow(h.st.index, entry); ok {
				h.emit(x, &task.Entry{Time: entryTime(entry), Key: entry, Value: bytes.Clone(value), RowTime: at})
			}
		})
	}
}

// due emits the results of windows that are closed.
func (h *heldWindows[A]) due(r *task.Record, due []task.Entry) error {
	x := execOf(r)
	for i := range due {
		if i > 0 && r.Crowded() || x.failed() {
			break
		}
		h.emit(x, &due[i])
	}
	return nil
}

// emit emits the result of a window that is closed.
func (h *heldWindows[A]) emit(x *exec, e *task.Entry) {
	key := e.Key[rowHead:]
	win, raw := h.split(e.Time, e.Value)
	v, ok := decodeStored(x, h.codec, raw, place{h.st.spec.Changelog, key})
	if !ok {
		return
	}
	x.rec.Set(h.st.index, e.Key, nil)
	h.count(x, total{-1, -int64(len(e.Key) + len(e.Value))})
	release(x, h.out.emit, windowChange[A]{win, change[A]{key: key, new: v, hasNew: true, time: e.RowTime}})
}
