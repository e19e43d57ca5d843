package processor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// The tests of the trace files are schedules on which a weaker rule fails:
// short ones, found by an exhaustive search. Each one says what happens.

// The end of a transaction is asked for, the answer is late, and the rows may
// be flushed at any time. Whatever the process knows when it dies, its disk
// holds nothing that is not committed.
func TestRowsOfATransactionWhoseEndIsUnknownAreNotFlushed(t *testing.T) {
	gone := errors.New("connection reset by peer")
	for name, do := range map[string]tester.Action{
		"executed": tester.ErrorAfter(gone), "not executed": tester.Lost, "on its way": tester.Delay(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			x := newExact(t, 1)
			app := x.start("app", processor.WithTransactionTimeout(10*time.Second))
			x.send("k", "k", "k")
			x.doneWithin(time.Second)
			x.tt.Advance(time.Second)
			end := x.during(tester.OpEndTxn, do)
			x.send("k", "k")
			x.tt.Advance(2 * time.Second)
			app.Crash()
			end()
			app.Restart()
			x.doneWithin(15 * time.Second)
			x.check()
			x.send("k")
			x.doneWithin(time.Second)
			x.check()
		})
	}
}

// An epoch that moves no offset (a visit) is under way when the answer to the
// end of its transaction is lost for good: whether it is committed, only its
// mark tells.
func TestEpochThatMovesNoOffsetIsJudgedByItsMark(t *testing.T) {
	x := newExact(t, 1)
	app := x.start("app", processor.WithTransactionTimeout(time.Second))
	x.send("k", "k", "k")
	x.doneWithin(time.Second)
	for _, do := range []tester.Action{tester.Lost, tester.ErrorAfter(errGone), tester.Late(500 * time.Millisecond)} {
		before := x.tt.Calls()[tester.OpEndTxn]
		end := x.during(tester.OpEndTxn, do)
		x.touched["k"]++
		done := x.visit(func(ctx context.Context) error {
			_, err := app.touch.Run(ctx, app.p, touchBy)
			return err
		})
		x.advanceUntil("the end of a transaction", func() bool { return x.tt.Calls()[tester.OpEndTxn] > before })
		x.tt.Advance(3 * time.Second)
		end()
		x.advanceUntil("the end of the visit", done)
		x.send("k")
		x.doneWithin(time.Second)
		x.check()
	}
	equal(t, "touches that readers see", tester.Output(x.tt, touches).Len(), 3)
}

// A commit is asked for twice, and the first request arrives when the next
// transaction is half written: that one must not end with it.
func TestLateEndDoesNotEndTheNextTransaction(t *testing.T) {
	for _, op := range []tester.Op{tester.OpProduce, tester.OpAddOffsets, tester.OpTxnOffsets} {
		t.Run("while the next one is at "+string(op), func(t *testing.T) {
			x := newExact(t, 1)
			app := x.start("app")
			x.tt.Settle()
			x.fail("app", tester.OpEndTxn, tester.Late(time.Second))
			x.send("k")
			x.tt.Advance(500 * time.Millisecond)
			equal(t, "committed", x.tt.Committed("g", "numbers", 0), 1)
			x.fail("app", op, tester.Delay(3*time.Second))
			x.send("k")
			x.tt.Advance(time.Second) // the late one arrives
			equal(t, "committed of a transaction that nobody ended", x.tt.Committed("g", "numbers", 0), 1)
			equal(t, "outputs of it", tester.Output(x.tt, echoesText).Len(), 1)
			app.Crash()
			app.Restart()
			x.doneWithin(10 * time.Second)
			x.tt.Advance(10 * time.Second)
			x.check()
		})
	}
}

// A request of an aborted transaction arrives in the next one.
func TestLateRequestOfAnAbortedTransactionDoesNotJoinTheNext(t *testing.T) {
	for _, op := range []tester.Op{tester.OpAddPartitions, tester.OpProduce, tester.OpAddOffsets, tester.OpTxnOffsets} {
		for _, next := range []tester.Op{tester.OpProduce, tester.OpTxnOffsets, tester.OpEndTxn} {
			t.Run(string(op)+" late, the next one at "+string(next), func(t *testing.T) {
				x := newExact(t, 1)
				x.start("app")
				x.send("k")
				x.doneWithin(time.Second)
				x.fail("app", op, tester.Late(time.Second))
				x.send("k")
				x.tt.Advance(500 * time.Millisecond)
				x.fail("app", next, tester.Delay(2*time.Second))
				x.send("k")
				x.tt.Advance(10 * time.Second)
				x.check()
				equal(t, "callbacks", x.count("app"), 3)
			})
		}
	}
}

