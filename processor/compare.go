package processor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Severity says what a difference does to an upgrade.
type Severity int8

// Severities, the harmless one first.
const (
	// Compatible: members of both versions can run side by side, so the
	// upgrade may be a rolling one.
	Compatible Severity = iota
	// NeedsStop: the versions cannot share the group's partitions. Nothing is
	// lost if all members of the old one stop before the first new one starts.
	NeedsStop
	// LosesState: rows, or records under way, stay where nobody reads them.
	LosesState
	// RefusesToStart: Run of the new version returns an error.
	RefusesToStart
)

// String returns the severity in words.
func (s Severity) String() string {
	switch s {
	case Compatible:
		return "compatible"
	case NeedsStop:
		return "needs a stop"
	case LosesState:
		return "loses state"
	case RefusesToStart:
		return "refuses to start"
	default:
		return fmt.Sprintf("severity %d", int8(s))
	}
}

// Change is what happened to a thing.
type Change string

// Changes.
const (
	Added         Change = "added"
	Removed       Change = "removed"
	Changed       Change = "changed"
	Renamed       Change = "renamed"       // same kind and place, another name
	Orphaned      Change = "orphaned"      // its rows or records stay behind
	Repartitioned Change = "repartitioned" // another number of partitions
	Merged        Change = "merged"
	Split         Change = "split"
)

// Difference is one of two descriptions.
type Difference struct {
	Severity Severity
	Change   Change
	Of       string // group, guarantee, error policy, subgraph, input, repartition topic, loop, lookup, output, store, timer
	Name     string // in the old description if it is there, else in the new one
	Text     string // a sentence
}

// String returns the difference as a line.
func (d Difference) String() string {
	return fmt.Sprintf("%v: %s %s %s: %s", d.Severity, d.Of, d.Name, d.Change, d.Text)
}

// Compare says what becomes of a group whose members run next instead of old,
// the worst first. It knows what descriptions know: codecs and callbacks are
// not in them.
//
// A rolling upgrade, where members of both versions share the group for a
// while, works if each subgraph of one version reads and keeps all that the
// other's of the same name does: the wider one runs all partitions, and
// members that do not have it wait. So a version that adds inputs, joined
// tables or stores takes over with its first member, one that removes some
// waits for the last old member to leave. A version that adds one and removes
// another, and one whose subgraphs merge, split or change their names, is
// refused as long as the other runs: stop the group, then start it.
//
// Partition counts, if a description has them (Processor.Describe), make the
// comparison sharper: counts that do not fit are known before Run.
func Compare(old, next Description) []Difference {
	c := &comparison{old: index(&old), next: index(&next), counts: maps.Clone(old.Partitions)}
	if c.counts == nil {
		c.counts = map[string]int32{}
	}
	maps.Copy(c.counts, next.Partitions)
	if old.Group != next.Group {
		c.addf(is{LosesState, Changed, "group", old.Group},
			"group %s begins anew: offsets, tables and topics of group %s stay behind", next.Group, old.Group)
		return c.out
	}
	c.settings()
	c.subgraphs()
	c.inputs()
	c.repartitions()
	c.stores()
	c.timers()
	c.partitions()
	slices.SortStableFunc(c.out, func(a, b Difference) int { return -cmp.Compare(a.Severity, b.Severity) })
	return c.out
}

// comparison is one on its way.
type comparison struct {
	old, next *indexed
	counts    map[string]int32 // as known, by topic; the newer description counts
	out       []Difference
}

// is what a difference is, but for its sentence.
type is struct {
	severity Severity
	change   Change
	of, name string
}

func (c *comparison) addf(d is, format string, a ...any) {
	c.out = append(c.out, Difference{Severity: d.severity, Change: d.change, Of: d.of, Name: d.name, Text: fmt.Sprintf(format, a...)})
}

