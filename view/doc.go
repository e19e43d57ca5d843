// Package view keeps a local copy of a whole table and answers reads from it.
//
//	v, err := view.New(client, Counts, view.WithStorage(badgerstore.In(dir)))
//	…
//	go v.Run(ctx)
//	if err := v.WaitReady(ctx); err != nil { … }
//	n, ok, err := v.Get("alice")
//
// A view follows all partitions of the table's topic, read-committed, into its
// storage, and resumes there after a restart. Its states:
//
//	connecting   the brokers, or the topic, are not there
//	restoring    some partition is not complete yet
//	ready        complete as of the last moment at which it was asked
//
// Reads are refused with ErrNotReady until the copy was complete once in this
// run. From then on they are answered, also while the brokers are away, with
// what the copy holds; State, Lag and Stats tell how old that may be. Should
// the copy have to be built anew (the topic was deleted and created again, or
// shortened beyond what was read), reads are refused until it is complete
// again. WithLocalFirst and Stale loosen this.
//
// "No such row", "not ready" and "failed" are different answers: false, an
// error that is ErrNotReady, and any other error.
//
// All methods may be called from any number of goroutines. Scans read a
// consistent snapshot of each partition and hold it only while the loop runs.
//
// Windows is the view of a table of windows: Fetch reads the rows of a key
// between two times.
//
// A storage can hold views of any number of tables, beside the state of
// processors, but each table by one view at a time: the Run of a second one
// returns an error that is storage.ErrBusy. Share the view instead.
package view
