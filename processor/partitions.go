package processor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rekastream/reka/kafka"
)

// partitionCounts finds the partition count of each part:
//
//   - that of its external inputs and joined tables, which must be equal;
//   - in a part that reads repartition topics only, the count that is declared
//     for them, or the one that they have, or at their creation the highest of
//     those who write to them.
//
// A topic of the group's own never changes its count: records lie where the
// old one put them. So parts that others feed do not grow with them.
type partitionCounts struct {
	graph  *Graph
	topics map[string]kafka.Topic // external ones, and repartition topics that there are
	known  map[*part]int32
	busy   []*part // being resolved
}

func newPartitionCounts(g *Graph, topics map[string]kafka.Topic) *partitionCounts {
	return &partitionCounts{graph: g, topics: topics, known: map[*part]int32{}}
}

// of returns the partition count of a part, or a *PartitionCountError.
func (c *partitionCounts) of(p *part) (int32, error) {
	if n, ok := c.known[p]; ok {
		return n, nil
	}
	if slices.Contains(c.busy, p) {
		return 0, c.cycle(p)
	}
	c.busy = append(c.busy, p)
	defer func() { c.busy = c.busy[:len(c.busy)-1] }()
	n, err := c.resolve(p)
	if err != nil {
		return 0, err
	}
	c.known[p] = n
	return n, nil
}

func (c *partitionCounts) resolve(p *part) (int32, error) {
	e := &PartitionCountError{Group: c.graph.group}
	add := func(topic string, n int32) { e.Topics, e.Counts = append(e.Topics, topic), append(e.Counts, n) }
	own := p.internal()
	for _, name := range p.spec.Copartitioned() {
		if !own[name] {
			add(name, c.topics[name].Partitions)
		}
	}
	external := len(e.Counts) > 0
	for _, in := range p.spec.Inputs {
		if in.Repartition != nil && in.Repartition.Partitions > 0 {
			add(in.Topic, in.Repartition.Partitions)
		}
	}
	if !external {
		for _, in := range p.spec.Inputs {
			if t, ok := c.topics[in.Topic]; ok && in.Repartition != nil && in.Repartition.Partitions == 0 {
				add(in.Topic, t.Partitions)
			}
		}
	}
	if len(e.Counts) == 0 {
		return c.most(p)
	}
	if slices.Max(e.Counts) != slices.Min(e.Counts) {
		return 0, e
	}
	return e.Counts[0], nil
}

// most returns the highest count of the parts that feed p.
func (c *partitionCounts) most(p *part) (most int32, err error) {
	for _, in := range p.spec.Inputs {
		if in.Repartition == nil {
			continue
		}
		for _, from := range in.Repartition.From {
			if from == p.spec.Subgraph {
				continue
			}
			n, err := c.of(c.graph.part(from))
			if err != nil {
				return 0, err
			}
			most = max(most, n)
		}
	}
	if most == 0 {
		return 0, fmt.Errorf("subgraph %s has no input but the group's own: nothing says how many partitions it has", p.spec.Subgraph)
	}
	return most, nil
}

func (c *partitionCounts) cycle(p *part) error {
	var names []string
	for _, b := range c.busy[slices.Index(c.busy, p):] {
		names = append(names, b.spec.Subgraph)
	}
	return fmt.Errorf("subgraphs %s feed each other through repartition topics, and nothing says how many partitions these have",
		strings.Join(names, ", "))
}

// part returns the part of a name, nil if there is none.
func (g *Graph) part(name string) *part {
	for _, p := range g.parts {
		if p.spec.Subgraph == name {
			return p
		}
	}
	return nil
}

// internal are the topics of the part that belong to the group and nobody
// else, as a set.
func (p *part) internal() map[string]bool {
	out := map[string]bool{}
	for _, in := range p.internalTopics() {
		out[in.name] = true
	}
	return out
}

// fixed returns an error if inputs have more partitions than a topic of the
// group's own, whose count cannot be raised: its rows and records lie where
// the old count put them.
func (p *part) fixed(topics map[string]kafka.Topic) error {
	own := p.internalTopics()
	if len(own) == 0 {
		return nil
	}
	e := &PartitionCountError{Group: p.spec.Group}
	has := topics[own[0].name].Partitions
	for _, name := range p.spec.Copartitioned() {
		if n := topics[name].Partitions; n > has {
			e.Topics, e.Counts = append(e.Topics, name), append(e.Counts, n)
		}
	}
	if len(e.Topics) == 0 {
		return nil
	}
	for _, in := range own {
		e.Topics, e.Counts = append(e.Topics, in.name), append(e.Counts, topics[in.name].Partitions)
	}
	return fmt.Errorf("partitions were added while the group runs: %w", e)
}
