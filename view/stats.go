package view

import (
	"time"

	"github.com/rekastream/reka/internal/replica"
)

// State is where a view stands.
type State int8

// The states of a view.
const (
	Idle       = State(replica.MirrorIdle)       // Run was not called, or has ended
	Connecting = State(replica.MirrorConnecting) // brokers or topic are not there
	Restoring  = State(replica.MirrorRestoring)  // a partition is not complete yet
	Ready      = State(replica.MirrorReady)      // complete
)

// String returns the state's name.
func (s State) String() string { return replica.MirrorState(s).String() }

// Stats is a snapshot of a view. Sizes are in bytes.
type Stats struct {
	State      State
	Partitions []PartitionStats

	// Read since Run began: records that are rows or deletes, those among
	// them that the decode policy dropped, and records without a key, which
	// are no rows.
	Records, Skipped, NullKeys int64

	// Rebuilds is how often a partition had to be built anew.
	Rebuilds int64

	CacheBytes     int // rows in memory
	UnflushedBytes int // changes that are not in the storage yet
}

// PartitionStats is a snapshot of one partition. Positions are offsets to be
// read next.
type PartitionStats struct {
	Partition     int32
	Restoring     bool
	Position, End int64         // End is as of the last answer of the brokers
	Lag           int64         // offsets still to read
	Remaining     int64         // offsets still to read until it is restored
	Rate          float64       // records a second of the restore
	Estimate      time.Duration // what the restore will still take; 0: unknown
}

// State returns where the view stands.
func (v *View[T]) State() State { return State(v.mirror.State()) }

// Lag returns how many offsets the copy is behind the log, over all
// partitions, as of the last answer of the brokers.
func (v *View[T]) Lag() int64 {
	n := int64(0)
	for _, p := range v.mirror.Stats() {
		n += p.Lag()
	}
	return n
}

// Stats returns a snapshot.
func (v *View[T]) Stats() Stats {
	s := Stats{State: v.State()}
	for _, p := range v.mirror.Stats() {
		s.Records += p.Rows - p.NullKeys
		s.Skipped += p.Skipped
		s.NullKeys += p.NullKeys
		s.Rebuilds += p.Rebuilds
		s.CacheBytes += p.Table.CacheBytes
		s.UnflushedBytes += p.Table.UnflushedBytes
		s.Partitions = append(s.Partitions, PartitionStats{
			Partition: p.Partition, Restoring: p.Progress.State != replica.Live,
			Position: p.Position, End: p.End, Lag: p.Lag(), Remaining: p.Remaining(),
			Rate: p.Rate(), Estimate: p.Estimate(),
		})
	}
	return s
}
