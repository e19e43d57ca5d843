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
// Exactly once, by default: rows, outputs and positions of finished records
// are committed together every commit interval, in a transaction that is open
// for milliseconds and never while a callback runs. Whatever dies, the tables
// and the outputs (for who reads committed records only) are those of a run in
// which every record was processed once. WithGuarantee chooses AtLeastOnce,
// with exact tables and outputs that leave at once and may repeat, or
// WithoutTransactions, for brokers that have none: a record may then be applied
// again, on a table that has seen it. docs/guarantees.md says what happens when.
//
// What a callback does elsewhere, in a database say, is done again when its
// record is. Its offset makes that repeatable.
//
// # What may change while it runs
//
// Members of a group, at any time: partitions that stay go on, those that
// move wait for the record in hand and its commit. A callback that takes
// longer than the rebalance timeout loses its partition.
//
// Partitions of the inputs: every member looks for new ones, every ten
// seconds. A graph without topics of its own shares them, as soon as all its
// inputs have them. One that keeps a table, or has a loop, ends with a
// *PartitionCountError before it processes any of them: keys have moved to
// where their rows are not. Stop its group before you add partitions.
//
// An input, a joined table or a changelog that is deleted ends Run with a
// kafka.ErrUnknownTopic, one that is created again meanwhile with a
// kafka.ErrTopicChanged; nothing is committed for it any more.
//
// The graph, in a rolling upgrade: members that read another topic or keep
// another table more run all partitions, and the others wait until they are
// upgraded as well. Where neither version has all that the other has, the
// group refuses the one that runs fewer partitions, and Run says what differs.
// Callbacks and outputs may change freely. Compare says what a new graph does
// to its group, and tester.Golden keeps a graph from changing unawares.
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
