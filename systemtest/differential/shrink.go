package differential

import (
	"fmt"
	"slices"
	"strings"
)

// Try runs a case through both sides and returns their results and the
// differences.
func Try(c Case, streams, other Runner) (theirs, mine []Output, diffs []Difference, err error) {
	theirs, err = streams.Run(c.Disguised())
	if err != nil {
		return nil, nil, nil, err
	}
	theirs = c.Undisguise(theirs)
	mine, err = other.Run(c)
	if err != nil {
		return theirs, nil, nil, fmt.Errorf("the other side: %s: %w", c.Topology, err)
	}
	return theirs, mine, Compare(c, theirs, mine), nil
}

// Shrink removes inputs for as long as bad holds. The record that flushes
// stays, as without it results lack at the end.
func Shrink(c Case, bad func(Case) bool) Case {
	for again := true; again; {
		again = false
		for i := len(c.Inputs) - 1; i >= 0; i-- {
			if c.Inputs[i].Time == flushTime {
				continue
			}
			less := Case{c.Topology, slices.Delete(slices.Clone(c.Inputs), i, i+1)}
			if len(less.Inputs) > 0 && bad(less) {
				c, again = less, true
			}
		}
	}
	return c
}

// Report prints a case with the results of both sides after each input.
func Report(c Case, theirs, mine []Output, diffs []Difference) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.Topology)
	time := c.streamTime()
	fmt.Fprintf(&b, "%3s %-28s %8s | %s\n", "", "input", "time", "Kafka Streams | the other")
	at := func(all []Output, step int) string {
		var texts []string
		for _, o := range all {
			if o.Step == step {
				texts = append(texts, o.String())
			}
		}
		return strings.Join(texts, "  ")
	}
	for i, in := range c.Inputs {
		text := fmt.Sprintf("%s %s=%s@%d", in.Topic, in.Key, in.Value, in.Time)
		fmt.Fprintf(&b, "%3d %-28s %8d | %s | %s\n", i, text, time[i], at(theirs, i), at(mine, i))
	}
	for _, d := range diffs {
		rule := d.Rule
		if rule == "" {
			rule = "NOT EXPLAINED"
		}
		fmt.Fprintf(&b, "  %v (%s)\n", d, rule)
	}
	return b.String()
}
