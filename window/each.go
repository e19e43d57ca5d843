package window

import "iter"

// Each yields the tumbling or hopping windows that contain t, by ascending
// start: all multiples of advance from max(0, t-size+1) to t. It yields
// nothing for t below 0 and for other kinds. A loop over it does not allocate.
func (ws Windows) Each(t int64) iter.Seq[Window] {
	return func(yield func(Window) bool) { ws.each(t, yield) }
}

// First returns the first window that Each yields for t, for loops that add
// Advance to its start up to t. It reports false if Each yields nothing.
func (ws *Windows) First(t int64) (w Window, ok bool) {
	if ws.advance <= 0 || t < 0 {
		return w, false
	}
	// The lowest multiple of advance that is above t-size.
	start := max(0, t-ws.span+ws.advance)
	start -= start % ws.advance
	return Window{start, add(start, ws.span)}, true
}

func (ws *Windows) each(t int64, yield func(Window) bool) {
	first, ok := ws.First(t)
	if !ok {
		return
	}
	for start := first.Start; ; {
		if !yield(Window{start, add(start, ws.span)}) || start > t-ws.advance {
			return
		}
		start += ws.advance
	}
}
