package processor

import (
	"slices"
	"strings"
)

// inputs compares the topics of others that the group reads.
func (c *comparison) inputs() {
	c.eachInput(c.old, func(in *placedInput) {
		n := c.next.inputs[in.Topic]
		switch {
		case n == nil:
			c.addf(is{Compatible, Removed, "input", in.Topic}, "records of it that are not processed yet will not be; its offsets stay for a version that reads it again")
		case n.Kind != in.Kind:
			c.addf(is{Compatible, Changed, "input", in.Topic}, "it was read as %s, and is as %s", in.Kind, n.Kind)
		case !slices.Equal(in.Options, n.Options):
			c.addf(is{Compatible, Changed, "input", in.Topic}, "its options were %s, and are %s", orNone(in.Options), orNone(n.Options))
		}
	})
	c.eachInput(c.next, func(in *placedInput) {
		if c.old.inputs[in.Topic] != nil {
			return
		}
		where := "start"
		if slices.Contains(in.Options, "from latest") {
			where = "end"
		}
		c.addf(is{Compatible, Added, "input", in.Topic}, "it is read from its %s; the topic must exist before Run", where)
	})
	// A part without any offset of its own, beside rows that it has.
	for i := range c.next.d.Subgraphs {
		s := &c.next.d.Subgraphs[i]
		if c.reads(s) {
			continue
		}
		for j := range s.Stores {
			if st := &s.Stores[j]; st.Changelog != "" && c.old.stores[st.Name] != nil {
				c.addf(is{RefusesToStart, Changed, "store", st.Name},
					"subgraph %s has its rows, but reads nothing that was read before: Run returns ErrOffsetsLost unless WithLostOffsets says otherwise", s.Name)
			}
		}
	}
}

// reads reports whether a subgraph reads anything that the old version read,
// so that it has offsets.
func (c *comparison) reads(s *SubgraphDescription) bool {
	return slices.ContainsFunc(s.Inputs, func(in InputDescription) bool { return c.old.inputs[in.Topic] != nil })
}

// eachInput calls fn for the inputs that do not belong to the group.
func (c *comparison) eachInput(x *indexed, fn func(*placedInput)) {
	for i := range x.d.Subgraphs {
		for j := range x.d.Subgraphs[i].Inputs {
			if in := x.inputs[x.d.Subgraphs[i].Inputs[j].Topic]; !in.own() {
				fn(in)
			}
		}
	}
}

