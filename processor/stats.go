package processor

import (
	"time"

	"github.com/rekastream/reka/internal/task"
)

// Stats is a snapshot of a processor.
type Stats struct {
	Group      string
	Status     Status
	Partitions []PartitionStats // that this instance has, in order of subgraph and partition
}

// PartitionStats is a snapshot of one partition, at most a few milliseconds
// old. Counters begin when the partition is assigned.
type PartitionStats struct {
	Subgraph  string // "main" in a graph of NewGraph
	Partition int32
	State     string // restoring, running, closing, closed
	Inputs    []InputStats

	Records     int64 // finished, skipped ones included
	Bytes       int64 // of keys and values of processed records
	Skipped     int64 // by error policy
	NullValues  int64 // records without a value, skipped
	NullKeys    int64 // records without a key, skipped
	DeadLetters int64
	Retries     int64
	Visited     int64 // keys that visitors saw
	Future      int64 // refused because of their timestamps (MaxFuture)
	Unfinished  int   // records deferred, or held back behind one of their key
	Commits     int64
	LastCommit  time.Time
	StreamTime  time.Time // highest timestamp seen; zero before the first record

	// Counters are what operations of package stream count, by operation and
	// what it is: late records, for one.
	Counters map[string]int64

	// The restore of the partition's stores and joined tables, all of them
	// together: what was read, how many offsets are left, and how long that
	// may take (0: unknown).
	RestoredRows, RestoredBytes, RestoreRemaining int64
	RestoreEstimate                               time.Duration
	Rebuilds                                      int64 // stores that had to be built anew

	// Stores and joined tables, all of them together.
	CacheBytes     int   // rows in memory
	UnflushedBytes int   // committed, and not yet on disk
	StoreReads     int64 // reads that went to the disk
	Flushes        int64
}

// InputStats is how far one input topic of a partition is.
type InputStats struct {
	Topic    string
	Position int64 // next offset to process; unfinished records are below
	Lag      int64 // records between Position and the end as last seen; -1: unknown
}

func newPartitionStats(of *part, s task.Stats) PartitionStats {
	out := PartitionStats{
		Subgraph: of.spec.Subgraph, Partition: s.Partition, State: s.State,
		Records: s.Records, Bytes: s.Bytes, Skipped: s.Skipped, NullValues: s.NullValues, NullKeys: s.NullKeys,
		DeadLetters: s.DeadLetters, Retries: s.Retries, Visited: s.Visited, Future: s.Future, Unfinished: s.Unfinished, Commits: s.Epochs, LastCommit: s.LastCommit,
	}
	if len(s.Counters) > 0 {
		out.Counters = make(map[string]int64, len(s.Counters))
		for i, n := range s.Counters {
			out.Counters[of.counters[i]] += n
		}
	}
	if s.StreamTime >= 0 {
		out.StreamTime = time.UnixMilli(s.StreamTime)
	}
	for _, in := range s.Inputs {
		out.Inputs = append(out.Inputs, InputStats{Topic: in.Topic, Position: in.Position, Lag: in.Lag})
	}
	for _, r := range s.Restores {
		out.RestoredRows += r.Rows
		out.RestoredBytes += r.Bytes
		out.RestoreRemaining += r.Remaining()
		out.RestoreEstimate = max(out.RestoreEstimate, r.Estimate())
		out.Rebuilds += r.Rebuilds
	}
	for _, t := range s.Tables {
		out.CacheBytes += t.CacheBytes
		out.UnflushedBytes += t.UnflushedBytes
		out.StoreReads += t.StoreReads
		out.Flushes += t.Flushes
	}
	return out
}
