package task

import (
	"time"

	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/kafka"
)

// Stats is a snapshot of a task, published between turns.
type Stats struct {
	Partition int32
	State     string // restoring, running, closing, closed

	Records     int64 // finished, skipped ones included
	Bytes       int64 // of keys and values of processed records
	Skipped     int64 // by error policy
	NullValues  int64 // skipped
	NullKeys    int64 // skipped
	DeadLetters int64
	Retries     int64
	Visited     int64 // keys that visitors saw
	Future      int64 // refused because of their timestamps
	Unfinished  int   // records deferred, or held back behind one of their key
	Epochs      int64 // committed

	LastCommit time.Time
	StreamTime int64 // milliseconds since the epoch, -1 before the first record

	Counters []int64 // by index of Env.Counters

	Inputs   []InputStats
	Restores []replica.Progress
	Tables   []replica.TableStats // by store, then by join
}

// InputStats is how far one input is.
type InputStats struct {
	kafka.TopicPartition
	Position  int64 // next to process
	Committed int64 // position of the last sealed epoch
	Lag       int64 // records between Position and the end as last seen; -1 unknown
}

// counts are owned by the task.
type counts struct {
	records, bytes, skipped, nullValues, nullKeys int64
	deadLetters, retries, visited, epochs, future int64
	lastCommit                                    time.Time
}

// Stats returns the last published snapshot. Any goroutine may call it.
func (t *Task) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Inputs = append([]InputStats(nil), s.Inputs...)
	s.Counters = append([]int64(nil), s.Counters...)
	s.Restores = append([]replica.Progress(nil), s.Restores...)
	s.Tables = append([]replica.TableStats(nil), s.Tables...)
	return s
}

// publish renews the snapshot. It is called once a turn and allocates
// nothing once the slices have grown.
func (t *Task) publish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, s := &t.count, &t.stats
	s.Partition, s.State = t.partition, t.state.String()
	s.Records, s.Bytes, s.Skipped, s.NullValues, s.NullKeys = c.records, c.bytes, c.skipped, c.nullValues, c.nullKeys
	s.DeadLetters, s.Retries, s.Visited, s.Epochs = c.deadLetters, c.retries, c.visited, c.epochs
	s.Unfinished, s.Future = t.unfinished.n, c.future
	s.Counters = append(s.Counters[:0], t.counters...)
	s.LastCommit, s.StreamTime = c.lastCommit, t.streamTime
	s.Inputs = s.Inputs[:0]
	for _, in := range t.inputs {
		lag := int64(-1)
		if in.lastStable >= 0 {
			lag = max(0, in.lastStable-in.position)
		}
		s.Inputs = append(s.Inputs, InputStats{TopicPartition: in.TopicPartition, Position: in.position, Committed: in.committed, Lag: lag})
	}
	s.Restores = s.Restores[:0]
	for _, r := range t.restoring {
		s.Restores = append(s.Restores, r.replica.Progress())
	}
	s.Tables = s.Tables[:0]
	for _, list := range [][]*store{t.stores, t.joins} {
		for _, st := range list {
			if st.table != nil && t.state != stateClosed {
				s.Tables = append(s.Tables, st.table.Stats())
			}
		}
	}
}
