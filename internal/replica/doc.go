// Package replica keeps one partition of a table: the newest rows in memory,
// what is committed in a store, and the log that all of it follows.
//
// # Table
//
// A Table is the state of one partition in the hands of one owner goroutine:
// a row cache in front of a storage.Table. Its changes move through stages:
//
//	Set ─▶ active ─Seal─▶ layer ─Commit─▶ committed ─flush─▶ store
//
// Active and layer rows are not committed: Rollback forgets them. A layer is
// what changed between two seals as immutable bytes, which become the records
// of the changelog. Committed rows are folded, newest value of a key, until a
// flush writes them and then the checkpoint.
//
// What holds at every moment:
//
//   - Position in the store ≤ committed position. No uncommitted row is ever
//     written to the store.
//   - The store's rows are the fold of the log up to its checkpoint, or, while
//     a flush runs and after a crash in one, that fold with rows of later
//     records in it, which replay writes again.
//   - Rows that a flush writes stay in memory until its checkpoint is durable.
//   - A row that is not in the store yet is never evicted from the cache, so
//     a read of it never goes to the store.
//   - At most one flush a table is under way, and a failed one is repeated with
//     the same rows and checkpoint before later rows follow.
//
// # Replica
//
// A Replica follows the log of one partition into a Table. It has no goroutine
// and does no network: its owner asks the broker for Bounds, calls Start, feeds
// batches to Apply, and runs the flushes that it asks for. Its states:
//
//	created ─Start─▶ restoring ─position ≥ target─▶ live
//	                    ▲───────────out of range──────┘
//
// A restore ends by position, never by a record seen: control records, aborted
// ones and those that compaction removed leave nothing to see. Start resumes
// at the checkpoint if it is sound, else it clears the store and begins at the
// log's start, with one warning that says why. A checkpoint is unsound when it
// lies before the log's start or behind its end, when another topic stands
// behind the name, when the log was cut off below it by an unclean election
// and has grown again (Bounds.AskCut), or when it is older than the topic keeps
// its tombstones: deletes may have been missed. What can come about while a
// replica runs is noticed then, too, and answered in the same way: Apply clears
// the table, and the log is followed anew.
//
// What holds for the leader epoch in a checkpoint:
//
//   - It is that of the record before the position, or of a later one that
//     the leader had before the checkpoint was written. So an election that
//     comes afterwards and loses the record makes an epoch that is newer still,
//     and ends the checkpoint's below the position. Elections that lose
//     nothing end it at the position or behind.
//   - A replica knows it from the batches. Rows that are written, not read,
//     tell none: their flush asks for the newest (Epochs), and a checkpoint
//     without one is judged by offsets alone.
//
// # Mirror
//
// A Mirror replicates all partitions of a topic and is read from any number of
// goroutines. The goroutine that calls Run owns it; opening, asking the
// brokers and flushing are done by workers, which hand their results back
// through its mailbox. Its states:
//
//	idle ─Run─▶ connecting ⇄ restoring ⇄ ready      any ─▶ idle at the end
//
// Connecting: topic or brokers are not there, or a probe of theirs has not
// been answered for long. Restoring: some partition is not live. What holds:
//
//   - A partition is usable from the end of its restore until it has to be
//     built anew. Reads are answered while all partitions are usable and the
//     mirror was ready once in this run (or may read its local copy first), so
//     the loss of the brokers does not end them.
//   - A partition's table is changed only under its lock; usable changes in the
//     same critical section as the rows that it speaks of.
//   - A batch that was delivered before its partition was followed anew is
//     never applied.
//   - A scan holds a snapshot of each partition; Run waits for scans, which end
//     early, before it closes the store.
//   - The checkpoint of each partition notes the topic's partition count, and
//     whether the copy was complete once: a half restored copy is never taken
//     for one.
package replica