// settings compares what a group has one of.
func (c *comparison) settings() {
	old, next := c.old.d, c.next.d
	if old.Guarantee != "" && next.Guarantee != "" && old.Guarantee != next.Guarantee {
		c.addf(is{Compatible, Changed, "guarantee", old.Guarantee}, "%s instead of %s, member by member", next.Guarantee, old.Guarantee)
	}
	for _, p := range [][3]string{{"decode", old.OnDecode, next.OnDecode}, {"process", old.OnProcess, next.OnProcess}, {"produce", old.OnProduce, next.OnProduce}} {
		if p[1] != p[2] {
			c.addf(is{Compatible, Changed, "error policy", p[0]}, "%s instead of %s", p[2], p[1])
		}
	}
	c.topics("lookup", c.old.lookups, c.next.lookups)
	c.topics("output", c.old.outputs, c.next.outputs)
	c.topics("dead letters", old.DeadLetters, next.DeadLetters)
}

// topics compares topics that make no difference to partitions and state.
func (c *comparison) topics(of string, old, next []string) {
	for _, t := range missing(old, next) {
		c.addf(is{Compatible, Removed, of, t}, "topic %s is not used for that any more", t)
	}
	for _, t := range missing(next, old) {
		c.addf(is{Compatible, Added, of, t}, "topic %s must exist before Run", t)
	}
}

// missing returns those of a that b lacks.
func missing(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// subgraphs compares who reads and keeps what, as the group does when it
// chooses between declarations.
func (c *comparison) subgraphs() {
	olds := c.old.d.Subgraphs
	nexts := c.next.d.Subgraphs
	heirs := map[string]int{}              // how many subgraphs go on with what an old one has
	before := make([][]string, len(nexts)) // whose topics a new one has
	for i := range nexts {
		if before[i] = sharing(olds, &nexts[i], reads); before[i] == nil {
			before[i] = sharing(olds, &nexts[i], has)
		}
		for _, name := range before[i] {
			heirs[name]++
		}
	}
	for i := range nexts {
		n, from := &nexts[i], before[i]
		switch {
		case len(from) > 1:
			c.addf(is{NeedsStop, Merged, "subgraph", n.Name}, "it goes on with what subgraphs %s had", strings.Join(from, " and "))
		case len(from) == 1 && from[0] != n.Name && heirs[from[0]] == 1:
			c.addf(is{NeedsStop, Renamed, "subgraph", from[0]}, "it is called %s now", n.Name)
		default:
			if o := c.old.subgraph(n.Name); o != nil && heirs[n.Name] <= 1 {
				c.width(o, n)
			}
		}
	}
	for i := range olds {
		if o := &olds[i]; heirs[o.Name] > 1 {
			c.addf(is{NeedsStop, Split, "subgraph", o.Name}, "what it had is shared by %d subgraphs now", heirs[o.Name])
		}
	}
}

// width compares two declarations of one subgraph.
func (c *comparison) width(o, n *SubgraphDescription) {
	gone, more := missing(has(o), has(n)), missing(has(n), has(o))
	switch {
	case len(gone) > 0 && len(more) > 0:
		c.addf(is{NeedsStop, Changed, "subgraph", n.Name}, "the new version lacks %s, the old one %s: neither runs beside the other",
			strings.Join(gone, ", "), strings.Join(more, ", "))
	case len(more) > 0:
		c.addf(is{Compatible, Changed, "subgraph", n.Name}, "it has %s more: in a rolling upgrade new members run all partitions, and old ones wait",
			strings.Join(more, ", "))
	case len(gone) > 0:
		c.addf(is{Compatible, Changed, "subgraph", n.Name}, "it has %s less: in a rolling upgrade new members wait until the last old one has left",
			strings.Join(gone, ", "))
	}
}

// has are the topics that a subgraph declares to its group: inputs, joined
// tables and changelogs.
func has(s *SubgraphDescription) []string {
	out := reads(s)
	for i := range s.Stores {
		if s.Stores[i].Changelog != "" {
			out = append(out, s.Stores[i].Changelog)
		}
	}
	return out
}

func reads(s *SubgraphDescription) (out []string) {
	for i := range s.Inputs {
		out = append(out, s.Inputs[i].Topic)
	}
	return out
}

// sharing are the subgraphs that have some topic that s has.
func sharing(all []SubgraphDescription, s *SubgraphDescription, topics func(*SubgraphDescription) []string) (out []string) {
	of := topics(s)
	for i := range all {
		if slices.ContainsFunc(topics(&all[i]), func(t string) bool { return slices.Contains(of, t) }) {
			out = append(out, all[i].Name)
		}
	}
	return out
}
