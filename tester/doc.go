// Package tester runs emitters, processors and views in a test without a
// broker: on a Kafka in memory, with partitions, consumer groups and a clock
// that only the test moves. The code under test is the code that runs in
// production, on another kafka.Driver.
//
//	tt := tester.New(t)
//	clicks := tester.Input(tt, Clicks)
//	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
//		p, err := processor.New(i.Client(), graph, processor.WithStorage(i.Storage()))
//		return []reka.Runner{p}, err
//	})
//	clicks.Send("alice", Click{})
//	app.Crash()
//	app.Restart()
//	n, ok := tester.Table(tt, Counts).Get("alice")
//
// Whatever reads settles first: it lets everything happen that can happen
// without time passing. Advance moves the clock through all timers that fall
// due. Crash, Pause, Fail, Hook, Rebalance, Expel and Truncate make trouble. A
// callback that must wait for the test waits at a Gate.
//
// A test gives the same result on every run, the order of the records in
// each partition included, as long as its callbacks do. It works inside a
// testing/synctest bubble and without one.
//
// # How it works
//
// The engine counts its running goroutines (package internal/work). One
// goroutine of the tester, the pump, acts only while that count is zero, and
// does one thing at a time, always the first of:
//
//  1. deliver to a follower all that waits for it, within its budget; the
//     lowest topic, partition and age of the follower first;
//  2. write one marker of a transaction that was decided: in order of the
//     decisions, in one transaction by topic and partition, groups last;
//  3. one step of a consumer group, by name of the group: hand over one
//     answer or notice, or complete a join;
//  4. fire a timer that is due by the virtual clock;
//  5. fire the Linger that was armed first: nothing more is coming;
//  6. if Advance asked for it, move the clock to the next timer.
//
// When nothing is left the world has settled. Producing and all requests but
// those of groups take effect at once, in the goroutine that makes them. What
// a transaction waits for (markers of the one before, pending offsets) it
// waits for without time passing.
//
// The pump acts while the test is inside Settle, or anything that settles.
// Between such calls the world is held, so that what the test does next does
// not race with it; but when the test's own goroutine waits for something (the
// result of an emit, a view that gets ready) the pump goes on. It finds that
// out by the goroutine's state, as it does for the goroutines that run
// Runners, which count for nobody: they are taken to run from Start until they
// are first seen waiting.
//
// # States
//
// An incarnation, one life of an instance, is alive, perhaps paused, and ends
// closed or dead. A group is Empty, PreparingRebalance, CompletingRebalance
// or Stable, as on a broker. A transactional id goes from Empty to Ongoing with
// the first partition or group that is added; an EndTxn, a timeout or an
// InitProducerID makes that PrepareCommit or PrepareAbort, the last marker
// CompleteCommit or CompleteAbort. A timer is armed, fired or stopped.
//
// # Invariants
//
//   - No callback of the engine runs while another one does, or while a
//     counted goroutine runs, but for Done, which Produce calls itself.
//   - Callbacks are called without locks. world.mu guards all state and is
//     held for moments only; fetcher.delivering is taken before it.
//   - Once an incarnation is dead nothing that it does reaches a topic, a
//     group or its storage, but for requests of transactions that were on
//     their way (Delay, Late), and no callback but a Done with ErrClosed and
//     hurried timers reaches it.
//   - The leader epochs of a log grow from its start to its end, and no batch
//     has records of two.
//   - Who wakes a parked goroutine counts it as running before.
//   - Settling never moves the clock. Only Advance does, and Stop, whose
//     instance may need time to end.
//   - The session of a live member never expires, however far the clock moves.
package tester
