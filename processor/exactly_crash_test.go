package processor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// Records that were fetched and not processed are not committed: the process
// is killed while its callback is at the eleventh of five hundred.
func TestFetchedRecordsAreNotCommittedBeforeTheyAreProcessed(t *testing.T) {
	for guarantee, g := range guarantees {
		t.Run(guarantee, func(t *testing.T) {
			x := newExact(t, 1)
			gate := x.tt.NewGate()
			x.hold = func(ctx *processor.Context, v int64) error {
				if v == 11 {
					return gate.Wait(ctx)
				}
				return nil
			}
			app := x.start("app", processor.WithGuarantee(g))
			for range 500 {
				x.send("k")
			}
			x.tt.Advance(time.Second)
			equal(t, "callbacks that wait", gate.Waiting(), 1)
			if at := x.tt.Committed("g", "numbers", 0); at > 10 {
				t.Errorf("committed %d", at)
			}
			app.Crash()
			gate.Open()
			app.Restart()
			x.doneWithin(time.Minute)
			if g == processor.ExactlyOnce {
				x.check()
			}
			got, _ := tester.Table(x.tt, sums).Get("k")
			equal(t, "row", got, 500)
		})
	}
}

// A processor that is stopped in the middle commits what it finished, and
// the next start goes on from there.
func TestStopCommitsWhatIsFinishedAndNoMore(t *testing.T) {
	x := newExact(t, 1)
	gate := x.tt.NewGate()
	x.hold = func(_ *processor.Context, v int64) error {
		if v == 104 {
			return gate.Wait(t.Context())
		}
		return nil
	}
	app := x.start("app")
	for range 119 {
		x.send("k")
	}
	x.tt.Settle()
	x.tt.Fail(tester.Fault{Op: tester.OpLeave, Do: tester.Delay(time.Millisecond)})
	gate.Open()
	if err := app.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	at := x.tt.Committed("g", "numbers", 0)
	equal(t, "committed and called", at, int64(x.count("app")))
	x.hold = nil
	app.Restart()
	x.doneWithin(time.Second)
	x.check()
	equal(t, "callbacks", x.count("app"), 119)
}

// The process is killed inside a transaction, at any request of it, with its
// rows flushed as soon as they may be. What it did not commit is not on its
// disk when it comes back.
func TestKilledInsideATransactionLeavesNoRowsBehind(t *testing.T) {
	for _, op := range []tester.Op{
		tester.OpInitProducer, tester.OpAddPartitions, tester.OpProduce, tester.OpAddOffsets, tester.OpTxnOffsets, tester.OpEndTxn, tester.OpApply,
	} {
		for when, act := range map[string]tester.Action{"before": tester.CrashBefore, "within": tester.CrashWithin, "after": tester.CrashAfter} {
			for _, empty := range []bool{false, true} {
				t.Run(fmt.Sprint(op, " ", when, " empty ", empty), func(t *testing.T) {
					x := newExact(t, 1)
					app := x.start("app")
					x.send("k", "k", "k")
					x.doneWithin(time.Second)
					x.fail("app", op, act)
					if op == tester.OpInitProducer {
						x.fail("app", tester.OpTxnOffsets, tester.Lost)
					}
					x.send("k", "k")
					x.tt.Advance(time.Second)
					if !app.Crashed() {
						t.Fatal("it was not killed")
					}
					if empty {
						app.format()
					}
					app.Restart()
					x.doneWithin(15 * time.Second)
					x.check()
				})
			}
		}
	}
}

