package processor

import (
	"fmt"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
)

// Looped is the handle of the group's loop: a topic of its own that callbacks
// write to and read again, to send work on to another key. Its records are
// deleted once they are processed and committed.
type Looped[T any] struct {
	codec codec.Codec[T]
	binding
}

// Loop declares the group's loop. The declaration is complete with its
// callback, see On; both the handle and what On returns may be given to
// NewGraph.
func Loop[T any](c codec.Codec[T]) *Looped[T] { return &Looped[T]{codec: c} }

// On binds the callback for records of the loop. It may use the handle.
func (l *Looped[T]) On(fn func(*Context, T) error) Edge {
	return edgeFunc(func(d *declaration) error {
		if err := l.declare(d); err != nil {
			return err
		}
		switch {
		case fn == nil:
			return fmt.Errorf("loop: no callback")
		case d.loop != nil:
			return fmt.Errorf("loop: On is declared twice")
		}
		d.loop = decoding(l.codec, fn)
		return nil
	})
}

func (l *Looped[T]) declare(d *declaration) error {
	switch {
	case l == nil:
		return fmt.Errorf("loop: nil handle")
	case d.loopEdge == any(l):
		return nil
	case d.loopEdge != nil:
		return fmt.Errorf("loop: a group has one loop, two are declared")
	case l.codec == nil:
		return fmt.Errorf("loop: no codec")
	}
	d.loopEdge = l
	d.slots[l] = d.output(reka.LoopTopic(d.graph.Group))
	return nil
}

// Emit sends v to the callback of On, at key. It is like Sink.Emit.
func (l *Looped[T]) Emit(ctx *Context, key string, v T, opts ...reka.EmitOption) {
	if slot, ok := l.slot(ctx, l, "loop"); ok {
		emit(ctx, emission[T]{slot: slot, topic: "loop", codec: l.codec, key: key}, &v, opts)
	}
}
