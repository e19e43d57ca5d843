package processor

import (
	"fmt"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

// Part is one subgraph as package stream compiles it. It is for Reka's own
// packages.
type Part struct {
	Graph         graph.Graph
	Edges         []Edge
	Inputs        []func(*Context) error
	Joins         []func(*Context) error
	Decodes       []func([]byte) error
	Holds         []int64
	Before, After []task.Step
	Wall          []*task.Timed
	Begin         []func(*task.Record) error
	Counters      []string
}

// Assemble makes a graph of parts. It is for Reka's own packages.
func Assemble(group string, parts ...Part) (*Graph, error) {
	if len(parts) != 1 {
		return nil, fmt.Errorf("processor: graph %s: %d parts", group, len(parts))
	}
	p := parts[0]
	p.Graph.Group = group
	d := &declaration{graph: p.Graph, slots: map[any]int{}, seen: map[any]bool{}, policies: map[Phase]bool{}}
	for _, in := range p.Inputs {
		d.inputs = append(d.inputs, in)
	}
	for _, e := range p.Edges {
		if err := e.declare(d); err != nil {
			return nil, fmt.Errorf("processor: graph %s: %w", group, err)
		}
	}
	if err := d.complete(); err != nil {
		return nil, fmt.Errorf("processor: graph %s: %w", group, err)
	}
	if err := d.graph.Validate(); err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	return &Graph{spec: d.graph, inputs: d.inputs, slots: d.slots, part: d.timing(p)}, nil
}

// timing adds what edges declare that waits for time: it follows what p has.
func (d *declaration) timing(p Part) Part {
	p.After = append(p.After[:len(p.After):len(p.After)], d.after...)
	p.Wall = append(p.Wall[:len(p.Wall):len(p.Wall)], d.wall...)
	p.Begin = append(p.Begin[:len(p.Begin):len(p.Begin)], d.begin...)
	return p
}

// contextOf returns the context of a task's record.
func contextOf(r *task.Record) *Context {
	ctx, _ := r.Attached.(*Context) // set before anything runs
	return ctx
}

// Record returns what c stands at. It is for Reka's own packages.
func (c *Context) Record() *task.Record { return c.rec }

// ApplyInput applies an option of Input. It is for Reka's own packages.
func ApplyInput(o InputOption, in *graph.Input) { o.applyInput(in) }

// EncodeError is a failure of a codec to encode a value.
type EncodeError struct{ Err error }

// Error returns the cause.
func (e *EncodeError) Error() string { return "encode: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *EncodeError) Unwrap() error { return e.Err }

// StoredValueError is the failure of a stored value to be decoded.
func StoredValueError(store string, key []byte, err error) error {
	return &kafka.Error{TopicPartition: kafka.TopicPartition{Topic: store, Partition: -1}, Offset: -1,
		Key: append([]byte{}, key...), Err: fmt.Errorf("stored value: %w", err)}
}
