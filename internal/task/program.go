package task

import (
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// Handler processes the record at hand. It is called on the task's goroutine.
// An error, or a panic, voids everything that it did.
type Handler func(*Record) error

// Env is what all tasks of one processor share. It is not changed after the
// first task was made.
type Env struct {
	Graph    *graph.Graph
	Inputs   []Handler // by index of Graph.Inputs
	Visitors []Handler // by index of Graph.Visitors
	// Joins are called with the rows of joined tables, before a row replaces
	// the former one, by index of Graph.Joins; nil: nothing is to be done.
	Joins []Handler

	// Decodes report whether values can be decoded, by index of
	// Graph.Inputs; nil: all can. They are asked only where a record would
	// release something by its time, which one that cannot be decoded must
	// not.
	Decodes []func(value []byte) error

	// Holds are the clocks: clock i shows the stream time less Holds[i], in
	// milliseconds. Clock 0 has no hold, and no step that raises it.
	Holds []int64
	// Before are the steps that an advance of stream time takes before the
	// record that brought it, After those that follow every record.
	Before, After []Step
	// Wall are what waits for the wall clock.
	Wall []*Timed
	// Begin is run before a task's first record in each of its lives, as an
	// operator at the time of the wall clock.
	Begin []func(*Record) error
	// Counters are the names of what operators count, see Record.Count.
	Counters []string
	// Attach, if set, is called once with the Record of each task.
	Attach func(*Record)

	Clock    kafka.Clock
	Work     work.Counter
	Log      *zap.Logger
	Fetcher  kafka.Fetcher // of inputs
	Restorer kafka.Fetcher // of changelogs, on connections of its own
	Producer kafka.Producer
	Place    kafka.Partitioner
	Store    storage.Store // nil in a graph that keeps nothing
	Lookups  []*replica.Mirror
	Lane     *Lane
	Disk     *Worker         // flushes
	Epochs   *replica.Epochs // may be nil: checkpoints tell no epochs then

	Fingerprint uint64 // of Graph

	// Outputs holds what is known of the topics of Graph.Outputs, then of
	// the dead-letter topics (see Graph policies), by index.
	Outputs []Target

	// Purge deletes the records of a loop partition below an offset, some
	// time. It must not block.
	Purge func(kafka.TopicPartition, int64)

	Settings

	// Ends asks for the ends of inputs, for readers of committed records. It
	// must not block; the answer may come on any goroutine.
	Ends func([]kafka.TopicPartition, func(map[kafka.TopicPartition]int64, error))

	// Event tells the processor. It is called on the goroutine of a task, or
	// of a callback's making, and must not block.
	Event func(Event)
}

// Settings are the tunables of tasks.
type Settings struct {
	CommitInterval time.Duration // from the first change to the seal
	EpochBytes     int           // an epoch that holds more is sealed early; twice that stops the task
	RecordBytes    int           // bound of one record's staged bytes
	Unfinished     int           // bound of a task's unfinished records
	CacheBytes     int           // of rows, a store and partition
	FlushBytes     int           // committed and not yet flushed rows, a store and partition
	FlushAge       time.Duration // how long committed rows may wait for their flush
	ProcessID      string        // goes into the mark
	HoldOutputs    bool          // exactly once: outputs are written with their epoch
	IdleTime       time.Duration // without data, after which stream time follows the clock; 0: never
}

// Target is what is known of a topic that is written to.
type Target struct {
	Topic      string
	Partitions int32
	MaxBytes   int // of one record
}

// EventKind says what happened to a task.
type EventKind int8

// Events.
const (
	Running  EventKind = iota // restored; reads its inputs
	Failed                    // Event.Err ends the processor; the task waits for Close
	Written                   // closing: nothing will be written any more
	Closed                    // closing is over
	Disowned                  // another owner was there meanwhile: to be closed and taken over anew
	Progress                  // restore progress or counters were published
)

// Event is something that a task tells its processor.
type Event struct {
	Task *Task
	Kind EventKind
	Err  error
}
