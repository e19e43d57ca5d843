// Package task runs one partition of a group's graph: the owner goroutine
// that merges the inputs, calls callbacks, stages their effects and seals
// them into epochs, and the lane that writes sealed epochs and commits them.
//
// # A task
//
//	created → restoring → running → closing → closed
//
// One goroutine owns a task. Everything reaches it as a message in its
// mailbox: fetched batches, timers, answers of the lane and of the flusher,
// the order to close. It never waits for anything else but for user code.
//
//   - restoring: its stores follow their changelogs to the position that was
//     the end when the task was taken over, joined tables follow their topic
//     to the committed position. No input is read.
//   - running: inputs are read from their committed positions.
//   - closing: no further record is started. What is finished is sealed,
//     written and committed (revoke), or forgotten (drop, when the task is
//     no longer this member's). Committed rows are flushed.
//   - closed: stores are given back, nothing of the task runs.
//
// # An epoch
//
//	active → sealed → writing → committed | dropped
//
// An epoch is what a task did between two seals, as a value: the positions it
// reached, the last value of every row it changed, and the outputs that left
// while it was active. While one epoch is being written the next one is
// active. At most one sealed epoch a task is under way.
//
// Without transactions an epoch is written in this order: outputs acked, then
// changelog acked, then offsets committed. So after a crash the offsets are
// never ahead of the effects: a record may be processed again, none is lost.
//
// # Invariants
//
//  1. A record's effects join the active epoch at its boundary or not at all:
//     rows and emits are staged while its callback runs, and an error or
//     panic discards them.
//  2. Outputs to a partition leave in the order of the records that caused
//     them.
//  3. Epochs of a task are written in the order in which they were sealed.
//  4. Positions in a committed epoch cover finished records only.
//  5. The store's position is never ahead of the committed epoch's changelog
//     position (package replica keeps the order on disk).
//  6. Nothing is handed to the producer for a task that was dropped or whose
//     member's lease is over: the task asks before records, outputs and seals,
//     the lane before each step. Offsets are committed in the generation
//     adopted last, which is adopted only when what it does not give to this
//     member is dropped.
//  7. A task that is dropped fails nobody: what a callback returns after its
//     context has ended ends no processor.
//
// # What remains without transactions
//
// A write that was handed over while the lease stood can arrive when the next
// owner has written already: the process, or the network, stood still in
// between. The owner sees a gap in its changelog with its next epoch and
// writes its own rows of it again. If it writes nothing more to that partition
// before it loses it, or dies in between, the older row stays the last one,
// and what was counted into the newer one is lost. Only transactions help.
package task
