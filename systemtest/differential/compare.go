package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference is a result that only one side has. Rule names what explains it,
// or is empty.
type Difference struct {
	Output

	Missing bool // Kafka Streams has it, the other side lacks it; else the other way round
	Moved   bool // both have it, at different places among the results of its key
	Rule    string
}

// String tells which side has the result.
func (d Difference) String() string {
	side := "only in the other"
	if d.Missing {
		side = "only in Kafka Streams"
	}
	if d.Moved {
		side += " at this place"
	}
	return fmt.Sprintf("%v after input %d: %s", d.Output, d.Step, side)
}

// situation is a case with what both sides made of it.
type situation struct {
	Case

	streams, other []Output
	time           []int64 // stream time at each input
}

// Compare returns all differences: the results are compared as multisets, and
// their order within a group of results of one key.
func Compare(c Case, streams, other []Output) []Difference {
	s := &situation{Case: c, streams: streams, other: other, time: c.streamTime()}
	mine, theirs := s.groups(other), s.groups(streams)
	all := maps.Clone(mine)
	maps.Copy(all, theirs)
	var out []Difference
	for _, g := range slices.Sorted(maps.Keys(all)) {
		out = append(out, align(theirs[g], mine[g])...)
	}
	for i := range out {
		out[i].Rule = s.explain(out[i])
	}
	return out
}

// Exact returns the differences where no rule is accepted, and a result has to
// follow the same input, and come in the same order: for two implementations of
// the same rules.
func Exact(want, got []Output) []Difference {
	out := align(want, got)
	if len(out) > 0 {
		return out
	}
	for i, o := range got {
		if w := want[i]; w.Step != o.Step {
			out = append(out, Difference{Output: w, Missing: true, Moved: true}, Difference{Output: o, Moved: true})
		}
	}
	return out
}

// Unexplained returns the differences without a rule.
func Unexplained(all []Difference) []Difference {
	var out []Difference
	for _, d := range all {
		if d.Rule == "" {
			out = append(out, d)
		}
	}
	return out
}

// groups splits results into those whose order counts. Results of one record
// key stay in order, with two exceptions: D3, sliding windows touched by one
// input come in any order, and so does D5, null results of a join among others.
func (s *situation) groups(all []Output) map[string][]Output {
	out := map[string][]Output{}
	for _, o := range all {
		group, _, _ := strings.Cut(o.Key, "@")
		switch {
		case s.Topology.Get("window") == "sliding":
			group = o.Key
		case s.Topology.streamJoin() && o.Key == Null, s.Topology.Get("op") == "join" && nullResult(o.Value):
			group = o.Key + "=" + o.Value
		}
		out[group] = append(out[group], o)
	}
	return out
}

// nullResult reports whether a join's result lacks a side.
func nullResult(v string) bool {
	return strings.HasPrefix(v, none+"|") || strings.HasSuffix(v, "|"+none)
}

// align compares two sequences by their longest common subsequence; among such
// by the one with most results after the same input. Of equal results of Kafka
// Streams it takes the first, since a repetition is what rules explain.
func align(streams, other []Output) []Difference {
	n, m := len(streams), len(other)
	weight := func(i, j int) int {
		switch {
		case !streams[i].same(other[j]):
			return 0
		case streams[i].Step == other[j].Step:
			return n + m + 1
		}
		return n + m
	}
	best := make([][]int, n+1)
	best[n] = make([]int, m+1)
	for i := n - 1; i >= 0; i-- {
		best[i] = make([]int, m+1)
		for j := m - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if w := weight(i, j); w > 0 {
				best[i][j] = max(best[i][j], best[i+1][j+1]+w)
			}
		}
	}
	var out []Difference
	for i, j := 0, 0; i < n || j < m; {
		switch {
		case i < n && j < m && weight(i, j) > 0 && best[i][j] == best[i+1][j+1]+weight(i, j):
			i, j = i+1, j+1
		case j == m || i < n && best[i+1][j] > best[i][j+1]:
			out = append(out, Difference{Output: streams[i], Missing: true})
			i++
		default:
			out = append(out, Difference{Output: other[j]})
			j++
		}
	}
	for i := range out {
		for j := range out[:i] {
			if out[i].Missing != out[j].Missing && !out[j].Moved && !out[i].Moved && out[i].same(out[j].Output) {
				out[i].Moved, out[j].Moved = true, true
			}
		}
	}
	return out
}
