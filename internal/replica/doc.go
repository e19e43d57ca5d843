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
// behind the name, or when it is older than the topic keeps its tombstones:
// deletes may have been missed.
//
// # Mirror
//
// A Mirror replicates all partitions of a topic and is read from any number of
// goroutines. One goroutine owns it (see Mirror).
package replica
