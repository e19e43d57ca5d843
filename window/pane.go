package window

import "iter"

// Panes are what an aggregate that can be merged is kept in: the stretches of
// time between two cuts. Cuts are the starts and the ends of all windows, that
// is the multiples of advance, and those plus size mod advance. So no window
// begins or ends within a pane: each record is in one pane, and each window is
// made of whole ones. There are at most two an advance. (Known as paired
// windows: Krishnamurthy, Wu, Franklin, "On-the-fly sharing for streamed
// aggregation", SIGMOD 2006.)

// Pane returns the pane [Start, End) that t is in, of tumbling or hopping
// windows, and the zero Window for t below 0 and for other kinds. A pane of
// tumbling windows is the window.
func (ws Windows) Pane(t int64) Window {
	if ws.advance <= 0 || t < 0 {
		return Window{}
	}
	into := t % ws.advance
	base := t - into
	switch cut := ws.span % ws.advance; {
	case cut == 0:
		return Window{base, add(base, ws.advance)}
	case into < cut:
		return Window{base, add(base, cut)}
	default:
		return Window{base + cut, add(base, ws.advance)}
	}
}

// Panes yields the panes that w is made of, by ascending start. w must be one
// of Each's. A loop over it does not allocate.
func (ws Windows) Panes(w Window) iter.Seq[Window] {
	return func(yield func(Window) bool) { ws.panes(w, yield) }
}

func (ws *Windows) panes(w Window, yield func(Window) bool) {
	if ws.advance <= 0 {
		return
	}
	for at := w.Start; at < w.End; {
		p := ws.Pane(at)
		if !yield(p) {
			return
		}
		at = p.End
	}
}
