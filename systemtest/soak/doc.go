// Package soak proves the guarantees on real Kafka, in the manner of Jepsen:
// processes of a test service run against three nodes, a nemesis does to them
// what happens to machines, and a checker then judges everything that can be
// seen from outside.
//
// # What runs
//
//	events ──▶ group tally ──▶ effects   (one record for each event)
//	rates ─join──┘   │
//	                 └──▶ nth ──▶ group second ──▶ second-effects
//
// Each process runs a member of both groups and a view of tally's table, over
// one state directory. Processes reach the nodes through proxies; the checker
// reaches them directly, and reads with a client that shares no code with
// Reka. An event carries its key, its number within the key and an id; every
// output carries those of the event that it stems from, so each can be judged.
//
// # States
//
//	process: down → running → (paused → running) → stopping → down
//	node:    up → down → up, one at a time
//	proxy:   clear → cut, silent or slow → clear
//	run:     starting → under attack → healed → drained → stopped → judged
//
// # What is judged
//
//  1. Events: every acknowledged one is in its topic once.
//  2. State: the row of each key has counted every event, none twice.
//  3. Outputs, read committed: none missing, none twice, none out of its key's
//     order; each says the count that the row had.
//  4. Join: the version of the joined row never goes back along a key, and the
//     last event sees the last version.
//  5. Tables: the fold of the table topic, the rows that the owners see, the
//     rows in the owners' stores and the views are the same; each partition
//     has one owner.
//  6. Committed offsets never go back.
//  7. Processes: none ends by itself but for a full disk, with that error; no
//     goroutine of the engine is left after the end; nothing stands still, and
//     no transaction stays open.
//
// With at least once, outputs may repeat, and what left before a crash may
// have seen a newer joined row; everything else holds. Without transactions
// records may also be counted again, and only losses are judged.
//
// A disk that is filled to the last byte at one blow may end the process with
// a bus error: Badger writes through memory maps, and there was no moment to
// look. One that leaves little room must end it with storage.ErrFull.
//
// # Who owns what
//
// The fleet of processes, the nodes and the proxies belong to the nemesis's
// goroutine; others ask it. Readers, the watcher of offsets and the load each
// guard what they have gathered with a mutex, and end with their Close.
package soak