// A fence order of long ago arrives between a commit whose answer is lost and
// its repetition. The writer is fenced and cannot ask any more; still it does
// not write again what is committed, and does not lose what is not.
func TestFenceOrderOfLongAgoAfterALostAnswer(t *testing.T) {
	for name, do := range map[string]tester.Action{"committed": tester.ErrorAfter(errGone), "not committed": tester.Lost} {
		for _, stale := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", stale", false: ""}[stale], func(t *testing.T) {
				x := newExact(t, 1)
				id := x.transactions()
				x.start("app")
				x.start("other")
				x.send("k", "k", "k")
				x.doneWithin(time.Second)
				x.tt.Fail(tester.Fault{Op: tester.OpEndTxn, Do: do})
				x.tt.Fail(tester.Fault{Op: tester.OpEndTxn, Nth: 2, Do: tester.Delay(time.Second)})
				x.send("k")
				x.tt.Settle()
				for range 2 { // the first one aborts what is open
					_ = x.tt.Initialise(id(x.owner()), stale) // what it answers, nobody hears
					x.tt.Settle()
				}
				x.tt.Advance(time.Second)
				x.doneWithin(15 * time.Second)
				x.check()
				x.alive("app", "other")
				equal(t, "callbacks", x.count("app")+x.count("other"), 4)
			})
		}
	}
}

// owner returns the instance whose callbacks ran last in a world of one
// partition.
func (x *exact) owner() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.last
}

// The broker aborts the transaction of a writer that lives, by its timeout.
// That looks like being fenced, and is not.
func TestTransactionTimeoutOfALiveWriter(t *testing.T) {
	for _, op := range []tester.Op{tester.OpAddPartitions, tester.OpProduce, tester.OpAddOffsets, tester.OpTxnOffsets, tester.OpEndTxn} {
		t.Run(string(op), func(t *testing.T) {
			x := newExact(t, 2)
			app := x.start("app", processor.WithTransactionTimeout(time.Second))
			x.sendMany(8)
			x.doneWithin(5 * time.Second)
			x.fail("app", op, tester.Delay(1500*time.Millisecond))
			x.sendMany(8)
			x.tt.Settle()
			app.Pause() // so that it cannot give up before
			x.tt.Advance(1200 * time.Millisecond)
			app.Resume()
			x.doneWithin(10 * time.Second)
			x.check()
			x.alive("app")
			equal(t, "callbacks", x.count("app"), 16)
		})
	}
}

// Somebody else initialises the id of a live writer, at any moment of its
// transaction, once or twice. It takes the id back and goes on.
func TestIntruderOnALiveWritersId(t *testing.T) {
	for _, op := range []tester.Op{tester.OpInitProducer, tester.OpAddPartitions, tester.OpProduce, tester.OpAddOffsets, tester.OpTxnOffsets, tester.OpEndTxn} {
		for _, how := range []struct {
			name  string
			stale []bool
		}{{"once", []bool{false}}, {"twice", []bool{false, false}}, {"with a stale epoch", []bool{true, true}}, {"for long", make([]bool, 8)}} {
			t.Run(string(op)+" "+how.name, func(t *testing.T) {
				x := newExact(t, 1)
				id := x.transactions()
				x.start("app")
				x.send("k", "k", "k")
				x.doneWithin(time.Second)
				if op == tester.OpInitProducer {
					x.fail("app", tester.OpTxnOffsets, tester.Lost)
				}
				x.fail("app", op, tester.Delay(500*time.Millisecond))
				x.send("k", "k")
				x.tt.Settle()
				for _, stale := range how.stale {
					err := x.tt.Initialise(id("app"), stale)
					if errors.Is(err, kafka.ErrClosed) {
						t.Fatal(err)
					}
					x.tt.Advance(300 * time.Millisecond)
				}
				x.doneWithin(10 * time.Second)
				x.check()
				x.alive("app")
				equal(t, "callbacks", x.count("app"), 5)
			})
		}
	}
}
