package differential

import (
	"fmt"
	"strings"
)

// windowOf parses a windowed key.
func windowOf(key string) (record string, start, end int64, ok bool) {
	record, times, ok := strings.Cut(key, "@")
	if !ok {
		return key, 0, 0, false
	}
	n, err := fmt.Sscanf(times, "%d/%d", &start, &end)
	return record, start, end, err == nil && n == 2
}

// session is a run of records of one key.
type session struct{ first, last int64 }

func (s session) near(t, gap int64) bool { return s.first-gap <= t && t <= s.last+gap }

// nearClosedSession: from the record on that falls within the gap of a closed
// session of its key, results of that key may differ: Kafka Streams finds
// closed sessions and merges with them.
func (s *situation) nearClosedSession(d Difference) bool {
	if s.Topology.Get("window") != "session" {
		return false
	}
	key, _, _, ok := windowOf(d.Key)
	if !ok {
		return false
	}
	gap, grace := s.Topology.Int("gap"), s.Topology.Int("grace")
	closed := func(x session, at int) bool { return s.time[at] >= x.last+gap+1+grace }
	var sessions []session
	for i, f := range s.feed()[:d.Step+1] {
		if f.skip || f.Key != key {
			continue
		}
		merged := session{f.Time, f.Time}
		var rest []session
		for _, x := range sessions {
			switch {
			case !x.near(f.Time, gap):
				rest = append(rest, x)
			case closed(x, i):
				return true
			default:
				merged = session{min(merged.first, x.first), max(merged.last, x.last)}
			}
		}
		if !closed(merged, i) {
			rest = append(rest, merged)
			sessions = rest
		}
	}
	return false
}

// suppressedEarly: sliding windows and sessions leave Kafka's suppression 1 ms
// before they are closed. What changes them in that millisecond makes another
// result, and the last one counts.
func (s *situation) suppressedEarly(d Difference) bool {
	window := s.Topology.Get("window")
	if !d.Missing || s.Topology.Get("emit") != "suppress" || window != "sliding" && window != "session" {
		return false
	}
	key, start, end, ok := windowOf(d.Key)
	if !ok || s.time[d.Step] != end+s.Topology.Int("gap")+s.Topology.Int("grace") {
		return false
	}
	if s.time[len(s.time)-1] == s.time[d.Step] {
		return true // it is not closed at the end
	}
	passed := false
	for _, o := range s.streams {
		k, first, last, _ := windowOf(o.Key)
		covers := window == "session" && k == key && first <= start && end <= last
		if passed && (o.Key == d.Key || covers) {
			return true
		}
		passed = passed || o == d.Output
	}
	return false
}

// partlyLate: a record whose left window is closed, but that is accepted,
// counts in open windows where Kafka Streams misses it, and the other way
// round.
func (s *situation) partlyLate(d Difference) bool {
	if s.Topology.Get("window") != "sliding" {
		return false
	}
	key, start, _, ok := windowOf(d.Key)
	if !ok {
		return false
	}
	size, grace := s.Topology.Int("size"), s.Topology.Int("grace")
	for i, f := range s.feed()[:d.Step+1] {
		left := max(f.Time, size) // inclusive end of the left window
		partly := !f.skip && f.Key == key && s.time[i] >= left+1+grace && s.time[i] < f.Time+size+1+grace
		if partly && start-2*size <= f.Time && f.Time <= start+size {
			return true
		}
	}
	return false
}

// repeatedSliding: Kafka Streams forwards the left window of a record twice.
func (s *situation) repeatedSliding(d Difference) bool {
	_, start, _, ok := windowOf(d.Key)
	if !ok || !d.Missing || s.Topology.Get("window") != "sliding" || start != s.Inputs[d.Step].Time-s.Topology.Int("size") {
		return false
	}
	n := 0
	for _, o := range s.streams {
		if o == d.Output {
			n++
		}
	}
	return n > 1
}
