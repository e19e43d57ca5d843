package processor

import (
	"fmt"
	"slices"

	"github.com/rekastream/reka/internal/graph"
)

// Graph is what a group does: the topics that it reads, the callbacks for
// their records, and the tables and topics that these may use. It is
// immutable, and any number of processors can run it.
type Graph struct {
	group string
	parts []*part
}

// NewGraph puts a group's graph together. It returns everything that can be
// known to be wrong without asking Kafka.
func NewGraph(group string, edges ...Edge) (*Graph, error) {
	p, err := newDeclaration(graph.Graph{Group: group, Subgraph: mainPart}).compile(edges)
	if err != nil {
		return nil, fmt.Errorf("processor: graph %s: %w", group, err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	return &Graph{group: group, parts: []*part{p}}, nil
}

// Group returns the group's name.
func (g *Graph) Group() string { return g.group }

// Inputs returns the topics whose records run callbacks, in order of
// declaration, the loop topic last.
func (g *Graph) Inputs() []string {
	var out []string
	for _, p := range g.parts {
		for _, in := range p.spec.Inputs {
			if in.Repartition == nil {
				out = append(out, in.Topic)
			}
		}
	}
	return out
}

// Outputs returns the topics that callbacks may emit to, but for the group's
// own.
func (g *Graph) Outputs() []string {
	own := map[string]bool{}
	for _, p := range g.parts {
		for _, in := range p.spec.Inputs {
			own[in.Topic] = in.Internal()
		}
	}
	var out []string
	for _, p := range g.parts {
		for _, o := range p.spec.Outputs {
			if !own[o.Topic] && !slices.Contains(out, o.Topic) {
				out = append(out, o.Topic)
			}
		}
	}
	return out
}

// tableStore is the name of the store of the group table.
const tableStore = "table"
