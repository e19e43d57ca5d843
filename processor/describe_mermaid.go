package processor

import (
	"fmt"
	"slices"
	"strings"
)

// Mermaid returns the description as a Mermaid flowchart: topics, operations
// or callbacks, stores, with a box for each subgraph.
func (d Description) Mermaid() string {
	m := &mermaid{d: &d, ids: map[string]string{}, taken: map[string]bool{}}
	m.linef("flowchart LR")
	for i := range d.Subgraphs {
		m.topics(&d.Subgraphs[i])
	}
	for _, t := range d.DeadLetters {
		m.topic(t)
	}
	for i := range d.Subgraphs {
		m.subgraph(&d.Subgraphs[i])
	}
	// Edges come last: a node belongs to the box that names it first.
	for _, e := range m.edges {
		m.linef("  %s", e)
	}
	return m.b.String()
}

// mermaid writes a flowchart.
type mermaid struct {
	d     *Description
	b     strings.Builder
	ids   map[string]string // by kind and name
	taken map[string]bool
	edges []string
}

func (m *mermaid) linef(format string, a ...any) { fmt.Fprintf(&m.b, format+"\n", a...) }

// id returns the id of a thing: its kind and name, as far as ids may have
// their letters. It begins with the kind, since some words are not allowed.
func (m *mermaid) id(kind, name string) string {
	if id, ok := m.ids[kind+"\x00"+name]; ok {
		return id
	}
	stem := kind + "_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	id := stem
	for i := 2; m.taken[id]; i++ {
		id = fmt.Sprintf("%s_%d", stem, i)
	}
	m.ids[kind+"\x00"+name], m.taken[id] = id, true
	return id
}

// mermaidSafe writes what has a meaning in a quoted label as its code.
var mermaidSafe = strings.NewReplacer("#", "#35;", "&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;",
	"`", "#96;", `\`, "#92;", "\n", " ", "\r", " ", "\t", " ")

// label returns a quoted label of several lines. The first one begins with a
// word of ours, so that no name makes a list of it.
func label(lines ...string) string {
	var safe []string
	for _, l := range lines {
		if l != "" {
			safe = append(safe, mermaidSafe.Replace(l))
		}
	}
	return `"` + strings.Join(safe, "<br/>") + `"`
}

func (m *mermaid) edgef(format string, a ...any) {
	if e := fmt.Sprintf(format, a...); !slices.Contains(m.edges, e) {
		m.edges = append(m.edges, e)
	}
}

// topic returns the id of a topic, and declares it the first time.
func (m *mermaid) topic(name string) string {
	_, was := m.ids["topic\x00"+name]
	id := m.id("topic", name)
	if !was {
		count := ""
		if n, ok := m.d.Partitions[name]; ok {
			count = partitionsOf(n)
		}
		m.linef("  %s([%s])", id, label("topic "+name, count))
	}
	return id
}

// topics declares the topics of a subgraph, outside its box.
func (m *mermaid) topics(s *SubgraphDescription) {
	for i := range s.Inputs {
		m.topic(s.Inputs[i].Topic)
	}
	for _, t := range s.Lookups {
		m.topic(t)
	}
	for _, t := range s.Outputs {
		m.topic(t)
	}
}

func (m *mermaid) subgraph(s *SubgraphDescription) {
	box := m.id("subgraph", s.Name)
	m.linef("  subgraph %s [%s]", box, label("subgraph "+s.Name))
	for i := range s.Stores {
		st := &s.Stores[i]
		of := st.Of
		if st.Details != "" && len(s.Operations) == 0 { // else the operation has them
			of += ": " + st.Details
		}
		m.linef("    %s[(%s)]", m.id("store", st.Name), label("store "+st.Name, of))
	}
	if len(s.Operations) > 0 {
		m.operations(s)
	} else {
		m.callbacks(s)
	}
	m.linef("  end")
	for _, t := range m.d.DeadLetters {
		m.edgef("%s -.->|dead letters| %s", box, m.topic(t))
	}
}

// operations draws what package stream has made, and what its callbacks use
// beside.
func (m *mermaid) operations(s *SubgraphDescription) {
	written, lookedUp := map[string]bool{}, map[string]bool{}
	for i := range s.Operations {
		o := &s.Operations[i]
		id := m.id("op", o.ID)
		name := ""
		if o.ID != o.Kind {
			name = o.ID
		}
		m.linef("    %s[%s]", id, label(append([]string{"operation " + o.Kind, name}, o.Details...)...))
		for _, t := range o.Reads {
			m.edgef("%s --> %s", m.topic(t), id)
		}
		for _, t := range o.Lookups {
			lookedUp[t] = true
			m.edgef("%s -.-> %s", m.topic(t), id)
		}
		for _, p := range o.Parents {
			m.edgef("%s --> %s", m.id("op", p), id)
		}
		for _, st := range o.Stores {
			m.edgef("%s <--> %s", id, m.id("store", st))
		}
		for _, t := range o.Writes {
			written[t] = true
			m.edgef("%s --> %s", id, m.topic(t))
		}
	}
	box := m.id("subgraph", s.Name)
	for _, t := range s.Outputs {
		if !written[t] {
			m.edgef("%s --> %s", box, m.topic(t))
		}
	}
	for _, t := range s.Lookups {
		if !lookedUp[t] {
			m.edgef("%s -.-> %s", m.topic(t), box)
		}
	}
}

// callbacks draws a subgraph of handles: any callback may use all of them.
func (m *mermaid) callbacks(s *SubgraphDescription) {
	id := m.id("callbacks", s.Name)
	lines := []string{"callbacks"}
	for _, t := range s.Timers {
		lines = append(lines, "timer "+t.Name+prefixed(", every ", t.Interval)+", "+t.Clock)
	}
	for _, v := range s.Visitors {
		lines = append(lines, "visitor "+v)
	}
	m.linef("    %s[%s]", id, label(lines...))
	for i := range s.Inputs {
		arrow := "-->"
		if s.Inputs[i].Kind == inputJoined {
			arrow = "-.->"
		}
		m.edgef("%s %s %s", m.topic(s.Inputs[i].Topic), arrow, id)
	}
	for _, t := range s.Lookups {
		m.edgef("%s -.-> %s", m.topic(t), id)
	}
	for i := range s.Stores {
		m.edgef("%s <--> %s", id, m.id("store", s.Stores[i].Name))
	}
	for _, t := range s.Outputs {
		m.edgef("%s --> %s", id, m.topic(t))
	}
}
