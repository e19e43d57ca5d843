package differential

import "strings"

// joined is a result of a stream–stream join by the indexes of its inputs; -1
// stands for an absent side.
type joined struct{ l, r int }

func (p joined) null() bool { return p.l < 0 || p.r < 0 }

// of returns the input of a null result, and its side.
func (p joined) of() (int, string) {
	if p.l >= 0 {
		return p.l, "L"
	}
	return p.r, "R"
}

// earlier returns the input of a pair that came first, its side, and the input
// that came later.
func (p joined) earlier() (x int, side string, later int) {
	if p.l <= p.r {
		return p.l, "L", p.r
	}
	return p.r, "R", p.l
}

func (p joined) has(i int, side string) bool {
	return side == "L" && p.l == i || side == "R" && p.r == i
}

// parse finds the inputs of a join's result by their values, of which each is
// there once.
func (s *situation) parse(d Output) (joined, bool) {
	if s.Topology.Get("op") != "join" {
		return joined{}, false
	}
	l, r, ok := strings.Cut(d.Value, "|")
	p := joined{-1, -1}
	for i, in := range s.Inputs {
		if in.Value == l && in.Topic == "L" {
			p.l = i
		}
		if in.Value == r && (in.Topic == "R" || s.Topology.Get("self") != "") {
			p.r = i
		}
	}
	known := (l == none) == (p.l < 0) && (r == none) == (p.r < 0)
	return p, ok && known && (p.l >= 0 || p.r >= 0)
}

// sound reports whether a result that only the other side has is one of its
// inputs: in range, with their key and time, and there once.
func (s *situation) sound(o Output, p joined) bool {
	if p.null() {
		i, _ := p.of()
		return s.Inputs[i].Key == o.Key && s.Inputs[i].Time == o.Time && s.once(o)
	}
	l, r := s.Inputs[p.l], s.Inputs[p.r]
	apart := r.Time - l.Time
	return l.Key == o.Key && r.Key == o.Key && max(l.Time, r.Time) == o.Time && s.once(o) &&
		-s.Topology.Int("before") <= apart && apart <= s.Topology.Int("after")
}

// pairOf parses d if it is a pair that only one side, as missing says, has.
func (s *situation) pairOf(d Difference, missing bool) (joined, bool) {
	p, ok := s.parse(d.Output)
	return p, ok && d.Missing == missing && !p.null() && (missing || s.sound(d.Output, p))
}

// nullOf parses d if it is a null result that only one side has.
func (s *situation) nullOf(d Difference, missing bool) (i int, side string, ok bool) {
	p, ok := s.parse(d.Output)
	if !ok || d.Missing != missing || !p.null() || !missing && !s.sound(d.Output, p) {
		return 0, "", false
	}
	i, side = p.of()
	return i, side, true
}

// pairs returns the pairs among results that hold input i on a side.
func (s *situation) pairs(all []Output, i int, side string) []joined {
	var out []joined
	for _, o := range all {
		if p, ok := s.parse(o); ok && !p.null() && p.has(i, side) {
			out = append(out, p)
		}
	}
	return out
}

// closedAt reports whether the join window of input i was closed at another.
func (s *situation) closedAt(i int, side string, at int) bool {
	forward := s.Topology.Int("after")
	if side == "R" {
		forward = s.Topology.Int("before")
	}
	return s.time[at] >= s.Inputs[i].Time+max(0, forward)+1+s.Topology.Int("grace")
}

// ruleB: the earlier record was closed when the later one came.
func (s *situation) ruleB(p joined) bool {
	x, side, later := p.earlier()
	return s.closedAt(x, side, later)
}

// ruleD: Kafka's store had dropped the earlier record when the later one came.
func (s *situation) ruleD(p joined) bool {
	x, side, later := p.earlier()
	high := int64(-1)
	for _, in := range s.Inputs[:later+1] {
		if (in.Topic == side || s.Topology.Get("self") != "") && in.Key != Null { // a null value moves the store's time too
			high = max(high, in.Time)
		}
	}
	t := s.Topology
	return s.Inputs[x].Time <= high-(t.Int("before")+t.Int("after")+t.Int("grace"))
}

// ruleF: with a negative bound Kafka Streams moves the end of a range that
// lies before 0 to 0, and finds records there that do not match.
func (s *situation) ruleF(p joined) bool {
	t := s.Topology
	apart := s.Inputs[p.r].Time - s.Inputs[p.l].Time
	x, _, _ := p.earlier()
	return (apart < -t.Int("before") || apart > t.Int("after")) && s.Inputs[x].Time == 0 &&
		(t.Int("before") < 0 || t.Int("after") < 0)
}

func (s *situation) nullAtArrival(d Difference) bool {
	i, side, ok := s.nullOf(d, true)
	open := ok && !s.closedAt(i, side, len(s.Inputs)-1) // at the end
	return ok && d.Key != Null && d.Step == i && (open || s.closedAt(i, side, i) || len(s.pairs(s.other, i, side)) > 0)
}

func (s *situation) closedPair(d Difference) bool {
	p, ok := s.pairOf(d, true)
	return ok && s.ruleB(p)
}

func (s *situation) nullForPair(d Difference) bool {
	i, side, ok := s.nullOf(d, false)
	if !ok {
		return false
	}
	all := s.pairs(s.streams, i, side)
	for _, p := range all {
		if !s.ruleB(p) && !s.ruleF(p) {
			return false
		}
	}
	return len(all) > 0
}

func (s *situation) expiredPair(d Difference) bool {
	p, ok := s.pairOf(d, false)
	return ok && s.ruleD(p)
}

func (s *situation) nullForExpired(d Difference) bool {
	i, side, ok := s.nullOf(d, true)
	if !ok {
		return false
	}
	all := s.pairs(s.other, i, side)
	for _, p := range all {
		if !s.ruleD(p) {
			return false
		}
	}
	return len(all) > 0
}

func (s *situation) clampedPair(d Difference) bool {
	p, ok := s.pairOf(d, true)
	return ok && s.ruleF(p)
}

func (s *situation) lateNullKey(d Difference) bool {
	i, side, ok := s.nullOf(d, true)
	return ok && d.Key == Null && s.closedAt(i, side, i)
}
