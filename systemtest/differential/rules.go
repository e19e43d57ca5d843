package differential

// rules are the differences that are meant, by name. Each says whether it
// explains one, from the inputs and from what both sides made of them, with
// stream time counted here. D5, D6, D7, D10 and part of D3 need none: groups,
// Disguised and Generate take care of them. D11 and D12 do not come up here:
// nothing restarts, and nothing is throttled. D9 orders results of different
// keys only.
var rules = []struct {
	name     string
	explains func(*situation, Difference) bool
}{
	{"D1 session near a closed one", (*situation).nearClosedSession},
	{"D2 suppress releases early", (*situation).suppressedEarly},
	{"D3 sliding window of a partly late record", (*situation).partlyLate},
	{"D3 sliding window repeated", (*situation).repeatedSliding},
	{"D4a null result at arrival", (*situation).nullAtArrival},
	{"D4b pair with a closed record", (*situation).closedPair},
	{"D4c null result instead of a pair of D4b or D4f", (*situation).nullForPair},
	{"D4d pair with an expired record", (*situation).expiredPair},
	{"D4e null result instead of a pair of D4d", (*situation).nullForExpired},
	{"D4f pair out of range", (*situation).clampedPair},
	{"D4g null key, late", (*situation).lateNullKey},
	{"D5 null result later, behind a join", (*situation).recountedLater},
	{"D8 no change of a table", (*situation).noChange},
	{"D14 time of a foreign-key result", (*situation).foreignTime},
}

// explain returns the name of the first rule that explains d, or "".
func (s *situation) explain(d Difference) string {
	for _, r := range rules {
		if r.explains(s, d) {
			return r.name
		}
	}
	return ""
}

// noChange: in Kafka Streams a table deletes what is not there. One that is
// made of other tables repeats a value, too.
func (s *situation) noChange(d Difference) bool {
	if !d.Missing || !s.Topology.table() {
		return false
	}
	switch s.Topology.Get("op") {
	case "tablejoin", "foreignjoin", "tablefilter", "tablemap":
	default:
		if d.Value != Null {
			return false
		}
	}
	last := Null
	for _, o := range s.streams {
		if o == d.Output && o.Value == last {
			return true
		}
		if o.Key == d.Key {
			last = o.Value
		}
	}
	return false
}

// recountedLater: a count of a left join's results has the same steps, but
// other times, when a null result comes later.
func (s *situation) recountedLater(d Difference) bool {
	if s.Topology.Get("op") != "joincount" || s.Topology.Get("kind") == "inner" {
		return false
	}
	_, ok := s.counterpart(d, false)
	return ok
}

// once reports whether the other side has a result once.
func (s *situation) once(o Output) bool {
	n := 0
	for _, p := range s.other {
		if p.same(o) {
			n++
		}
	}
	return n == 1
}

// counterpart finds a result that differs from d by its time only, after the
// same input if step says so, provided that both sides have as many such
// results.
func (s *situation) counterpart(d Difference, step bool) (Output, bool) {
	like := func(all []Output) []Output {
		var out []Output
		for _, o := range all {
			if o.Key == d.Key && o.Value == d.Value && (o.Step == d.Step || !step) {
				out = append(out, o)
			}
		}
		return out
	}
	theirs, mine := like(s.streams), like(s.other)
	if len(theirs) != len(mine) {
		return Output{}, false
	}
	if d.Missing {
		return mine[0], true
	}
	return theirs[0], true
}

// foreignTime: a result of a foreign-key join has the later one of the times of
// the record that makes it and of the other side's row. In Kafka Streams one
// that a right record makes has that record's time, whatever the left row's is,
// and so has a delete of a left join that a left record without foreign key
// makes, whatever that of the right row it leaves.
func (s *situation) foreignTime(d Difference) bool {
	if s.Topology.Get("op") != "foreignjoin" {
		return false
	}
	in := s.Inputs[d.Step]
	left, right := s.rowTimes(d)
	streams, other := in.Time, max(in.Time, left)
	if in.Topic == "L" {
		other = max(in.Time, right)
	}
	if in.Topic == "L" && (foreign(in.Value) != Null || d.Value != Null) {
		return false
	}
	o, ok := s.counterpart(d, true)
	if d.Missing {
		return ok && d.Time == streams && o.Time == other
	}
	return ok && d.Time == other && o.Time == streams
}

// rowTimes returns the times of the left row of d's key before the input that
// d follows, and of the right row that this one refers to.
func (s *situation) rowTimes(d Difference) (left, right int64) {
	left, right = -1, -1
	ref := Null
	for _, in := range s.Inputs[:d.Step] {
		if in.Topic == "L" && in.Key == d.Key {
			left, ref = in.Time, foreign(in.Value)
		}
	}
	for _, in := range s.Inputs[:d.Step] {
		if in.Topic == "R" && in.Key == ref {
			right = in.Time
		}
	}
	return left, right
}
