package task

import (
	"sync/atomic"

	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/kafka"
)

// epoch is what a task did between two seals.
type epoch struct {
	task   *Task
	number uint64

	// Owned by the task until it is sealed, then by the lane until it is
	// committed or dropped, then by the task again.

	layers    []layer                 // of stores that changed
	joins     []layer                 // of joined tables that moved
	positions []kafka.CommittedOffset // of inputs and joins, with the mark
	records   int
	ends      []int64 // changelog position after the epoch, by store; -1 unknown
	strangers []gap   // what others wrote into the changelogs meanwhile

	// pending counts outputs that are not acked, and one for not being
	// sealed. Whoever takes it to zero tells the lane.
	pending atomic.Int64
	// lost is set when an output was refused for good and nothing else could
	// be done with it: the epoch must not be committed.
	lost atomic.Bool
}

// layer is the part of an epoch that one store keeps.
type layer struct {
	store    int
	layer    *replica.Layer
	position int64 // joins: position in the source topic
}

// refusal are output records that the broker refused for good, with the
// input records that caused them.
type refusal struct {
	target  kafka.TopicPartition
	records []kafka.Record
	origins []origin
	err     error
}

// origin is the input record behind an output.
type origin struct {
	input  int32
	offset int64
}

func newEpoch(t *Task, number uint64) *epoch {
	e := &epoch{task: t, number: number}
	e.pending.Store(1)
	return e
}

// acked takes n outputs off; it may be called from any goroutine.
func (e *epoch) acked(n int) {
	if e.pending.Add(-int64(n)) == 0 {
		e.task.env.Lane.ready(e)
	}
}
