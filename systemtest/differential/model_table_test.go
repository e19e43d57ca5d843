package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tables is a chain that begins with one table or two. It derives the results
// from the rows before and after a record, and emits what changed.
type tables struct {
	t           Topology
	left, right map[string]row
	groups      map[string]row
	counts      map[string]int
}

func newTables(t Topology) (operator, error) {
	switch op := t.Get("op"); op {
	case "suppresstime":
		return &held{table: true}, nil
	case "tablejoin", "foreignjoin", "tablefilter", "tablemap", "totable", "tableagg", "tablecount":
		return &tables{t, map[string]row{}, map[string]row{}, map[string]row{}, map[string]int{}}, nil
	default:
		return nil, fmt.Errorf("no model of op %q", op)
	}
}

func (s *tables) release(*model) {}
func (s *tables) after(*model)   {}

// get returns a row's value.
func get(rows map[string]row, key string) (string, int64) {
	r, ok := rows[key]
	if !ok || r.value == Null {
		return Null, -1
	}
	return r.value, r.time
}

func (s *tables) process(m *model, in fed) {
	if in.Key == Null {
		return
	}
	rows, side := s.left, "left"
	if in.Topic == "R" {
		rows, side = s.right, "right"
	}
	old, seen := rows[in.Key]
	versioned := s.t.Get("versioned") == side || s.t.Get("versioned") == "both"
	if versioned && seen && in.Time < old.time {
		return // a version before the latest one
	}
	if !seen {
		old.value = Null
	}
	switch s.t.Get("op") {
	case "tablejoin":
		s.join(m, in, rows)
	case "foreignjoin":
		s.foreignJoin(m, in, rows)
	case "tableagg", "tablecount":
		rows[in.Key] = row{in.Value, in.Time}
		s.regroup(m, in, old.value)
	case "totable":
		rows[in.Key] = row{in.Value, in.Time}
		if in.Value != Null || old.value != Null {
			m.emit(in.Key, in.Value, in.Time)
		}
	default:
		rows[in.Key] = row{in.Value, in.Time}
		s.change(m, Output{Key: in.Key, Value: s.derive(in.Value), Time: in.Time}, s.derive(old.value))
	}
}

// change emits a result unless it is as it was.
func (s *tables) change(m *model, now Output, before string) {
	if now.Value != before {
		m.emit(now.Key, now.Value, now.Time)
	}
}

func (s *tables) derive(v string) string {
	switch s.t.Get("op") {
	case "tablefilter":
		if strings.HasPrefix(v, "z") {
			return Null
		}
	case "tablemap":
		return letter(v)
	}
	return v
}

// result joins two values.
func (s *tables) result(l, r string) string {
	kind := s.t.Get("kind")
	switch {
	case l == Null && r == Null, l == Null && kind != "outer", r == Null && kind == "inner":
		return Null
	}
	return strings.ReplaceAll(l, Null, none) + "|" + strings.ReplaceAll(r, Null, none)
}

func (s *tables) join(m *model, in fed, rows map[string]row) {
	both := func() (string, int64) {
		l, lt := get(s.left, in.Key)
		r, rt := get(s.right, in.Key)
		if in.Topic == "L" {
			return s.result(l, r), rt
		}
		return s.result(l, r), lt
	}
	before, _ := both()
	rows[in.Key] = row{in.Value, in.Time}
	now, at := both()
	s.change(m, Output{Key: in.Key, Value: now, Time: max(in.Time, at)}, before)
}

func (s *tables) foreignJoin(m *model, in fed, rows map[string]row) {
	// A row that refers to nothing any more leaves when the right row that it
	// referred to is there, too.
	left, _ := get(s.left, in.Key)
	_, gone := get(s.right, foreign(left))
	all := func() map[string]Output {
		out := map[string]Output{}
		for key := range s.left {
			l, lt := get(s.left, key)
			r, rt := get(s.right, foreign(l))
			at := rt
			if in.Topic == "R" {
				at = lt
			}
			out[key] = Output{Key: key, Value: s.result(l, r), Time: max(in.Time, at)}
		}
		return out
	}
	before := all()
	rows[in.Key] = row{in.Value, in.Time}
	after := all()
	for _, key := range slices.Sorted(maps.Keys(after)) {
		now := after[key]
		was, ok := before[key]
		if !ok {
			was.Value = Null
		}
		if in.Topic == "L" && foreign(in.Value) == Null && now.Value == Null {
			now.Time = max(now.Time, gone)
		}
		s.change(m, now, was.Value)
	}
}

// regroup moves a row's value from its old group to its new one.
func (s *tables) regroup(m *model, in fed, old string) {
	from, to := letter(old), letter(in.Value)
	update := func(group string, change func(row) row) {
		g, ok := s.groups[group]
		if !ok {
			g.value = "0"
		}
		g = change(g)
		g.time = max(g.time, in.Time)
		s.groups[group] = g
		if s.t.Get("op") == "tablecount" {
			g.value = fmt.Sprint(s.counts[group])
		}
		m.emit(group, g.value, g.time)
	}
	add := func(g row) row {
		s.counts[to]++
		return row{g.value + "+" + in.Value, g.time}
	}
	subtract := func(g row) row {
		s.counts[from]--
		return row{g.value + "-" + old, g.time}
	}
	switch {
	case from != Null && from == to:
		update(to, func(g row) row { return add(subtract(g)) })
	default:
		if from != Null {
			update(from, subtract)
		}
		if to != Null {
			update(to, add)
		}
	}
}
