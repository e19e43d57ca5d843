// Package processor runs callbacks over the records of topics, key by key,
// with tables that survive crashes.
//
// A group of processors shares the partitions of its inputs. Each partition
// is one task with one goroutine: its records are processed one after the
// other, in order, by callbacks that read and change the group's table and
// emit to other topics.
//
//	n := processor.Persist(Counts) // a handle: Get, Set, Delete at the record's key
//	graph, err := processor.NewGraph("click-counter", n,
//		processor.Input(Clicks, func(ctx *processor.Context, c Click) error {
//			v, _ := n.Get(ctx)
//			n.Set(ctx, v+1)
//			return nil
//		}))
//	p, err := processor.New(client, graph, processor.WithStorage(badgerstore.In(dir)))
//	err = p.Run(ctx)
//
// # Declaring
//
// Verbs declare, nouns are handles; both are edges of a graph. Input runs a
// callback. Output, Persist, Store, Join, Lookup, Loop and Visitor return
// handles that callbacks act through. A handle may be used in any number of
// graphs, but only where it is declared.
//
// # What a callback may count on
//
//   - All that it does takes effect when it returns nil. An error or a panic
//     voids it, and OnError says what becomes of the record.
//   - State reads and emits return no error. What goes wrong sticks to the
//     record and fails it: Context.Failed tells.
//   - It sees its own changes, and those of every record before it in the
//     partition, committed or not. Views and other processes see committed
//     ones only.
//   - A Context is valid until the callback returns.
//
// # What is guaranteed
//
// At least once. Records that are finished are committed every commit
// interval: first their outputs are acknowledged, then the rows that they
// changed, then the offsets. After a crash no record is lost; those of the
// last intervals may be processed a second time, on a table that has seen
// them already. A callback is made repeatable by keeping the last offset in
// its row.
//
// A process that stood still for longer than its session may still send what
// it had handed over, over rows of the partition's next owner. The owner
// notices with its next commit and writes its rows again; where none follows
// the older row stays. Transactions will rule that out.
//
// # Duties of the one who runs it
//
//  1. Topics that the group does not own (inputs, joined and looked up tables,
//     outputs, dead letters) exist before Run: see kafka.Client.EnsureTopics.
//     The group's own (table, changelogs, loop) are created and checked.
//  2. Inputs and joined tables have equal partition counts, and are written
//     with the client's partitioner.
//  3. A graph with tables gets a directory of its own for each process, kept
//     over restarts.
//  4. Run's error is looked at: it is nil only after a stop that drained
//     everything.
package processor
