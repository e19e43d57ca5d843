package stream

import (
	"fmt"
	"time"

	"github.com/rekastream/reka/codec"
)

// Option is an option of an operation.
type Option interface{ apply(*options) }

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type options struct {
	name       string
	codec      any // codec.Codec[T] of the operation's result
	partitions int32
	lateLeft   any // reka.Stream of the left side's type
	lateRight  any
	first      bool           // TableFirst
	history    *time.Duration // Versioned
	wait       *time.Duration // WithTableWait
	bad        bool           // a nil option
	unnamed    bool           // Named with no name
}

// Named names what an operation owns: its store, and so its changelog, or its
// repartition topic. A name that is kept lets the graph around it change.
// Default: a name made of the source or store before the operation and its
// kind.
func Named(name string) Option {
	return optionFunc(func(o *options) { o.name, o.unnamed = name, name == "" })
}

// WithCodec sets the codec of an operation's results, for one that changes
// their type where they are stored, repartitioned or handed to a table.
func WithCodec[T any](c codec.Codec[T]) Option { return optionFunc(func(o *options) { o.codec = c }) }

// Partitions sets the number of partitions of a repartition topic. Default:
// as many as the topics that are joined with it have, or else as what feeds
// it. A topic that operations share has the number that the first one says.
func Partitions(n int32) Option { return optionFunc(func(o *options) { o.partitions = n }) }

// wholeMillis returns a duration in milliseconds. One that is negative, or has
// parts of a millisecond, is an error.
func wholeMillis(d time.Duration) (int64, error) {
	switch {
	case d < 0:
		return 0, fmt.Errorf("%v is negative", d)
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("%v is no whole number of milliseconds", d)
	}
	return d.Milliseconds(), nil
}

func fold(opts []Option) (o options) {
	for _, opt := range opts {
		if opt == nil {
			o.bad = true
			continue
		}
		opt.apply(&o)
	}
	return o
}

// misplaced returns the name of an option that an operation does not have.
func (o *options) misplaced(op string) string {
	switch {
	case o.first && op != "from":
		return "TableFirst"
	case o.history != nil && op != "from":
		return "Versioned"
	case o.wait != nil && op != "jointable" && op != "leftjointable":
		return "WithTableWait"
	case (o.lateLeft != nil || o.lateRight != nil) && op != "join":
		return "LateLeft or LateRight"
	case o.partitions != 0 && !repartitions[op]:
		return "Partitions"
	case o.name != "" && ownsNothing[op]:
		return "Named"
	case o.codec != nil && op == "groupbykey":
		return "WithCodec"
	}
	return ""
}

// repartitions are the operations that Partitions is for.
var repartitions = map[string]bool{
	"repartition": true, "groupbykey": true, "grouptable": true, "totable": true, "jointable": true, "leftjointable": true,
}

// ownsNothing are the operations with options that have nothing to be named.
var ownsNothing = map[string]bool{
	"map": true, "mapvalues": true, "flatmap": true, "flatmapvalues": true, "process": true, "joinglobal": true, "leftjoinglobal": true,
}

// codecOf returns the codec that was set for results of type T, or was.
func codecOf[T any](n *node, o *options, was codec.Codec[T]) codec.Codec[T] {
	if o.bad {
		n.b.failf(n, "a nil option")
	}
	if o.unnamed {
		n.b.failf(n, "Named: an empty name")
	}
	if name := o.misplaced(n.op); name != "" {
		n.b.failf(n, "%s is no option of it", name)
	}
	if o.codec == nil {
		return was
	}
	c, ok := o.codec.(codec.Codec[T])
	if !ok {
		var zero T
		n.b.failf(n, "WithCodec(%T) does not fit results of type %T", o.codec, zero)
		return unfit[T]{} // reported once
	}
	return c
}

// needCodec reports that an operation needs bytes of what it is given.
func needCodec[T any](n *node, c codec.Codec[T]) bool {
	if c != nil {
		return true
	}
	var zero T
	n.b.failf(n, "needs a codec for %T: give it to the operation that makes them (WithCodec)", zero)
	return false
}

// unfit stands for a codec that does not fit: the graph is not built.
type unfit[T any] struct{ codec.Codec[T] }
