package processor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
)

// Part is one subgraph as package stream compiles it. It is for Reka's own
// packages.
type Part struct {
	// Graph is what the part does. Its name, Subgraph, is the caller's;
	// Assemble sets the group.
	Graph graph.Graph

	// Edges are handles that callbacks of this part use. What they declare
	// comes after the inputs, stores, joins, outputs and lookups of Graph.
	Edges []Edge

	Inputs []func(*Context) error // by index of Graph.Inputs
	Joins  []func(*Context) error // by index of Graph.Joins; nil: nothing to be done

	// What follows is that of task.Env.

	Holds         []int64
	Before, After []task.Step
	Wall          []*task.Timed
	Begin         []func(*task.Record) error
	Decodes       []func([]byte) error
	Counters      []string
}

// Assemble puts a graph together from parts, which repartition topics join to
// each other. It is for Reka's own packages; others use NewGraph.
func Assemble(group string, parts ...Part) (*Graph, error) {
	g := &Graph{group: group}
	if len(parts) == 0 {
		return nil, fmt.Errorf("processor: graph %s has no part", group)
	}
	for i := range parts {
		p, err := parts[i].compile(group)
		if err != nil {
			return nil, fmt.Errorf("processor: graph %s: subgraph %s: %w", group, parts[i].Graph.Subgraph, err)
		}
		g.parts = append(g.parts, p)
	}
	for _, p := range g.parts {
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("processor: subgraph %s: %w", p.spec.Subgraph, err)
		}
	}
	if err := g.checkParts(); err != nil {
		return nil, fmt.Errorf("processor: graph %s: %w", group, err)
	}
	return g, nil
}

func (p *Part) compile(group string) (*part, error) {
	if len(p.Inputs) != len(p.Graph.Inputs) || len(p.Joins) > len(p.Graph.Joins) || len(p.Decodes) > len(p.Inputs) {
		return nil, fmt.Errorf("%d callbacks for %d inputs, %d for %d joined tables",
			len(p.Inputs), len(p.Graph.Inputs), len(p.Joins), len(p.Graph.Joins))
	}
	spec := p.Graph
	spec.Group = group
	// What edges append must not go into the caller's slices.
	spec.Inputs, spec.Outputs, spec.Stores = slices.Clip(spec.Inputs), slices.Clip(spec.Outputs), slices.Clip(spec.Stores)
	spec.Joins, spec.Lookups, spec.Visitors = slices.Clip(spec.Joins), slices.Clip(spec.Lookups), slices.Clip(spec.Visitors)
	d := newDeclaration(spec)
	for _, h := range p.Inputs {
		d.inputs = append(d.inputs, h)
	}
	d.decodes = append(slices.Clip(p.Decodes), make([]func([]byte) error, len(p.Inputs)-len(p.Decodes))...)
	for _, h := range p.Joins {
		d.joins = append(d.joins, h)
	}
	out, err := d.compile(p.Edges)
	if err != nil {
		return nil, err
	}
	if len(out.visitors) != len(out.spec.Visitors) {
		return nil, fmt.Errorf("visitors are declared by their handles")
	}
	out.holds, out.before, out.counters = p.Holds, p.Before, p.Counters
	out.after = append(slices.Clip(p.After), out.after...) // what edges wait for follows
	slices.SortStableFunc(out.after, byLaziness)
	out.wall = append(slices.Clip(p.Wall), out.wall...)
	out.begin = append(slices.Clip(p.Begin), out.begin...)
	return out, nil
}

// uses are who reads and keeps what in a graph.
type uses struct {
	parts, stores, reads, changelogs map[string]*part
}

// checkParts reports what does not go together. A topic is read in one part
// only: a group has one offset for each of its partitions.
func (g *Graph) checkParts() error {
	u := &uses{map[string]*part{}, map[string]*part{}, map[string]*part{}, map[string]*part{}}
	for _, p := range g.parts {
		if err := u.add(p); err != nil {
			return err
		}
	}
	for _, p := range g.parts {
		if err := errors.Join(g.checkVisitors(p), g.checkPolicies(p, u), u.checkTopics(p), u.checkFeeders(p)); err != nil {
			return fmt.Errorf("subgraph %s: %w", p.spec.Subgraph, err)
		}
	}
	return nil
}

