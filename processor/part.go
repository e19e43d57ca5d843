package processor

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
)

// mainPart is the name of the only part of a graph that NewGraph makes.
const mainPart = "main"

// part is one subgraph of a graph: partition p of all its inputs and joined
// tables is one task. It is immutable once it is compiled.
type part struct {
	spec     graph.Graph
	inputs   []handler
	joins    []handler // by index of spec.Joins; nil: nothing to be done
	visitors []handler
	slots    map[any]*bound // of handles

	holds         []int64
	before, after []task.Step
	wall          []*task.Timed
	begin         []func(*task.Record) error
	decodes       []func([]byte) error
	counters      []string
}

// bound is where a part has a handle.
type bound struct {
	part *part
	slot int
}

// compile adds edges to what is declared already, and returns the part.
func (d *declaration) compile(edges []Edge) (*part, error) {
	for i, e := range edges {
		if e == nil {
			return nil, fmt.Errorf("edge %d is nil", i)
		}
		// The group table is the first of the edges' stores, whatever the order.
		if t, ok := e.(interface{ isGroupTable() }); ok {
			t.isGroupTable()
			if err := e.declare(d); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range edges {
		if _, ok := e.(interface{ isGroupTable() }); ok {
			continue
		}
		if err := e.declare(d); err != nil {
			return nil, err
		}
	}
	if d.loopEdge != nil {
		if d.loop == nil {
			return nil, fmt.Errorf("the loop has no callback: declare it with On")
		}
		d.graph.Inputs = append(d.graph.Inputs, graph.Input{Topic: reka.LoopTopic(d.graph.Group), Loop: true})
		d.inputs = append(d.inputs, d.loop)
	}
	if err := d.complete(); err != nil {
		return nil, err
	}
	p := &part{
		spec: d.graph, inputs: d.inputs, visitors: d.visitors, slots: make(map[any]*bound, len(d.slots)),
		holds: []int64{0}, after: d.after, wall: d.wall, begin: d.begin,
	}
	// Expiry comes last, after timers.
	slices.SortStableFunc(p.after, byLaziness)
	p.decodes = slices.Concat(d.decodes, make([]func([]byte) error, len(d.graph.Inputs)-len(d.decodes)))
	p.joins = slices.Concat(d.joins, make([]handler, len(d.graph.Joins)-len(d.joins)))
	for handle, slot := range d.slots {
		p.slots[handle] = &bound{part: p, slot: slot}
	}
	return p, nil
}

// byLaziness puts what nothing depends on behind everything else.
func byLaziness(a, b task.Step) int {
	lazy := func(s *task.Step) int {
		if s.Run != nil && s.Run.Lazy {
			return 1
		}
		return 0
	}
	return lazy(&a) - lazy(&b)
}

// check reports what is wrong with the part by itself. Its errors name the
// group.
func (p *part) check() error {
	if err := p.spec.Validate(); err != nil {
		return err
	}
	if len(p.spec.Visitors) > 0 && (len(p.spec.Stores) == 0 || p.spec.Stores[0].Name != tableStore) {
		return fmt.Errorf("graph %s: visitors need a group table (Persist)", p.spec.Group)
	}
	return nil
}

// stateful reports whether tasks of any part keep anything on disk.
func (g *Graph) stateful() bool {
	return slices.ContainsFunc(g.parts, func(p *part) bool { return p.spec.Stateful() })
}

// fingerprint is a hash of what all parts declare.
func (g *Graph) fingerprint() uint64 {
	if len(g.parts) == 1 && g.parts[0].spec.Subgraph == mainPart {
		return g.parts[0].spec.Fingerprint()
	}
	h := fnv.New64a()
	for _, p := range g.parts {
		b := binary.BigEndian.AppendUint64(nil, uint64(len(p.spec.Subgraph)))
		b = append(b, p.spec.Subgraph...)
		_, _ = h.Write(binary.BigEndian.AppendUint64(b, p.spec.Fingerprint()))
	}
	return h.Sum64()
}

// declaring returns the part that declares a handle, nil if none does.
func (g *Graph) declaring(handle any) (*part, int) {
	for _, p := range g.parts {
		if b := p.slots[handle]; b != nil {
			return p, b.slot
		}
	}
	return nil, 0
}