func orNone(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// repartitions compares the group's own topics between and behind subgraphs.
func (c *comparison) repartitions() {
	old, next := map[string]string{}, map[string]string{}
	for _, x := range []*indexed{c.old, c.next} {
		to, other := old, c.next
		if x == c.next {
			to, other = next, c.old
		}
		for t, in := range x.inputs {
			if in.own() && other.inputs[t] == nil {
				to[t] = x.writtenAt(t, nil)
			}
		}
	}
	renamed := paired(old, next)
	for _, in := range ownInputs(c.old) {
		of := ofOwn(in)
		now := c.next.inputs[in.Topic]
		switch to := renamed[in.Topic]; {
		case now != nil:
			c.declared(in, now)
		case to != "":
			c.addf(is{LosesState, Renamed, of, in.Topic}, "it is %s now: records in the old one that are not processed yet stay there", to)
		default:
			c.addf(is{LosesState, Orphaned, of, in.Topic}, "nobody reads it any more: records in it that are not processed yet stay there")
		}
	}
}

func ofOwn(in *InputDescription) string {
	if in.Kind == inputLoop {
		return "loop"
	}
	return "repartition topic"
}

func ownInputs(x *indexed) (out []*InputDescription) {
	for i := range x.d.Subgraphs {
		for j := range x.d.Subgraphs[i].Inputs {
			if in := &x.d.Subgraphs[i].Inputs[j]; in.own() {
				out = append(out, in)
			}
		}
	}
	return out
}

// declared compares the declared counts of a repartition topic. The topic
// keeps the one that it was made with.
func (c *comparison) declared(in *InputDescription, now *placedInput) {
	has, known := c.counts[in.Topic]
	switch {
	case in.Partitions == now.Partitions:
	case now.Partitions == 0:
		c.addf(is{Compatible, Changed, "repartition topic", in.Topic}, "its count is not declared any more: it keeps the one that it has")
	case known && has == now.Partitions:
		c.addf(is{Compatible, Changed, "repartition topic", in.Topic}, "it is declared with the %s that it has", partitionsOf(has))
	case known:
		c.addf(is{RefusesToStart, Repartitioned, "repartition topic", in.Topic}, "it has %s, and is declared with %d: a new count needs a new name",
			partitionsOf(has), now.Partitions)
	case in.Partitions == 0:
		c.addf(is{RefusesToStart, Repartitioned, "repartition topic", in.Topic}, "it is declared with %s now; if it has another count, that needs a new name",
			partitionsOf(now.Partitions))
	default:
		c.addf(is{RefusesToStart, Repartitioned, "repartition topic", in.Topic}, "it was declared with %s, and is with %d: a new count needs a new name",
			partitionsOf(in.Partitions), now.Partitions)
	}
}

// stores compares stores by their names, on which everything that is kept of
// them hangs.
func (c *comparison) stores() {
	old, next := map[string]string{}, map[string]string{}
	for _, st := range c.old.order {
		if c.next.stores[st.Name] == nil {
			old[st.Name] = st.place
		}
	}
	for _, st := range c.next.order {
		if c.old.stores[st.Name] == nil {
			next[st.Name] = st.place
		}
	}
	renamed := paired(old, next)
	heirs := map[string]bool{}
	for _, st := range c.old.order {
		now := c.next.stores[st.Name]
		switch to := renamed[st.Name]; {
		case now != nil:
			c.store(st, now)
		case to != "" && st.Changelog == "":
			heirs[to] = true
			c.addf(is{Compatible, Renamed, "store", st.Name}, "it is %s now; it is local", to)
		case to != "":
			heirs[to] = true
			c.addf(is{LosesState, Renamed, "store", st.Name}, "it is %s now, and that begins empty: its rows stay in %s; give it its old name to keep them", to, st.Changelog)
		case st.Changelog == "":
			c.addf(is{Compatible, Removed, "store", st.Name}, "it was local")
		default:
			c.addf(is{LosesState, Orphaned, "store", st.Name}, "nobody keeps it any more: its rows stay in %s, which can be deleted when no older version will come back", st.Changelog)
		}
	}
	for _, st := range c.next.order {
		if c.old.stores[st.Name] == nil && !heirs[st.Name] {
			c.addf(is{Compatible, Added, "store", st.Name}, "it begins empty, with the records from then on")
		}
	}
}

// store compares two versions of one store.
func (c *comparison) store(o, n *placedStore) {
	if o.of.Name != n.of.Name && (c.next.subgraph(o.of.Name) != nil || c.old.subgraph(n.of.Name) != nil) {
		c.addf(is{NeedsStop, Changed, "store", o.Name}, "it moves from subgraph %s to subgraph %s: only one version at a time may run what keeps it", o.of.Name, n.of.Name)
	}
	switch {
	case o.Changelog != "" && n.Changelog == "":
		c.addf(is{LosesState, Changed, "store", o.Name}, "it is local now: its rows stay in %s", o.Changelog)
	case o.Changelog == "" && n.Changelog != "":
		c.addf(is{Compatible, Changed, "store", o.Name}, "it is not local any more: its rows go to %s", n.Changelog)
	case o.Changelog != n.Changelog:
		c.addf(is{LosesState, Changed, "store", o.Name}, "its rows go to %s now, and stay in %s", n.Changelog, o.Changelog)
	case o.Timed != n.Timed:
		c.addf(is{LosesState, Changed, "store", o.Name}, "it was of %s, and is of %s, whose rows are laid out in another way: give it another name", o.Of, n.Of)
	case o.Of != n.Of:
		c.addf(is{ofKinds(o, n), Changed, "store", o.Name}, "it was of %s, and is of %s, which must be able to read its rows", o.Of, n.Of)
	case o.Details != n.Details && layout(o.Details) != layout(n.Details):
		c.addf(is{LosesState, Changed, "store", o.Name}, "it was of %s, and is of %s: rows that it has do not fit; give it another name", o.Details, n.Details)
	case o.Details != n.Details:
		c.addf(is{Compatible, Changed, "store", o.Name}, "it was of %s, and is of %s, which holds from then on", o.Details, n.Details)
	}
}

// ofKinds says what it does to rows that another kind of store has them: rows
// that wait for time are laid out in a way of each kind.
func ofKinds(o, n *placedStore) Severity {
	aggregates := []string{"count", "reduce", "aggregate"}
	if o.Timed && (!slices.Contains(aggregates, o.Of) || !slices.Contains(aggregates, n.Of) || layout(o.Details) != layout(n.Details)) {
		return LosesState
	}
	return Compatible
}

// layout is that of a store's details on which the layout of its rows hangs:
// windows without what says how long they are waited for and kept.
func layout(details string) string {
	var out []string
	for d := range strings.SplitSeq(details, ", ") {
		word, _, _ := strings.Cut(d, " ")
		switch word {
		case "grace", "no", "retention", "history", "inner", "left", "outer", "stream", "wall":
		default:
			out = append(out, d)
		}
	}
	return strings.Join(out, ", ")
}

// timers compares what runs by time. The rows of timers are in stores.
func (c *comparison) timers() {
	all := func(x *indexed) map[string]TimerDescription {
		out := map[string]TimerDescription{}
		for i := range x.d.Subgraphs {
			for _, t := range x.d.Subgraphs[i].Timers {
				out[t.Name] = t
			}
		}
		return out
	}
	next := all(c.next)
	for i := range c.old.d.Subgraphs {
		for _, t := range c.old.d.Subgraphs[i].Timers {
			n, ok := next[t.Name]
			switch {
			case !ok && t.Interval != "":
				c.addf(is{Compatible, Removed, "timer", t.Name}, "it runs no more")
			case ok && n.Interval != t.Interval && n.Interval != "" && t.Interval != "":
				c.addf(is{Compatible, Changed, "timer", t.Name}, "it ran every %s, and runs every %s", t.Interval, n.Interval)
			}
		}
	}
}

// partitions compares the counts that are known of topics with those that the
// new version needs.
func (c *comparison) partitions() {
	for i := range c.next.d.Subgraphs {
		s := &c.next.d.Subgraphs[i]
		first, count := "", int32(0)
		for j := range s.Inputs {
			in := &s.Inputs[j]
			n, ok := c.counts[in.Topic]
			if !ok || in.own() {
				continue
			}
			if count == 0 {
				first, count = in.Topic, n
			}
			if n != count {
				c.addf(is{RefusesToStart, Repartitioned, "input", in.Topic}, "it has %s, %s has %d: inputs and joined tables of a subgraph need equal counts", partitionsOf(n), first, count)
			}
		}
		if count == 0 {
			continue
		}
		for _, topic := range ownTopics(s) {
			if n, ok := c.old.d.Partitions[topic]; ok && n != count {
				c.addf(is{RefusesToStart, Repartitioned, "topic", topic}, "it has %s, the inputs of subgraph %s have %d: its keys lie elsewhere", partitionsOf(n), s.Name, count)
			}
		}
	}
}

// ownTopics are the topics of the group's own that a subgraph reads or keeps.
func ownTopics(s *SubgraphDescription) (out []string) {
	for i := range s.Inputs {
		if s.Inputs[i].own() {
			out = append(out, s.Inputs[i].Topic)
		}
	}
	for i := range s.Stores {
		if s.Stores[i].Changelog != "" {
			out = append(out, s.Stores[i].Changelog)
		}
	}
	return out
}
