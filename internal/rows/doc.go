// Package rows is the in-memory table that a task and a replica read and write
// on every record: the newest value of each key as its owner sees it, bounded
// in bytes, without pointers for the garbage collector to follow.
//
// # Layout
//
// Entries stand one behind the other in chunks of up to 256 KiB, a log: an
// entry is changed in place while its room suffices, else written anew at the
// end of the log, and the old one is dead. An entry too large for a shared
// chunk has a chunk to itself. The index has 256 parts, chosen by the top bits
// of a key's hash; each is a table of 8-byte slots with open addressing, and a
// slot holds 28 more bits of the hash and the place of the entry. So parts grow
// without reading entries, and each pause is that of one part.
//
// # Versions
//
// An entry carries the version that changed it last, or, while that is the
// current one, its number in the list of changes. An entry is clean if its
// version is in the store; what was filled in has version 0 and is clean from
// the start. Numbers of versions wrap around and are compared as such; entries
// that have been clean for long are put to version 0, a chunk at a time, before
// their version could be taken for a coming one.
//
// # Reclaiming
//
// Over its limit, or when most of it is garbage, a call that changes the table
// sweeps at most one chunk. A
// chunk with much garbage is preferred: its live entries move to the end of
// the log. Else the oldest one is taken, and its clean entries are evicted,
// except those that were read or set since the last sweep (second chance). A
// chunk that would yield little goes to the back of the queue as it is. After
// a few fruitless sweeps the table rests until it allocates another chunk or
// something becomes clean, so that a table full of unclean rows does not sweep
// in vain on every call.
//
// # Invariants
//
//   - A key has at most one live entry, and exactly the live entries are in
//     the index.
//   - An entry that is not clean is never evicted.
//   - In a complete table a key without an entry has no row. Eviction of a row
//     ends completeness; that of an absent one does not, for not being there
//     says the same.
//   - The list of changes names each live entry changed in the current version
//     once, wherever it moves.
//   - A chunk's counters are the sums over its entries: dead ones, and live
//     absent ones.
package rows
