package processor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rekastream/reka/internal/task"
)

// Errors of processors. They come wrapped: use errors.Is.
var (
	// ErrInactive: a Context was used outside its callback.
	ErrInactive = task.ErrInactive

	// ErrStopped: the processor has ended, or ended while it was waited for.
	ErrStopped = errors.New("processor has stopped")

	// ErrRunTwice: Run was called on a processor that runs or ran.
	ErrRunTwice = errors.New("processor: Run is called once")

	// ErrGroupBusy: this process already runs a processor of the group on
	// the same state directory.
	ErrGroupBusy = errors.New("this process already runs a processor of the group on this state")

	// ErrOffsetsLost: a changelog has rows while the group has no committed
	// offset: they have expired, or somebody removed them. Going on from the
	// start would apply every record a second time. WithLostOffsets decides.
	ErrOffsetsLost = errors.New("the table has rows but the group has no committed offsets")

	// ErrVisitAborted: a visit ended before it had seen every key, because a
	// task moved away or the processor stopped.
	ErrVisitAborted = task.ErrVisitAborted
)

// UndeclaredError says that a handle was used in a graph that does not
// declare it.
type UndeclaredError struct {
	Handle, Group string
}

// Error names the handle and the group.
func (e *UndeclaredError) Error() string {
	return fmt.Sprintf("%s is not declared by the graph of group %s", e.Handle, e.Group)
}

// PartitionCountError says that topics which must have equal partition counts
// do not.
type PartitionCountError struct {
	Group  string
	Topics []string
	Counts []int32 // of Topics
}

// Error names all topics and counts.
func (e *PartitionCountError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "group %s: topics must have equal partition counts:", e.Group)
	for i, t := range e.Topics {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s has %d", t, e.Counts[i])
	}
	return b.String()
}

// PanicError is a panic of a callback, with its stack.
type PanicError = task.PanicError

// StoreError is a failure of a store, which ends the processor whatever the
// error policy says.
type StoreError = task.StoreError

// placed wraps an error of the group.
func placed(group string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("processor %s: %w", group, err)
}
