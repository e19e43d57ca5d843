package task

import (
	"sync/atomic"
	"time"

	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/kafka"
)

// epoch is what a task did between two seals.
type epoch struct {
	task   *Task  // nil: a claim
	claim  *Claim // nil: an epoch of a task
	number uint64

	// Owned by the task until it is sealed, then by the lane until it is
	// committed or dropped, then by the task again.

	layers    []layer                 // of stores that changed
	joins     []layer                 // of joined tables that moved
	positions []kafka.CommittedOffset // of inputs and joins
	mark      int                     // which of them carries the mark
	records   int
	ends      []int64 // changelog position after the epoch, by store; -1 unknown
	strangers []gap   // what others wrote into the changelogs meanwhile
	outputs   []*slab // exactly once: to be written with it
	bytes     int     // of rows and outputs, about

	judged    bool      // by its mark, not to be committed: looked at again
	alone     bool      // timed out in a transaction with others: goes by itself
	notBefore time.Time // of an epoch that timed out alone

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

// dropped reports whether the epoch must not be committed.
func (e *epoch) dropped() bool {
	if e.claim != nil {
		return e.claim.ctx.Err() != nil
	}
	return e.lost.Load() || e.task.dropped.Load()
}

// marked returns the offset that carries the mark.
func (e *epoch) marked() *kafka.CommittedOffset { return &e.positions[e.mark] }

// refusal are the records from From to To of a slab that the broker refused
// for good.
type refusal struct {
	slab     *slab
	from, to int
	err      error
}

func (r *refusal) records() []kafka.Record { return r.slab.records[r.from:r.to] }

// origins are the input records that caused them.
func (r *refusal) origins() []origin { return r.slab.origins[r.from:r.to] }

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