// A process that is killed inside a transaction and comes back with its disk
// goes on at once: nothing waits for a session or for a transaction's timeout.
// Another one takes over when the session is over, within three seconds.
func TestNobodyWaitsForTheTransactionOfADeadProcess(t *testing.T) {
	for _, op := range []tester.Op{tester.OpAddPartitions, tester.OpProduce, tester.OpAddOffsets, tester.OpTxnOffsets, tester.OpEndTxn} {
		for _, again := range []bool{true, false} {
			t.Run(fmt.Sprint("killed at ", op, ", restarted ", again), func(t *testing.T) {
				x := newExact(t, 1)
				app := x.start("app", processor.WithTransactionTimeout(10*time.Minute))
				x.send("k", "k", "k")
				x.doneWithin(time.Second)
				if !again {
					x.start("other", processor.WithTransactionTimeout(10*time.Minute))
					x.tt.Advance(time.Second)
				}
				x.fail("app", op, tester.CrashAfter)
				x.send("k", "k")
				x.tt.Advance(time.Second)
				if !app.Crashed() && again {
					t.Fatal("it was not killed")
				}
				if again {
					app.Restart()
					x.doneWithin(2 * time.Second)
				} else {
					x.doneWithin(13 * time.Second)
					x.tt.Advance(13 * time.Second) // all may have been committed before it died
				}
				x.check()
			})
		}
	}
}

// Nothing that a process has is needed: all are killed at once, in the middle
// of their transactions, and start with empty disks under new names.
func TestAllProcessesKilledAndStartedWithEmptyDisks(t *testing.T) {
	for _, pause := range []time.Duration{0, 5 * time.Second, time.Minute} {
		t.Run(pause.String(), func(t *testing.T) {
			x := newExact(t, 4)
			for _, name := range []string{"a", "b", "c"} {
				x.start(name)
			}
			x.sendMany(32)
			x.doneWithin(5 * time.Second)
			end := x.during(tester.OpEndTxn, tester.Delay(time.Hour))
			x.sendMany(32)
			x.tt.Advance(time.Second)
			for _, n := range x.nodes {
				n.Crash()
			}
			end()
			x.tt.Advance(pause)
			for _, n := range x.nodes {
				n.format()
				n.Restart()
			}
			x.sendMany(32)
			x.tt.Advance(3 * time.Hour) // what is under way arrives
			x.check()
			x.alive("a", "b", "c")
		})
	}
}

// All brokers are away while a transaction is open, and the processor is
// stopped: it ends within its stop timeout, with an error, and leaves nothing
// behind but what the next start settles.
func TestStopWhileTheBrokersAreAwayEndsInTime(t *testing.T) {
	for _, op := range []tester.Op{tester.OpProduce, tester.OpTxnOffsets, tester.OpEndTxn} {
		t.Run(string(op), func(t *testing.T) {
			x := newExact(t, 1)
			app := x.start("app", processor.WithStopTimeout(5*time.Second))
			x.send("k", "k", "k")
			x.doneWithin(time.Second)
			x.fail("app", op, tester.Delay(time.Hour), times(-1))
			x.send("k", "k")
			x.tt.Advance(time.Second)
			before := x.tt.Now()
			if err := app.Stop(); !errors.Is(err, reka.ErrStopTimeout) {
				t.Errorf("stop: %v", err)
			}
			if took := x.tt.Now().Sub(before); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			next := x.start("next")
			x.nodes = map[string]*exactNode{"next": next}
			x.tt.Advance(2 * time.Hour)
			x.check()
		})
	}
}

// A produce fails inside a transaction; the producer is good for what comes.
func TestProducerIsUsableAfterAFailedTransaction(t *testing.T) {
	gone := errors.New("connection reset by peer")
	for name, do := range map[string]tester.Action{
		"not answered": tester.ErrorAfter(gone), "lost": tester.Lost, "late": tester.Late(2 * time.Second), "slow": tester.Delay(2 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			x := newExact(t, 1)
			x.start("app")
			x.send("k")
			x.doneWithin(time.Second)
			x.fail("app", tester.OpProduce, do)
			x.send("k")
			x.tt.Settle()
			for range 10 {
				x.send("k")
			}
			x.doneWithin(10 * time.Second)
			x.check()
			equal(t, "callbacks", x.count("app"), 12)
		})
	}
}
