package processor

import (
	"errors"
	"fmt"

	"github.com/rekastream/reka/internal/task"
)

// ErrInactive says that a Context was used outside its callback.
var ErrInactive = task.ErrInactive

// ErrStopped says that the processor has ended, or ended while it was waited
// for.
var ErrStopped = errors.New("processor has stopped")

// ErrRunTwice says that Run was called on a processor that runs or ran.
var ErrRunTwice = errors.New("processor: Run is called once")

// ErrGroupBusy says that this process already runs a processor of the group
// on the same state directory.
var ErrGroupBusy = errors.New("this process already runs a processor of the group on this state")

// ErrOffsetsLost says that a changelog has rows while the group has no
// committed offset: they have expired, or somebody removed them. Going on from
// the start would apply every record a second time. WithLostOffsets decides.
var ErrOffsetsLost = errors.New("the table has rows but the group has no committed offsets")

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
// do not, or that an internal topic has another count than the inputs.
type PartitionCountError struct {
	Group  string
	Counts []TopicCount
}

// TopicCount is a topic with its number of partitions.
type TopicCount struct {
	Topic      string
	Partitions int32
}

// Error names all topics and counts.
func (e *PartitionCountError) Error() string {
	s := fmt.Sprintf("group %s: topics must have equal partition counts:", e.Group)
	for i, c := range e.Counts {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprintf(" %s has %d", c.Topic, c.Partitions)
	}
	return s
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
