package task

import (
	"math"

	"github.com/rekastream/reka/kafka"
)

// input is one partition that a task reads: an input topic's, the loop's, or
// a joined table's. Owned by the task.
type input struct {
	kafka.TopicPartition
	id       kafka.TopicID
	metadata string // of committed offsets without a mark
	rank     int    // order in ties: tables first, then order of declaration
	join     int    // index of the joined table, -1: a stream
	slot     int    // index of Graph.Inputs, -1: a joined table
	loop     bool
	internal bool // the group's own: records are deleted once they are committed

	queue []*kafka.Batch // head first
	index int            // next record of queue[0]
	ahead int            // records of queue[0] whose keys were prefetched

	position   int64 // next to process
	lastStable int64 // as of the newest batch, processed or not; -1: unknown
	fetched    int64 // position after the newest batch
	committed  int64 // position of the last sealed epoch
	purged     int64 // internal: records below are deleted
}

// push takes a delivered batch in.
func (in *input) push(b *kafka.Batch) {
	in.lastStable, in.fetched = b.LastStable, b.Position
	in.queue = append(in.queue, b)
	in.skipEmpty()
}

// head returns the next record, nil if none is here.
func (in *input) head() *kafka.Record {
	if len(in.queue) == 0 {
		return nil
	}
	return &in.queue[0].Records[in.index]
}

// next moves past the head.
func (in *input) next() {
	b := in.queue[0]
	in.position = b.Records[in.index].Offset + 1
	if in.index++; in.index == len(b.Records) {
		in.pop()
		in.skipEmpty()
	}
}

// skipEmpty takes positions from batches that hold nothing to process.
func (in *input) skipEmpty() {
	for len(in.queue) > 0 && len(in.queue[0].Records) == 0 {
		in.pop()
	}
}

func (in *input) pop() {
	b := in.queue[0]
	in.position, in.index, in.ahead = b.Position, 0, 0
	in.queue[0] = nil
	if in.queue = in.queue[1:]; len(in.queue) == 0 {
		in.queue = nil
	}
	b.Release()
}

// drop releases everything that waits.
func (in *input) drop() {
	for _, b := range in.queue {
		b.Release()
	}
	in.queue, in.index, in.ahead = nil, 0, 0
}

// lagging reports whether records may exist that are not here yet: only for
// them is an empty input waited for.
func (in *input) lagging() bool {
	return !in.loop && (in.lastStable < 0 || in.fetched < in.lastStable)
}

// before reports whether a record of in at time t goes before one of other
// at time u.
func (in *input) before(other *input, t, u int64) bool {
	return t < u || t == u && in.rank < other.rank
}

// pick chooses the input whose head is next, and how far it may run: its
// records go before every other input's head up to time limit (which counts
// itself if inclusive). It returns nil if an input must be waited for, or
// nothing is there.
func pick(inputs []*input) (best *input, limit int64, inclusive bool) {
	if len(inputs) == 1 {
		if inputs[0].head() == nil {
			return nil, 0, false
		}
		return inputs[0], math.MaxInt64, true
	}
	var second *input
	var t, u int64
	for _, in := range inputs {
		r := in.head()
		switch {
		case r == nil && in.lagging():
			return nil, 0, false
		case r == nil:
		case best == nil || in.before(best, r.Timestamp, t):
			second, u = best, t
			best, t = in, r.Timestamp
		case second == nil || in.before(second, r.Timestamp, u):
			second, u = in, r.Timestamp
		}
	}
	if best == nil || second == nil {
		return best, math.MaxInt64, true
	}
	return best, u, best.rank < second.rank
}
