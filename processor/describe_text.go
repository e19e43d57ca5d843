package processor

import (
	"fmt"
	"strings"
)

// String returns the description as text, one line for each thing.
func (d Description) String() string {
	w := &textWriter{d: &d}
	w.linef("group %s%s", d.Group, prefixed(": ", d.Guarantee))
	w.linef("  on error: decode: %s; process: %s; produce: %s", d.OnDecode, d.OnProcess, d.OnProduce)
	for _, t := range d.DeadLetters {
		w.linef("  dead letters %s", w.topic(t))
	}
	for i := range d.Subgraphs {
		w.subgraph(&d.Subgraphs[i])
	}
	return w.b.String()
}

type textWriter struct {
	d *Description
	b strings.Builder
}

// linef writes a line. A name that has a line break does not break it.
func (w *textWriter) linef(format string, a ...any) {
	w.b.WriteString(strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(fmt.Sprintf(format, a...)))
	w.b.WriteByte('\n')
}

// topic is a topic's name, with its partition count if that is known.
func (w *textWriter) topic(name string) string { return w.d.counted(name) }

func (d *Description) counted(topic string) string {
	n, ok := d.Partitions[topic]
	if !ok {
		return topic
	}
	return topic + " (" + partitionsOf(n) + ")"
}

func partitionsOf(n int32) string {
	if n == 1 {
		return "1 partition"
	}
	return fmt.Sprintf("%d partitions", n)
}

func (w *textWriter) subgraph(s *SubgraphDescription) {
	w.b.WriteByte('\n')
	w.linef("subgraph %s", s.Name)
	for i := range s.Inputs {
		in := &s.Inputs[i]
		more := listed(", ", in.Options)
		if in.Partitions > 0 {
			more += ", " + partitionsOf(in.Partitions) + " declared"
		}
		w.linef("  input %s: %s%s%s", w.topic(in.Topic), in.Kind, more, prefixed(", from ", strings.Join(in.From, ", ")))
	}
	for _, t := range s.Lookups {
		w.linef("  lookup %s", w.topic(t))
	}
	for _, st := range s.Stores {
		kind, changelog := "plain", "local"
		if st.Timed {
			kind = "timed"
		}
		if st.Changelog != "" {
			changelog = "changelog " + w.topic(st.Changelog)
		}
		w.linef("  store %s: %s%s; %s; %s", st.Name, st.Of, prefixed(", ", st.Details), kind, changelog)
	}
	for _, t := range s.Timers {
		w.linef("  timer %s: %s%s", t.Name, prefixed("every ", t.Interval, ", "), t.Clock)
	}
	for _, v := range s.Visitors {
		w.linef("  visitor %s", v)
	}
	for i := range s.Operations {
		w.operation(&s.Operations[i])
	}
	for _, t := range s.Outputs {
		w.linef("  output %s", w.topic(t))
	}
	for _, g := range s.Guarantees {
		w.linef("  has %s", g)
	}
}

func (w *textWriter) operation(o *OperationDescription) {
	w.linef("  operation %s: %s%s%s%s%s%s%s", o.ID, o.Kind, prefixed(" (", strings.Join(o.Details, "; "), ")"),
		listed("; after ", o.Parents), listed("; reads ", o.Reads), listed("; looks up ", o.Lookups),
		listed("; keeps ", o.Stores), listed("; writes ", o.Writes))
}

// prefixed is a text with something around it, nothing if it is empty.
func prefixed(before, text string, after ...string) string {
	if text == "" {
		return ""
	}
	return before + text + strings.Join(after, "")
}

// listed is a list with something before it, nothing if it is empty.
func listed(before string, all []string) string { return prefixed(before, strings.Join(all, ", ")) }
