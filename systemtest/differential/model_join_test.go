package differential

import (
	"cmp"
	"slices"
	"strings"
)

// joining is a join of two streams.
type joining struct {
	t      Topology
	stored []*kept
	n      int
}

// kept is a stored record of a join.
type kept struct {
	fed

	side    string
	order   int // of arrival
	matched bool
	closes  int64
}

func (j *joining) forward(side string) int64 {
	if side == "L" {
		return max(0, j.t.Int("after"))
	}
	return max(0, j.t.Int("before"))
}

func (j *joining) nulls(side string) bool {
	kind := j.t.Get("kind")
	return kind == "outer" || kind == "left" && side == "L"
}

func nullFor(side, value string) string {
	if side == "L" {
		return value + "|" + none
	}
	return none + "|" + value
}

func (j *joining) release(m *model) {
	var due []*kept
	for _, k := range j.stored {
		if !k.matched && j.nulls(k.side) && m.time >= k.closes {
			k.matched = true
			due = append(due, k)
		}
	}
	slices.SortFunc(due, func(x, y *kept) int {
		// The right side comes first.
		return cmp.Or(cmp.Compare(x.Time, y.Time), -strings.Compare(x.side, y.side), strings.Compare(x.Key, y.Key), cmp.Compare(x.order, y.order))
	})
	for _, k := range due {
		m.emit(k.Key, nullFor(k.side, k.Value), k.Time)
	}
}

func (j *joining) process(m *model, in fed) {
	j.arrive(m, in, in.Topic)
	if j.t.Get("self") != "" {
		j.arrive(m, in, "R")
	}
}

func (j *joining) arrive(m *model, in fed, side string) {
	closes := in.Time + j.forward(side) + 1 + j.t.Int("grace")
	if in.Value == Null {
		return
	}
	if in.Key == Null {
		if j.nulls(side) && m.time < closes {
			m.emit(Null, nullFor(side, in.Value), in.Time)
		}
		return
	}
	j.n++
	me := &kept{fed: in, side: side, order: j.n, closes: closes}
	slices.SortStableFunc(j.stored, func(x, y *kept) int {
		return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(x.order, y.order))
	})
	for _, k := range j.stored {
		l, r := me, k
		if side == "R" {
			l, r = k, me
		}
		apart := r.Time - l.Time
		if k.Key != in.Key || k.side == side || m.time >= k.closes || apart < -j.t.Int("before") || apart > j.t.Int("after") {
			continue
		}
		k.matched, me.matched = true, true
		m.emit(in.Key, l.Value+"|"+r.Value, max(l.Time, r.Time))
	}
	if m.time < closes {
		j.stored = append(j.stored, me)
	}
}

func (j *joining) after(*model) {}

// lookup is a join of a stream with a table, whose every version it keeps.
type lookup struct {
	t       Topology
	table   []fed // in order of arrival
	waiting []fed
}

func (l *lookup) process(m *model, in fed) {
	if in.Topic == "R" {
		if in.Key != Null {
			l.table = append(l.table, in)
		}
		return
	}
	if in.Value == Null {
		return
	}
	if l.t.Get("grace") != "" && in.Key != Null && in.Time > m.time-l.t.Int("grace") {
		l.waiting = append(l.waiting, in)
		return
	}
	l.join(m, in)
}

func (l *lookup) join(m *model, in fed) {
	left := l.t.Get("kind") == "left"
	value, at := Null, int64(-1)
	for _, row := range l.table {
		valid := l.t.Get("versioned") == "" || row.Time <= in.Time && row.Time >= at
		if row.Key == in.Key && valid {
			value, at = row.Value, row.Time
		}
	}
	switch {
	case in.Key == Null && left, value == Null && left:
		m.emit(in.Key, in.Value+"|"+none, in.Time)
	case in.Key != Null && value != Null:
		m.emit(in.Key, in.Value+"|"+value, in.Time)
	}
}

func (l *lookup) release(m *model) {
	slices.SortStableFunc(l.waiting, func(x, y fed) int { return cmp.Compare(x.Time, y.Time) })
	for len(l.waiting) > 0 && l.waiting[0].Time <= m.time-l.t.Int("grace") {
		l.join(m, l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

func (l *lookup) after(*model) {}

// global is a join of a stream with a global table.
type global struct{ rows map[string]string }

func (g *global) release(*model) {}
func (g *global) after(*model)   {}

func (g *global) process(m *model, in fed) {
	if in.Topic == "R" {
		if in.Key != Null {
			g.rows[in.Key] = in.Value
		}
		return
	}
	key := in.Key
	if m.Topology.Get("by") == "value" {
		key = foreign(in.Value)
	}
	value, ok := g.rows[key]
	switch {
	case in.Value == Null:
	case key != Null && ok && value != Null:
		m.emit(in.Key, in.Value+"|"+value, in.Time)
	case m.Topology.Get("kind") == "left":
		m.emit(in.Key, in.Value+"|"+none, in.Time)
	}
}
