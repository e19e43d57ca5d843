package processor

import (
	"fmt"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

// contextOf returns the context of a task's record.
func contextOf(r *task.Record) *Context {
	ctx, _ := r.Attached.(*Context) // see task.Env.Attach
	return ctx
}

// ApplyInput applies an option of Input. It is for Reka's own packages.
func ApplyInput(o InputOption, in *graph.Input) { o.applyInput(in) }

// EncodeError is a failure of a codec to encode a value.
type EncodeError struct{ Err error }

// Error returns the cause.
func (e *EncodeError) Error() string { return "encode: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *EncodeError) Unwrap() error { return e.Err }

// StoredValueError is the failure of a stored value to be decoded. It is for
// Reka's own packages.
func StoredValueError(store string, key []byte, err error) error {
	return &kafka.Error{TopicPartition: kafka.TopicPartition{Topic: store, Partition: -1}, Offset: -1,
		Key: append([]byte{}, key...), Err: fmt.Errorf("stored value: %w", err)}
}
