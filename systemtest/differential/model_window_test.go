package differential

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// windowModel is one with the records that count in it, in their order of arrival.
type windowModel struct {
	key        string
	start, end int64 // end as written
	closes     int64 // time at which it is closed
	values     []fed
	emitted    bool // its final result is out
}

func (w *windowModel) at(time int64) bool { return time >= w.closes }

// newest returns the time of the result.
func (w *windowModel) newest() int64 {
	t := w.values[0].Time
	for _, v := range w.values {
		t = max(t, v.Time)
	}
	return t
}

// aggregation is what all kinds of windows share: how results leave.
type aggregation struct {
	t       Topology
	grace   int64
	windows []*windowModel
}

func newAggregation(t Topology) aggregation { return aggregation{t: t, grace: t.Int("grace")} }

func (a *aggregation) find(key string, start int64) *windowModel {
	for _, w := range a.windows {
		if w.key == key && w.start == start {
			return w
		}
	}
	return nil
}

func (a *aggregation) emit(m *model, w *windowModel) {
	var values []string
	for _, v := range w.values {
		values = append(values, v.Value)
	}
	m.emit(fmt.Sprintf("%s@%d/%d", w.key, w.start, w.end), fold(a.t.Get("op"), values), w.newest())
}

// changed emits the update of a window, if updates are emitted.
func (a *aggregation) changed(m *model, w *windowModel) {
	if a.t.Get("emit") == "update" {
		a.emit(m, w)
	}
}

// finals emits the results of windows that closed, if only these are emitted.
func (a *aggregation) finals(m *model) {
	if a.t.Get("emit") == "update" {
		return
	}
	var due []*windowModel
	for _, w := range a.windows {
		if w.at(m.time) && !w.emitted {
			w.emitted = true
			due = append(due, w)
		}
	}
	slices.SortStableFunc(due, func(x, y *windowModel) int {
		return cmp.Or(cmp.Compare(x.closes, y.closes), strings.Compare(x.key, y.key))
	})
	for _, w := range due {
		a.emit(m, w)
	}
}

func (a *aggregation) release(m *model) {
	if a.t.Get("emit") == "close" {
		a.finals(m)
	}
}

func (a *aggregation) after(m *model) {
	if a.t.Get("emit") == "suppress" {
		a.finals(m)
	}
}

// timed is an aggregation in tumbling or hopping windows.
type timed struct{ aggregation }

func (a *timed) process(m *model, in fed) {
	if in.skip {
		return
	}
	size, advance := a.t.Int("size"), a.t.Int("advance")
	if advance == 0 {
		advance = size
	}
	for start := max(0, in.Time-size) / advance * advance; start <= in.Time; start += advance {
		w := a.find(in.Key, start)
		if w == nil {
			w = &windowModel{key: in.Key, start: start, end: start + size, closes: start + size + a.grace}
		}
		if in.Time >= start+size || w.at(m.time) {
			continue
		}
		if len(w.values) == 0 {
			a.windows = append(a.windows, w)
		}
		w.values = append(w.values, in)
		a.changed(m, w)
	}
}

// sliding is an aggregation in sliding windows.
type sliding struct {
	aggregation

	accepted []fed
}

func (a *sliding) process(m *model, in fed) {
	size := a.t.Int("size")
	if in.skip || m.time >= in.Time+size+1+a.grace {
		return
	}
	a.accepted = append(a.accepted, in)
	starts := map[int64]bool{}
	for _, f := range a.accepted {
		if f.Key == in.Key {
			starts[max(0, f.Time-size)] = true
			starts[f.Time+1] = true
		}
	}
	for start := max(0, in.Time-size); start <= in.Time+1; start++ {
		old := a.find(in.Key, start)
		w := &windowModel{key: in.Key, start: start, end: start + size, closes: start + size + 1 + a.grace}
		for _, f := range a.accepted {
			if f.Key == in.Key && start <= f.Time && f.Time <= w.end {
				w.values = append(w.values, f)
			}
		}
		// The right window of the record does not hold it, and is news only
		// if no other record made it.
		right := start > in.Time
		if !starts[start] || len(w.values) == 0 || w.at(m.time) || right && old != nil {
			continue
		}
		if old == nil {
			a.windows = append(a.windows, w)
		} else {
			old.values = w.values
			w = old
		}
		a.changed(m, w)
	}
}

// sessionModel is an aggregation in sessions. Closed ones leave it once they are
// emitted, since nothing may find them.
type sessionModel struct{ aggregation }

func (a *sessionModel) process(m *model, in fed) {
	if in.skip {
		return
	}
	gap := a.t.Int("gap")
	merged := &windowModel{key: in.Key, start: in.Time, end: in.Time}
	var found, rest []*windowModel
	for _, w := range a.windows {
		if w.key != in.Key || w.at(m.time) || !(session{w.start, w.end}).near(in.Time, gap) {
			rest = append(rest, w)
			continue
		}
		found = append(found, w)
		merged.start, merged.end = min(merged.start, w.start), max(merged.end, w.end)
	}
	merged.closes = merged.end + gap + 1 + a.grace
	if merged.at(m.time) {
		return
	}
	slices.SortFunc(found, func(x, y *windowModel) int { return cmp.Compare(x.start, y.start) })
	grows := merged.start < merged.end // a session of one instant is replaced without a tombstone
	for _, w := range found {
		merged.values = append(merged.values, w.values...)
		if a.t.Get("emit") == "update" && grows {
			m.emit(fmt.Sprintf("%s@%d/%d", w.key, w.start, w.end), Null, w.end)
		}
	}
	merged.values = append(merged.values, in)
	rest = append(rest, merged)
	a.windows = rest
	a.changed(m, merged)
}
