package processor

import (
	"fmt"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
)

// InputOption is an option of Input.
type InputOption interface{ applyInput(*graph.Input) }

type inputOption func(*graph.Input)

func (f inputOption) applyInput(in *graph.Input) { f(in) }

// Nulls passes records without a value to the callback, with the zero T;
// Context.NullValue tells them apart. Default: they are skipped and counted.
func Nulls() InputOption { return inputOption(func(in *graph.Input) { in.Nulls = true }) }

// NullKeys passes records without a key to the callback; Context.NullKey
// tells them apart. Only for graphs without stores. Default: they are skipped
// and counted.
func NullKeys() InputOption { return inputOption(func(in *graph.Input) { in.NullKeys = true }) }

// FromLatest starts a new group at the end of the topic. Default: at its
// start. It has no effect once the group has committed an offset.
func FromLatest() InputOption { return inputOption(func(in *graph.Input) { in.Latest = true }) }

// WallTime gives records that have no timestamp the clock's time. Default:
// they fail in the decode phase.
func WallTime() InputOption { return inputOption(func(in *graph.Input) { in.WallTime = true }) }

// MaxFuture refuses records whose timestamp is more than d ahead of the clock:
// they are counted and passed over, and say nothing about time. Default: none
// are refused.
func MaxFuture(d time.Duration) InputOption {
	return inputOption(func(in *graph.Input) { in.MaxFuture = max(1, d.Milliseconds()) })
}

// Input runs fn for each record of a topic, one after the other for each
// partition, on the goroutine of the task that owns the partition. All inputs
// and joined tables of a graph must have the same number of partitions.
//
// What fn does through its Context takes effect when it returns nil, all of
// it; an error or a panic voids it and is handled as OnError says.
func Input[T any](t reka.Topic[T], fn func(*Context, T) error, opts ...InputOption) Edge {
	return edgeFunc(func(d *declaration) error {
		if err := checkTopic(t); err != nil {
			return fmt.Errorf("input: %w", err)
		}
		if fn == nil {
			return fmt.Errorf("input %s: no callback", t.Name())
		}
		in := graph.Input{Topic: t.Name()}
		for _, o := range opts {
			if o == nil {
				return fmt.Errorf("input %s: a nil option", t.Name())
			}
			o.applyInput(&in)
		}
		d.graph.Inputs = append(d.graph.Inputs, in)
		d.inputs = append(d.inputs, decoding(t.Codec(), fn))
		d.decodes = append(d.decodes, func(b []byte) error { _, err := t.Codec().Decode(b); return err })
		return nil
	})
}

// decoding returns the handler that decodes the record's value for fn.
func decoding[T any](c codec.Codec[T], fn func(*Context, T) error) handler {
	return func(ctx *Context) error {
		var v T
		if raw := ctx.rec.Source().Value; raw != nil {
			var err error
			if v, err = c.Decode(raw); err != nil {
				return &task.DecodeError{Err: err}
			}
		}
		return fn(ctx, v)
	}
}

// checkTopic refuses the zero value of a declaration.
func checkTopic[T any](t reka.Topic[T]) error {
	switch {
	case t == nil || t.Name() == "":
		return fmt.Errorf("a topic without a name (declare it with NewStream or NewTable)")
	case t.Codec() == nil:
		return fmt.Errorf("topic %s has no codec", t.Name())
	}
	return nil
}
