package processor

import (
	"fmt"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/graph"
)

// Graph is what a group does: the topics that it reads, the callbacks for
// their records, and the tables and topics that these may use. It is
// immutable, and any number of processors can run it.
type Graph struct {
	spec     graph.Graph
	inputs   []handler
	visitors []handler
	slots    map[any]int
	part     Part
}

// NewGraph puts a group's graph together. It returns everything that can be
// known to be wrong without asking Kafka.
func NewGraph(group string, edges ...Edge) (*Graph, error) {
	d := &declaration{
		graph: graph.Graph{Group: group},
		slots: map[any]int{}, seen: map[any]bool{}, policies: map[Phase]bool{},
	}
	for i, e := range edges {
		if e == nil {
			return nil, fmt.Errorf("processor: graph %s: edge %d is nil", group, i)
		}
		// The group table is the first store, whatever the order.
		if t, ok := e.(interface{ isGroupTable() }); ok {
			t.isGroupTable()
			if err := e.declare(d); err != nil {
				return nil, fmt.Errorf("processor: graph %s: %w", group, err)
			}
		}
	}
	for _, e := range edges {
		if _, ok := e.(interface{ isGroupTable() }); ok {
			continue
		}
		if err := e.declare(d); err != nil {
			return nil, fmt.Errorf("processor: graph %s: %w", group, err)
		}
	}
	if d.loopEdge != nil {
		if d.loop == nil {
			return nil, fmt.Errorf("processor: graph %s: the loop has no callback: declare it with On", group)
		}
		d.graph.Inputs = append(d.graph.Inputs, graph.Input{Topic: reka.LoopTopic(group), Loop: true})
		d.inputs = append(d.inputs, d.loop)
	}
	if err := d.complete(); err != nil {
		return nil, fmt.Errorf("processor: graph %s: %w", group, err)
	}
	if err := d.graph.Validate(); err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	if len(d.graph.Visitors) > 0 && (len(d.graph.Stores) == 0 || d.graph.Stores[0].Name != tableStore) {
		return nil, fmt.Errorf("processor: graph %s: visitors need a group table (Persist)", group)
	}
	return &Graph{spec: d.graph, inputs: d.inputs, visitors: d.visitors, slots: d.slots, part: d.timing(Part{Holds: []int64{0}})}, nil
}

// Group returns the group's name.
func (g *Graph) Group() string { return g.spec.Group }

// Inputs returns the topics whose records run callbacks, in order of
// declaration, the loop topic last.
func (g *Graph) Inputs() []string {
	out := make([]string, 0, len(g.spec.Inputs))
	for _, in := range g.spec.Inputs {
		out = append(out, in.Topic)
	}
	return out
}

// Outputs returns the topics that callbacks may emit to.
func (g *Graph) Outputs() []string {
	out := make([]string, 0, len(g.spec.Outputs))
	for _, o := range g.spec.Outputs {
		out = append(out, o.Topic)
	}
	return out
}

// tableStore is the name of the store of the group table.
const tableStore = "table"
