package differential

import "strings"

// runBehind runs a model with final counts by key and window behind it, which
// are a model with a time of its own: stream time less what the first one may
// hold back. What the first one releases as time goes on reaches the second one
// before it sees that time.
func runBehind(m *model, first operator) []Output {
	second := &timed{newAggregation("op=count window=tumbling size=20 grace=0 emit=close")}
	behind := &model{Case: m.Case, time: -1}
	hold, after := m.Topology.hold()
	pass := func() {
		for _, o := range m.out {
			key, _, _ := strings.Cut(o.Key, "@")
			second.process(behind, fed{Input: Input{Key: key, Value: o.Value, Time: o.Time}, skip: key == Null || o.Value == Null})
		}
		m.out = nil
	}
	goOn := func() {
		behind.time = m.time - hold
		second.release(behind)
	}
	for i, f := range m.feed() {
		m.step, m.time = i, max(m.time, f.Time)
		behind.step = i
		first.release(m)
		pass()
		if !after {
			goOn()
		}
		first.process(m, f)
		pass()
		first.after(m)
		pass()
		if after {
			goOn()
		}
	}
	return behind.out
}

// hold returns by how much results may be older than stream time when they
// come, and whether such come after the record that raises it.
func (t Topology) hold() (hold int64, after bool) {
	switch {
	case t.Get("op") == "streamtable":
		return t.Int("grace"), t.Get("grace") != ""
	case t.Get("op") == "join":
		if t.Get("kind") == "inner" {
			return 0, false
		}
		return max(t.Int("before"), t.Int("after"), 0) + 1 + t.Int("grace"), false
	case t.Get("wait") != "":
		return t.Int("wait"), t.Int("wait") > 0
	case t.Get("emit") == "update":
		return 0, false
	}
	hold = t.Int("size") + t.Int("gap") + t.Int("grace")
	if w := t.Get("window"); w == "sliding" || w == "session" {
		hold++
	}
	return hold, t.Get("emit") == "suppress"
}

// regroup gathers the rows of a table by the first letter of their values: each
// change takes the old value out of its group and puts the new one in.
func regroup(changes []Output) []Output {
	rows := map[string]string{}
	groups := map[string]row{}
	var out []Output
	update := func(o Output, group, change string) {
		g, ok := groups[group]
		if !ok {
			g.value = "0"
		}
		g = row{g.value + change, max(g.time, o.Time)}
		groups[group] = g
		out = append(out, Output{o.Step, group, g.value, g.time})
	}
	for _, o := range changes {
		old, ok := rows[o.Key]
		if !ok {
			old = Null
		}
		rows[o.Key] = o.Value
		from, to := letter(old), letter(o.Value)
		switch {
		case old != Null && from == to && o.Value != Null:
			update(o, to, "-"+old+"+"+o.Value)
		default:
			if old != Null {
				update(o, from, "-"+old)
			}
			if o.Value != Null {
				update(o, to, "+"+o.Value)
			}
		}
	}
	return out
}
