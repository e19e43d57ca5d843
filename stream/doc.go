// Package stream declares a group's graph by operations on streams and tables:
// map, aggregate, join, count by window. It runs nothing itself: the graph is
// one for processor.New, whose tasks, guarantees, error policies and options
// hold for it.
//
//	b := stream.NewBuilder("page-views")
//	views := stream.From(b, Views)
//	byPage := views.GroupBy(func(_ string, v View) string { return v.Page })
//	byPage.Windowed(window.Tumbling(time.Minute, 10*time.Second)).
//		Count(stream.Named("views-per-minute")).OnClose().To(PerMinute)
//	graph, err := b.Graph()
//	p, err := processor.New(client, graph, processor.WithStorage(badgerstore.In(dir)))
//
// docs/streams.md has an example of each operation, docs/joins.md the joins
// one by one, docs/time.md what time does.
//
// # Builders
//
// A Builder gathers the operations of one group. They are declared in any
// order that the compiler allows, and report nothing: Graph tells all that is
// wrong. It comes last: operations that are declared behind a flow or table
// whose graph was built already belong into a builder of their own.
//
// # Flows, tables, windows
//
// A Flow is records on their way, a Table the last value of each key and the
// changes that make it. Both can be used any number of times, and each use
// sees everything, in order of declaration. A GlobalTable is at hand in whole
// in every process. Windows are results by key and window.
//
// Operations that keep the type are methods, others functions. Functions of
// the user are called by one goroutine a task, so by several at a time, and
// keep nothing between calls but what is safe for that. Those that derive
// tables, join them or group them (MapTable, JoinTables, GroupTable) depend on
// nothing but their arguments: they are called again when a row is read. A
// value that is handed to several operations is the same for all: whoever
// changes what it points to changes it for the others.
//
// # Keys and nulls
//
// Keys are bytes, as strings; the empty key is one. A record without a value
// deletes in a table, and is no value anywhere else: functions are never
// called with it. It passes where key and value stay or only the value
// changes, and is counted and dropped where a key is made of it, and in
// aggregations and joins. A record without a key is dropped and counted where
// a key is needed; left and outer joins have a result for it.
//
// What gathers or joins by key needs each record in the partition of its key.
// An operation that may have changed keys is followed by a repartition topic
// where that is needed, one for all behind the same flow. It has as many
// partitions as topics that are joined with it; if there are none, as
// Partitions says, or as what feeds it. Such a topic cuts the graph into
// subgraphs, each with tasks, and a stream time, of its own.
//
// # Time and late records
//
// Time is the timestamps of records. Stream time is the highest that a task
// has processed, dropped records and rows of tables included; it is committed
// with the positions and never goes back. A window, or what a join waits for,
// is closed when stream time has reached its end plus grace; from then on it
// does not change, and its final result is out. A record that comes later is
// late: it is counted, and written to a topic if one is declared, else logged
// (Late, LateLeft, LateRight).
//
// Results that wait for time are older than the stream time that lets them
// go. An operation behind goes by a time that is as much behind (docs/time.md,
// holds), so that they are not late for it. What is due before a record is
// released before it; suppressed results and records that wait for a table
// follow it.
//
// # Results
//
// An aggregation has a result for each record, by key or by key and window,
// under the highest time of the records in it. Other tables have one where
// something changed: values are compared by their encoding. Nothing is held
// back but by OnClose and Suppress. Results have the keys and times of what
// made them; headers do not follow.
//
// # Names and upgrades
//
// What an operation keeps, a store with its changelog or a repartition topic,
// is found by its name. Named gives one. Otherwise it is made of the source or
// the store before the operation and the operation's kind, with a number where
// that is taken; other parts of the graph do not matter. Two operations
// cannot share a name. processor.Compare says what becomes of a group whose
// graph changes, and tester.Golden notices that one does.
//
// The changelog of a plain table has its rows as they are: a view can read it
// as reka.NewTable(reka.ChangelogTopic(group, name), codec). The rows of
// windows, joins and what is held back have layouts of their own.
//
// # Where results differ from Kafka Streams
//
// On purpose, and listed with reasons in docs/coming-from-kafka-streams.md:
// time is the task's and is not forgotten; everything uses one test of what is
// closed; a closed session is not reopened and a closed record is met by nobody;
// results without a partner come when the window closes and not before;
// sliding windows hold what their definition says; a null in a window is no
// value; tables say only what changed.
//
// # Concurrency
//
// A Builder and what is made by it belong to one goroutine, until Graph
// returns. The graph may be run by any number of processors.
//
// # How operations become a graph
//
// This part is for who changes the package.
//
// An operation is a node, without types, and a port, with them. Nodes are made
// parents first, so their order is topological. A node says what it needs of
// its subgraph: inputs, joined tables, stores, outputs, lookups, counters, a
// clock, and what waits for time; each gets its number when the graph is
// compiled, and closures read it from there. A port is a list of functions: an
// operation adds one to the port of what is before it, and hands its results
// to those in its own. So a record goes through a subgraph by plain calls,
// depth first, in one callback of package processor, and takes effect in whole
// or not at all.
//
// Nodes that are connected are one subgraph; a repartition topic connects
// nothing. Each subgraph becomes a processor.Part, named after its first
// source, and processor.Assemble makes the graph of them.
//
// What a node has of state is shared by all tasks, so it has none: scratch
// memory is in exec, one a task. Keys are handed on without a copy and are
// valid until the record's handler returns; what keeps one copies it.
//
// Time: a node whose results wait adds a hold; the clock of a node is stream
// time less the holds on the longest way to it. What waits is a task.Timed, an
// ordered part of a store (a timeline), and steps are built in order of the
// nodes: for each, first its clock is raised, then what is due is released, so
// what goes on reaches nodes behind before their clocks move. Nodes behind
// something that is released after the record have their steps there. Expiry
// is last, and lazy: nothing may depend on whether it has run.
//
// Rows of an operation's store begin with a byte for their kind; kinds that
// are timelines go on with 8 bytes of time, big-endian. The layouts stand
// where they are used:
//
//	plain tables                   table.go: key, value, time of the result
//	versioned tables               versions.go
//	tumbling and hopping windows   window_time.go
//	panes of hopping windows       window_pane.go
//	sliding windows                sliding.go
//	sessions                       session.go
//	what is held back              suppress_rows.go, suppress_final.go
//	joins of streams               streamjoin_rows.go
//	records that wait for a table  streamtable.go
//	joins by foreign key           foreign.go, subscription.go
//	changes on their way           regroup.go
//
// # Invariants
//
//   - A record changes the rows that it is about before results of it go on,
//     so that what reads a table behind sees it as it is after the change.
//   - What is accepted, final, late and expired is decided by window.Windows,
//     or by one method of a join's side, against the operation's clock.
//   - A final result is what is taken off a timeline: what is no longer there
//     was given out. Nothing else remembers it.
//   - Names and the order of stores, outputs and steps follow from the
//     declarations alone, never from maps.
package stream
