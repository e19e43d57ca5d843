// Package badgerstore keeps state on disk, in one Badger for a process and a
// directory. It is the only package that knows Badger.
//
// # The directory
//
//	FORMAT     says whose the directory is, and its version
//	PROCESS    the process id: made once, and kept for as long as the directory is
//	LOCK       locked while the store is open
//	DAMAGED    a reader met damage: rows are set aside at the next open
//	rows/      Badger's files; rows.damaged-<time>/ were set aside, and are the
//	           operator's to look at and remove
//
// The directory and rows/ have mode 0700. A directory that holds anything else
// is not touched.
//
// # States
//
//	directory: closed → checked → open → closed
//	           checked → set aside → open (once for an open)
//	           open → damaged (all calls fail) → closed → set aside → open
//
// Opening and closing a directory exclude each other, so an open waits for the
// close that it follows.
//
// # Invariants, and what they rest on
//
//  1. Rows are durable in the order in which they were written: every request
//     to Badger is synced before the next one, and before a memtable is full
//     (SyncWrites). So a checkpoint, written last, never is ahead of its rows.
//     A small Apply is one transaction, a large one many requests of rows that
//     each stand for themselves.
//  2. Badger sees no file that was not checked. It ends the process over a
//     table with a broken end, and takes rows of a broken block for absent. So
//     an open reads all tables once (about 1 s a GiB) and checks logs and
//     manifest; what is broken is set aside. Only the newest log may end in the
//     middle of an entry.
//  3. Before every 4 MiB there is a look at the free space, with room for what
//     Badger may do until the next one: it writes through memory maps, where a
//     full disk ends the process. Too little is storage.ErrFull.
//  4. Nothing is in the value log: no value is longer than 512 KiB, longer ones
//     are cut in pieces, which are listed before they are written and until
//     they are gone. So its files can be lost, and are never collected.
//  5. Versions that a snapshot reads, or that are being written, are not
//     compacted; all others may be.
//  6. Every call that reaches Badger holds db.gate for reading, for one batch or
//     one step of a scan at most, and close holds it for writing. So close waits
//     for a bounded time, and ends snapshots that nobody released. Calls inside
//     the gate never enter it again.
//  7. A panic of Badger's, and a fault in a mapped file, is storage.ErrDamaged.
//
// # Costs
//
// A store takes up to 80 MiB for memtables, however many tables it has, 20
// goroutines and 40 file descriptors while it is small; one descriptor and one
// memory map more for each table of Badger's, of 8 MiB and more. On disk it
// takes about 100 MiB more than a small multiple of the live rows.
package badgerstore
