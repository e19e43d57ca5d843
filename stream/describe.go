package stream

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rekastream/reka/internal/graph"
)

// identify gives each operation an id for descriptions: the name of what it
// owns, or one made like such a name. As names do, ids depend on nothing but
// what stands before an operation and what it does, so that a change elsewhere
// in the graph leaves them alone.
func (b *Builder) identify() {
	taken := map[string]bool{}
	take := func(n *node, stem string) {
		n.id = stem
		for i := 2; taken[n.id]; i++ {
			n.id = stem + "-" + strconv.Itoa(i)
		}
		taken[n.id] = true
	}
	for _, n := range b.nodes { // names go first
		n.id = ""
		if n.name != "" && !taken[n.name] {
			take(n, n.name)
		}
	}
	for _, n := range b.nodes {
		switch {
		case n.id != "":
		case n.source() && !taken[n.base]:
			take(n, n.base)
		case n.base != "":
			take(n, n.base+"-"+n.op)
		default:
			take(n, n.op)
		}
	}
}

// source reports whether the operation begins with records of a topic.
func (n *node) source() bool { return n.input != nil || n.join != nil }

// operation describes a node. It must have its id.
func (n *node) operation() graph.Operation {
	o := graph.Operation{ID: n.id, Kind: n.op, Details: slices.Clone(n.details)}
	add := func(to *[]string, what string) {
		if !slices.Contains(*to, what) {
			*to = append(*to, what)
		}
	}
	for _, p := range n.parents {
		if p != nil && p.b == n.b {
			add(&o.Parents, p.id)
		}
	}
	if n.input != nil {
		add(&o.Reads, n.input.spec.Topic)
	}
	if n.join != nil {
		add(&o.Reads, n.join.spec.Topic)
	}
	for _, l := range n.lookups {
		add(&o.Lookups, l.topic)
	}
	for _, out := range n.outputs {
		add(&o.Writes, out.topic)
	}
	for _, s := range n.stores {
		add(&o.Stores, s.spec.Name)
	}
	return o
}

// described is the declaration of a store of the node, with what is in it.
func (n *node) described(s *store) graph.Store {
	out := s.spec
	out.Of, out.Details = n.op, strings.Join(n.details, ", ")
	return out
}
