// Package storage keeps table rows: the contract of a state store, and an
// implementation in memory. Package badgerstore keeps rows on disk, package
// storagetest has the tests that every implementation passes.
//
// # States
//
//	store:    closed → open (users ≥ 1) → closed; open → damaged → closed
//	table:    free → held → free
//	snapshot: open → released
//
// A Builder's store opens with its first user and closes with its last one.
// A store in which damage was found answers ErrDamaged to everything until
// all have closed it; the next Open starts empty, with the old process id.
//
// # Invariants
//
//  1. All rows that were given to Apply before, or with, the last checkpoint
//     are there, or are overwritten by later ones. This holds after a crash at
//     any moment. Rows given later may be there in part.
//  2. A row is there as a whole or not at all.
//  3. A table has one holder. What a former holder still has going ends before
//     the next one is let in.
//  4. A snapshot does not change and does not stop writers. It ends with
//     Release, or with the store; nobody waits for one that was forgotten.
//  5. Rows are in the byte order of their keys, whatever the keys are.
//  6. Nothing is deleted but by Apply and Clear. A directory that cannot be
//     used is left as it is, and damaged rows are kept beside.
package storage
