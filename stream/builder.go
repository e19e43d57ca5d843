package stream

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/processor"
)

// Builder gathers the operations of a group. It belongs to one goroutine. What
// is wrong with an operation is reported by Graph, all of it together.
type Builder struct {
	group    string
	nodes    []*node
	errs     []error
	names    map[string]*node
	sources  map[string]any // by topic: a *source of its type
	policies []processor.Edge
	built    bool // Graph has returned one: nothing is declared any more
}

// NewBuilder begins the graph of a group.
func NewBuilder(group string, policies ...processor.Edge) *Builder {
	return &Builder{group: group, names: map[string]*node{}, sources: map[string]any{}, policies: policies}
}

// Graph returns what was declared as a graph for processor.New. Nothing can be
// declared afterwards: it does not become part of the graph, and the next call
// reports it.
func (b *Builder) Graph() (*processor.Graph, error) {
	if len(b.errs) > 0 {
		return nil, fmt.Errorf("stream: graph %s: %w", b.group, errors.Join(b.errs...))
	}
	if err := b.cycle(); err != nil {
		return nil, fmt.Errorf("stream: graph %s: %w", b.group, err)
	}
	g, err := b.compile()
	b.built = b.built || err == nil
	return g, err
}

func (b *Builder) fail(err error) { b.errs = append(b.errs, err) }

// failf reports what is wrong with an operation.
func (b *Builder) failf(n *node, format string, a ...any) {
	what := n.op
	if n.name != "" {
		what += " " + strconv.Quote(n.name)
	} else if n.base != "" {
		what += " of " + n.base
	}
	b.fail(fmt.Errorf(what+": "+format, a...))
}

// claim returns the name of what an operation owns. A name that was asked for
// must be free. One that was not is made of the source or store before the
// operation and what it does, so that it depends on nothing else.
func (b *Builder) claim(n *node, asked string) string {
	if asked != "" {
		if at := strings.IndexFunc(asked, graph.NotInTopics); at >= 0 {
			b.fail(fmt.Errorf("%s: the name %q goes into names of topics, where %q is not allowed", n.op, asked, asked[at:at+1]))
		}
		if b.names[asked] != nil {
			b.fail(fmt.Errorf("%s: the name %q is another operation's, a %s", n.op, asked, b.names[asked].op))
		}
		b.names[asked] = n
		return asked
	}
	stem := n.op
	if n.base != "" {
		stem = n.base + "-" + n.op
	}
	name := stem
	for i := 2; b.names[name] != nil; i++ {
		name = stem + "-" + strconv.Itoa(i)
	}
	b.names[name] = n
	return name
}

func (b *Builder) changelog(store string) string { return reka.ChangelogTopic(b.group, store) }

func (b *Builder) repartition(name string) string { return reka.RepartitionTopic(b.group, name) }

// subgraphs returns the nodes by subgraph, in order of declaration.
func (b *Builder) subgraphs() [][]*node {
	var roots []*node
	byRoot := map[*node][]*node{}
	for _, n := range b.nodes {
		r := n.root()
		if byRoot[r] == nil {
			roots = append(roots, r)
		}
		byRoot[r] = append(byRoot[r], n)
	}
	out := make([][]*node, 0, len(roots))
	for _, r := range roots {
		out = append(out, slices.Clip(byRoot[r]))
	}
	return out
}
