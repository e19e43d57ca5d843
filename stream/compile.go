package stream

import (
	"fmt"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/processor"
)

// compile makes parts of subgraphs.
func (b *Builder) compile() (*processor.Graph, error) {
	if len(b.nodes) == 0 {
		return nil, fmt.Errorf("stream: graph %s: no operation", b.group)
	}
	var parts []processor.Part
	for _, n := range b.nodes {
		if n.build != nil {
			n.build()
		}
	}
	b.identify()
	names := map[*node]string{}
	groups := b.subgraphs()
	for _, nodes := range groups {
		names[nodes[0].root()] = partName(nodes)
	}
	for _, nodes := range groups {
		parts = append(parts, b.part(nodes, names))
	}
	return processor.Assemble(b.group, parts...)
}

// partName names a subgraph after its first source.
func partName(nodes []*node) string {
	for _, n := range nodes {
		if n.input != nil && n.input.spec.Repartition != nil {
			return n.base + "-repartition" // and a source topic may have that name without it
		}
		if n.input != nil || n.join != nil {
			return n.base
		}
	}
	return nodes[0].base
}

// part makes one subgraph, and numbers what is in it.
func (b *Builder) part(nodes []*node, names map[*node]string) processor.Part {
	p := processor.Part{Graph: graph.Graph{Subgraph: names[nodes[0].root()], NullKeysAnywhere: true, JoinsRun: true}, Holds: []int64{0}, Edges: b.policies}
	g := &p.Graph
	outputs, lookups := map[string]int{}, map[string]int{}
	for _, n := range nodes {
		g.Operations = append(g.Operations, n.operation())
		for _, s := range n.stores {
			s.index = len(g.Stores)
			g.Stores = append(g.Stores, n.described(s))
		}
		for _, o := range n.outputs {
			i, ok := outputs[o.topic]
			if !ok {
				i = len(g.Outputs)
				outputs[o.topic] = i
				g.Outputs = append(g.Outputs, graph.Output{Topic: o.topic})
			}
			o.index = i
		}
		for _, l := range n.lookups {
			i, ok := lookups[l.topic]
			if !ok {
				i = len(g.Lookups)
				lookups[l.topic] = i
				g.Lookups = append(g.Lookups, graph.Lookup{Topic: l.topic})
			}
			l.index = i
		}
		for _, c := range n.counters {
			c.index = len(p.Counters)
			p.Counters = append(p.Counters, c.name)
		}
		p.Edges = append(p.Edges, n.edges...)
		if in := n.input; in != nil && n.join == nil { // else the rows of the join are its records
			in.index = len(g.Inputs)
			spec := in.spec
			if spec.Repartition != nil {
				spec.Repartition = &graph.Repartition{Partitions: spec.Repartition.Partitions, From: feeders(n, names)}
			}
			g.Inputs = append(g.Inputs, spec)
			p.Inputs = append(p.Inputs, in.run)
			p.Decodes = append(p.Decodes, in.decode)
		}
		if j := n.join; j != nil {
			j.index = len(g.Joins)
			g.Joins = append(g.Joins, j.spec)
			run := j.run
			if n.input != nil {
				run = both(j.run, n.input.run)
			}
			p.Joins = append(p.Joins, run)
		}
	}
	b.steps(&p, nodes)
	return p
}

// both runs a row of a topic that is read as a table and as a stream.
func both(table, stream func(*processor.Context) error) func(*processor.Context) error {
	return func(ctx *processor.Context) error {
		if err := table(ctx); err != nil {
			return err
		}
		return stream(ctx)
	}
}

// feeders are the subgraphs that write to a repartition topic.
func feeders(n *node, names map[*node]string) (from []string) {
	for _, l := range n.links {
		from = append(from, names[l.root()])
	}
	return from
}

// steps puts what waits for time into order: upstream first; what is released
// before the record, then what is after it, with everything behind that, and
// expiry at last. Nodes are in topological order.
func (b *Builder) steps(p *processor.Part, nodes []*node) {
	for _, n := range nodes {
		steps := &p.Before
		if n.after {
			steps = &p.After
		}
		if c := n.clock; c != nil {
			c.index = len(p.Holds)
			p.Holds = append(p.Holds, c.hold)
			*steps = append(*steps, task.Step{Raise: c.index})
		}
		for _, t := range n.before {
			*steps = append(*steps, task.Step{Raise: -1, Run: n.prepared(t)})
		}
		for _, t := range n.released {
			p.After = append(p.After, task.Step{Raise: -1, Run: n.prepared(t)})
		}
	}
	for _, n := range nodes {
		for _, t := range n.expiry {
			lazy := n.prepared(t)
			lazy.Lazy = true
			p.After = append(p.After, task.Step{Raise: -1, Run: lazy})
		}
	}
}

// prepared returns a timed operator with its numbers.
func (n *node) prepared(t *task.Timed) *task.Timed {
	out := *t
	out.Name, out.Clock, out.Store = n.name, 0, n.stores[t.Store].index
	if n.clock != nil {
		out.Clock = n.clock.index
	}
	return &out
}
