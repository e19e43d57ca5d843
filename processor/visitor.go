package processor

import (
	"context"
	"fmt"
)

// Visits is the handle of a visitor: a callback run over the keys that the
// group table holds.
type Visits[M any] struct {
	visitorName string
	fn          func(*Context, M) error
}

// Visitor declares a callback over existing keys, which Visits.Run starts.
// In it the context's key is the visited one, its topic is empty, its time
// the clock's. An error stops the processor.
func Visitor[M any](name string, fn func(*Context, M) error) *Visits[M] {
	return &Visits[M]{visitorName: name, fn: fn}
}

func (*Visits[M]) isVisitor() {}

func (v *Visits[M]) declare(d *declaration) error {
	switch {
	case v == nil:
		return fmt.Errorf("visitor: nil handle")
	case v.visitorName == "":
		return fmt.Errorf("visitor: no name")
	case v.fn == nil:
		return fmt.Errorf("visitor %q: no callback", v.visitorName)
	}
	for _, n := range d.graph.Visitors {
		if n == v.visitorName {
			return fmt.Errorf("visitor %q is declared twice", n)
		}
	}
	d.slots[v] = len(d.graph.Visitors)
	d.graph.Visitors = append(d.graph.Visitors, v.visitorName)
	d.visitors = append(d.visitors, func(ctx *Context) error {
		m, _ := ctx.rec.Arg().(M)
		return v.fn(ctx, m)
	})
	return nil
}

// Run calls the visitor with m for every key that the group table holds on
// this instance, between the records of the inputs, and returns the number of
// keys when all that it did is committed. Keys that come while it runs may be
// visited or not. If a task is lost it returns ErrVisitAborted and the count
// so far; the effects of the keys counted may or may not be committed then.
// It may be called from any goroutine but a callback's.
func (v *Visits[M]) Run(ctx context.Context, p *Processor, m M) (int64, error) {
	if p == nil {
		return 0, fmt.Errorf("visitor %q: no processor given", v.visitorName)
	}
	in, slot := p.graph.declaring(v)
	if in == nil {
		return 0, &UndeclaredError{Handle: fmt.Sprintf("visitor %q", v.visitorName), Group: p.graph.group}
	}
	return p.visit(ctx, in, &visitCall{slot, m})
}
