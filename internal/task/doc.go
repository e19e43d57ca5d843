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
// How an epoch is written depends on the guarantee.
//
//   - Exactly once: outputs stay with the epoch. The lane writes the sealed
//     epochs that wait in one transaction: outputs, changelog rows, offsets.
//   - At least once: outputs leave as their records finish. When they are
//     acked the lane writes changelog rows and offsets in one transaction.
//   - Without transactions: outputs acked, then changelog acked, then offsets
//     committed. So after a crash the offsets are never ahead of the effects:
//     a record may be processed again, none is lost.
//
// # A deferred record
//
//	begun ── its callback defers ──▶ open ── Finish, Fail ──▶ ready ──▶ finished
//	                                  ▲                        │  │
//	        defers again, in any run  └────────────────────────┤  └─ failed for good:
//	                                                           ▼     the epoch is lost
//	parked ── the one before is finished ──▶ ready ◀── resting (backoff)
//
// A record that is open, ready, resting or parked is unfinished: the task
// keeps a copy of it, and its input's position has moved past it. Records of
// a key, of all inputs and joined tables, take effect in the order in which
// they were picked: a later one is parked. Records without a key, and
// visitors, pass.
//
// The epoch stays a prefix of every input because nothing is sealed while
// something is unfinished. A seal that is due drains the task first: no record
// is started until none is unfinished. So what an unfinished record does is
// never held up by what only a seal can cure (full tables, a full epoch), and
// nothing that it waits for may need another record to be started. The number
// of unfinished records is bounded, and so are their bytes; what is ready is
// run in turns like any records.
//
// If an unfinished record cannot be finished (it failed for good, or the task
// failed otherwise, or it has to close while one rests) the active epoch is
// lost: it is never sealed, no call of a Deferred is heard any more, and all
// since the last seal is processed again after the next start. Closing waits
// for the others; dropping does not.
//
// A call of a Deferred counts once, and only for the run of the callback that
// made it, if that returned nil.
//
// # A transaction
//
//	idle → writing → ending → idle
//	          │         └─ unknown → judged
//	          └─ aborted: the same epochs wait again
//
// It is open for as long as writing takes and never while a callback runs. An
// epoch that was not committed is written again as it is; no callback runs
// again. What ends a transaction early:
//
//   - Anything that may pass (a leader is away, the group is between two
//     generations, the broker has aborted it): abort, write again. What the
//     group refused waits for the next assignment.
//   - An output or a row that will never be taken: its epoch leaves, the task
//     decides; the other epochs are written again.
//   - A task that was dropped before the offsets were sent: its epoch leaves.
//   - An end that is not answered: it is asked for again. If that does not
//     help, the producer epoch is renewed, which settles the transaction one
//     way or the other, and the marks in the committed offsets say which.
//   - Being fenced: the broker's timeout does that, and so does another member
//     that believed this one gone. Renewing the own epoch tells which. If it
//     was a member, this one first hears from the group that it still belongs
//     to it; then it takes its id back and goes by the marks.
//
// A mark decides, never an offset: an epoch may move none, and another owner
// may have committed the same ones. A mark of somebody else's says that the
// tenure is over: the task is given up and taken over anew.
//
// After a transaction of which a request went unanswered the producer epoch
// is renewed before the next one begins: what is still on its way would hit
// that one.
//
// A claim, the first thing that a takeover commits, goes the same way: it is
// an epoch without a task that moves nothing, and it is not judged but made
// again.
//
// # Invariants
//
//  1. A record's effects join the active epoch at its boundary or not at all:
//     rows and emits are staged while its callback runs, and an error or
//     panic discards them.
//
//  2. Outputs to a partition leave in the order in which the records that
//     caused them were finished, which for one key, and for all where nothing
//     is deferred, is the order in which they were picked.
//
//  3. Epochs of a task are written in the order in which they were sealed.
//
//  4. Positions in a committed epoch cover finished records only: an epoch is
//     sealed when nothing below its positions is unfinished.
//
//  5. The store's position is never ahead of the committed epoch's changelog
//     position (package replica keeps the order on disk).
//
//  6. Nothing is handed to the producer for a task that was dropped or whose
//     member's lease is over: the task asks before records, outputs and seals,
//     the lane before each step. Offsets are committed in the generation
//     adopted last, which is adopted only when what it does not give to this
//     member is dropped; so the lane reads the generation first and looks for
//     dropped tasks then.
//
//  7. A task that is dropped fails nobody: what a callback returns after its
//     context has ended ends no processor.
//
//  8. With transactions: what a task did becomes visible together or not at
//     all, and once. A transaction commits only if the group accepted its
//     offsets in a generation in which all its tasks were this member's;
//     whoever owns them next reads offsets only when nothing is pending. So
//     fencing saves time, and nothing rests on it.
//
//  9. Rows become committed, and may be flushed, when the transaction is known
//     to be committed, not before.
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