// add notes what a part reads and keeps.
func (u *uses) add(p *part) error {
	switch {
	case p.spec.Subgraph == "":
		return fmt.Errorf("a subgraph without a name")
	case u.parts[p.spec.Subgraph] != nil:
		return fmt.Errorf("subgraph %s is declared twice", p.spec.Subgraph)
	}
	u.parts[p.spec.Subgraph] = p
	for _, topic := range p.spec.Copartitioned() {
		if err := claim(u.reads, p, "input "+topic, topic); err != nil {
			return err
		}
	}
	for _, s := range p.spec.Stores {
		if err := claim(u.stores, p, "store "+s.Name, s.Name); err != nil {
			return err
		}
		if s.Changelog == "" {
			continue
		}
		if err := claim(u.changelogs, p, "changelog "+s.Changelog, s.Changelog); err != nil {
			return err
		}
	}
	return nil
}

func claim(of map[string]*part, p *part, what, name string) error {
	if was := of[name]; was != nil && was != p {
		return fmt.Errorf("%s belongs to subgraph %s and to subgraph %s", what, was.spec.Subgraph, p.spec.Subgraph)
	}
	of[name] = p
	return nil
}

// checkVisitors reports a visitor that another part declares, too: it runs in
// one.
func (g *Graph) checkVisitors(p *part) error {
	for handle := range p.slots {
		if _, ok := handle.(interface{ isVisitor() }); !ok {
			continue
		}
		if first, _ := g.declaring(handle); first != p {
			return fmt.Errorf("a visitor is declared by subgraph %s, too", first.spec.Subgraph)
		}
	}
	return nil
}

func (g *Graph) checkPolicies(p *part, u *uses) error {
	first := &g.parts[0].spec
	if p.spec.OnDecode != first.OnDecode || p.spec.OnProcess != first.OnProcess || p.spec.OnProduce != first.OnProduce {
		return fmt.Errorf("error policies differ from those of subgraph %s: a group has one set", first.Subgraph)
	}
	for _, topic := range []string{p.spec.OnDecode.Topic, p.spec.OnProcess.Topic, p.spec.OnProduce.Topic} {
		if u.reads[topic] != nil || u.changelogs[topic] != nil {
			return fmt.Errorf("dead letters to topic %s, which the group reads or keeps", topic)
		}
	}
	return nil
}

// checkTopics reports uses of topics that another part reads or keeps.
func (u *uses) checkTopics(p *part) error {
	for _, topic := range p.spec.Copartitioned() {
		if of := u.changelogs[topic]; of != nil {
			return fmt.Errorf("topic %s is a changelog of this group (subgraph %s) and cannot be its input", topic, of.spec.Subgraph)
		}
	}
	for _, l := range p.spec.Lookups {
		if u.changelogs[l.Topic] != nil || u.reads[l.Topic] != nil {
			return fmt.Errorf("topic %s is looked up, and another subgraph reads or keeps it", l.Topic)
		}
	}
	for _, o := range p.spec.Outputs {
		if of := u.changelogs[o.Topic]; of != nil {
			return fmt.Errorf("topic %s is a changelog of this group (subgraph %s): change the store instead of emitting to it", o.Topic, of.spec.Subgraph)
		}
	}
	return nil
}

// checkFeeders reports repartition topics that are not written to as they say.
func (u *uses) checkFeeders(p *part) error {
	for _, in := range p.spec.Inputs {
		if in.Repartition == nil {
			continue
		}
		if in.Repartition.Partitions < 0 {
			return fmt.Errorf("repartition topic %s: %d partitions", in.Topic, in.Repartition.Partitions)
		}
		if len(in.Repartition.From) == 0 {
			return fmt.Errorf("repartition topic %s: nobody writes to it", in.Topic)
		}
		for _, name := range in.Repartition.From {
			from := u.parts[name]
			if from == nil || !slices.ContainsFunc(from.spec.Outputs, func(o graph.Output) bool { return o.Topic == in.Topic }) {
				return fmt.Errorf("repartition topic %s: subgraph %s does not emit to it", in.Topic, name)
			}
		}
	}
	return nil
}
