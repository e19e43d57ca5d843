package processor

import (
	"fmt"
	"sync/atomic"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
)

// Edge is one declaration of a graph: an input, or a handle such as *State or
// *Sink, or an error policy. It is sealed.
type Edge interface {
	declare(*declaration) error
}

// edgeFunc is an edge that is nothing but a declaration.
type edgeFunc func(*declaration) error

func (f edgeFunc) declare(d *declaration) error { return f(d) }

// handler processes the record that a context stands at.
type handler func(*Context) error

// declaration is a part being built.
type declaration struct {
	graph    graph.Graph
	inputs   []handler
	decodes  []func([]byte) error // by index of inputs
	joins    []handler
	loop     handler // of the loop, which comes last
	visitors []handler
	slots    map[any]int // of handles
	seen     map[any]bool
	policies map[Phase]bool
	loopEdge any // the *Looped declared, of whatever type

	after    []task.Step // what waits for stream time
	wall     []*task.Timed
	begin    []func(*task.Record) error
	periodic *periodic
	bound    map[any]bool   // timers that have their callback
	missing  map[any]string // handles whose callback is not bound yet
}

// store declares a store and returns its slot.
func (d *declaration) store(s graph.Store) int {
	d.graph.Stores = append(d.graph.Stores, s)
	return len(d.graph.Stores) - 1
}

// wait declares what waits for time.
func (d *declaration) wait(c Clock, t *task.Timed) {
	if c == WallClock {
		t.Clock = task.WallClock
		d.wall = append(d.wall, t)
		return
	}
	d.after = append(d.after, task.Step{Raise: -1, Run: t})
}

// unbound notes a handle that needs a callback.
func (d *declaration) unbound(handle any, what string) {
	if d.bound == nil {
		d.bound, d.missing = map[any]bool{}, map[any]string{}
	}
	d.missing[handle] = what
}

// complete reports a handle without its callback.
func (d *declaration) complete() error {
	for handle, what := range d.missing {
		if !d.bound[handle] {
			return fmt.Errorf("%s has no callback: declare it with On", what)
		}
	}
	return nil
}

func newDeclaration(g graph.Graph) *declaration {
	return &declaration{graph: g, slots: map[any]int{}, seen: map[any]bool{}, policies: map[Phase]bool{}}
}

// once refuses a handle that is declared twice.
func (d *declaration) once(handle any, what string) error {
	if d.seen[handle] {
		return fmt.Errorf("%s is declared twice", what)
	}
	d.seen[handle] = true
	return nil
}

// output returns the index of an output topic, declaring it if need be.
func (d *declaration) output(topic string) int {
	for i, o := range d.graph.Outputs {
		if o.Topic == topic {
			return i
		}
	}
	d.graph.Outputs = append(d.graph.Outputs, graph.Output{Topic: topic})
	return len(d.graph.Outputs) - 1
}

// binding remembers where the part that the handle met last has it. A handle
// may be used in any number of parts and graphs at once.
type binding struct {
	last atomic.Pointer[bound]
}

// slot returns the handle's slot in the part of ctx. If that does not declare
// it the record fails.
func (b *binding) slot(ctx *Context, handle any, what string) (int, bool) {
	if l := b.last.Load(); l != nil && l.part == ctx.part {
		return l.slot, true
	}
	found := ctx.part.slots[handle]
	if found == nil {
		ctx.rec.Stick(&UndeclaredError{Handle: what, Group: ctx.part.spec.Group})
		return 0, false
	}
	b.last.Store(found)
	return found.slot, true
}
