// Package emitter writes events into a topic from anywhere in a program.
//
//	e, err := emitter.New(client, Clicks)
//	...
//	defer e.Close(ctx)
//	_, err = e.Emit(ctx, "alice", Click{Page: "/"})
//
// Emit encodes the value, puts the record into a bounded buffer and returns;
// the Result tells, to whoever asks, when and where the record was written.
// Records of one partition keep the order of the calls to Emit, over retries
// too: for one goroutine that is its own order, between goroutines the order
// in which they came.
//
// An emitter never creates a topic.
//
// # How it works
//
// Callers append under one short lock: to the open batch of the record's
// partition, or, while the topic's partition count is not known, to the
// unplaced records. One goroutine, the owner, starts with the first record
// and ends with Close. It looks the topic up, places what waits for that, and
// hands batches over to a kafka.Producer: at most two a partition, so that
// what comes in the meantime gathers in the next batch.
//
// A batch is handed over when it is full, when the linger time has passed
// since the first record came, or when somebody waits: for a Result, for
// Flush, for Close, or for room in the buffer. That last rule is also what
// lets an emitter be used inside a processor's callback in a test, where the
// clock stands still while the callback runs.
//
// # States
//
// The emitter is open → closing → ended. A batch is
// open → full → handed over → done.
//
// # Invariants
//
//   - A record that Emit accepted is counted in the buffer until its Result
//     is resolved, and its Result is resolved exactly once, by the owner.
//   - The owner ends only when the buffer is empty. A close that runs out of
//     time closes the producer, which fails what is left.
//   - Batches of a partition are handed over in the order in which they were
//     opened. Unplaced records are placed, all of them, in the same critical
//     section that makes the partition count known.
//   - Codec and partitioner never run under the lock, nor do callbacks.
//   - The producer is called by the owner only.
package emitter
