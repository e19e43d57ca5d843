package stream

import (
	"fmt"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/processor"
)

// node is an operation without its types: what it needs of the group, and
// where it stands. Nodes are made in topological order.
type node struct {
	b       *Builder
	op      string // what it is called in errors and descriptions
	base    string // what names of its own begin with: the nearest source or store before it
	name    string // of what it owns; empty: owns nothing
	id      string // in descriptions, unique in the graph; set when it is built
	parents []*node
	group   *node // of the subgraph: root of its tree, see root

	// hold is how far results on the way to this operation may be behind the
	// stream time, in milliseconds; adds is what it adds itself.
	hold, adds int64
	// after says that what comes before it is released after the record: its
	// clock is raised then.
	after bool

	stores   []*store
	outputs  []*output
	lookups  []*lookup
	counters []*counter
	input    *input
	join     *join
	table    any // of a source that is read as a table: its Table
	clock    *clock
	before   []*task.Timed // released before the record that brings the time
	released []*task.Timed // after it
	expiry   []*task.Timed
	edges    []processor.Edge // handles that its callback uses
	details  []string         // for descriptions
	build    func()           // called when the graph is built, before the rest is read
	links    []*node          // other nodes of the same subgraph that are no parents
}

// store, output, lookup, counter, input, join and clock are things of a
// subgraph; their index in it is known when the graph is built, and fixed from
// then on.
type (
	store struct {
		spec  graph.Store
		index int
	}
	output struct {
		topic string
		index int
	}
	lookup struct {
		topic string
		index int
	}
	counter struct {
		name  string
		index int
	}
	input struct {
		spec   graph.Input
		run    func(*processor.Context) error
		decode func([]byte) error
		index  int
	}
	join struct {
		spec  graph.Join
		run   func(*processor.Context) error
		index int
	}
	clock struct {
		hold  int64
		index int
	}
)

// node makes an operation behind others.
func (b *Builder) node(op string, parents ...*node) *node {
	n := &node{b: b, op: op, parents: parents}
	if b.built {
		b.fail(fmt.Errorf("%s: declared after Graph", op))
		n.b = NewBuilder(b.group) // that nobody builds
		n.b.built = true
		n.group = n
		return n
	}
	n.group = n
	for _, p := range parents {
		if p == nil || p.b != b {
			b.fail(fmt.Errorf("%s: its input is of another builder, or was not made by one", op))
			continue
		}
		n.hold = max(n.hold, p.hold+p.adds)
		n.after = n.after || p.after || len(p.released) > 0
		n.joinGroup(p)
		if n.base == "" {
			n.base = p.base
		}
	}
	b.nodes = append(b.nodes, n)
	return n
}

// root returns the node that stands for the subgraph.
func (n *node) root() *node {
	for n.group != n {
		n.group = n.group.group
		n = n.group
	}
	return n
}

// joinGroup makes the subgraphs of both one.
func (n *node) joinGroup(o *node) {
	a, b := n.root(), o.root()
	if a != b {
		a.group = b
	}
}

// own gives the operation the name of what it owns: the one that was asked
// for, or one made of what stands before it.
func (n *node) own(asked string) string {
	n.name = n.b.claim(n, asked)
	n.base = n.name
	return n.name
}

// hold says that the results of the operation may be late by d milliseconds.
func (n *node) holds(d int64) { n.adds = d }

// store declares a store whose changes go to a changelog. The operation must
// own a name; further ones take it with a suffix.
func (n *node) store(suffix string, timelines ...byte) *store {
	name := n.name + suffix
	s := &store{spec: graph.Store{Name: name, Changelog: n.b.changelog(name), Timelines: timelines}}
	n.stores = append(n.stores, s)
	return s
}

func (n *node) output(topic string) *output {
	o := &output{topic: topic}
	n.outputs = append(n.outputs, o)
	return o
}

func (n *node) lookup(topic string) *lookup {
	l := &lookup{topic: topic}
	n.lookups = append(n.lookups, l)
	return l
}

// counter declares something that is counted, by what and where.
func (n *node) counter(what string) *counter {
	name := n.name
	if name == "" {
		name = n.base + "-" + n.op
	}
	c := &counter{name: name + ": " + what}
	n.counters = append(n.counters, c)
	return c
}

// ownClock returns the clock of the operation: the stream time less the holds
// before it.
func (n *node) ownClock() *clock {
	if n.clock == nil {
		n.clock = &clock{hold: n.hold}
	}
	return n.clock
}

func (x *exec) count(c *counter) { x.rec.Count(c.index, 1) }

// now returns what a clock shows.
func (x *exec) now(c *clock) int64 { return x.rec.Clock(c.index) }
