package processor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// An aborted transaction is written again as it was: whatever the reason, no
// callback runs twice.
func TestAbortedTransactionIsWrittenAgainWithoutACallback(t *testing.T) {
	gone := errors.New("connection reset by peer")
	for name, f := range map[string]tester.Fault{
		"offsets refused":              {Op: tester.OpTxnOffsets, Times: 3, Do: tester.Error(kafka.ErrAbortable)},
		"group not added":              {Op: tester.OpAddOffsets, Times: 2, Do: tester.Error(kafka.ErrAbortable)},
		"partition not added":          {Op: tester.OpAddPartitions, Topic: "g-table", Times: 2, Do: tester.Error(kafka.ErrAbortable)},
		"output not answered":          {Op: tester.OpProduce, Topic: "echoes", Do: tester.ErrorAfter(gone)},
		"output lost":                  {Op: tester.OpProduce, Topic: "echoes", Times: 2, Do: tester.Lost},
		"rows late":                    {Op: tester.OpProduce, Topic: "g-table", Do: tester.Late(300 * time.Millisecond)},
		"offsets lost":                 {Op: tester.OpTxnOffsets, Times: 3, Do: tester.Lost},
		"commit refused":               {Op: tester.OpEndTxn, Times: 2, Do: tester.Error(kafka.ErrAbortable)},
		"fenced by nobody":             {Op: tester.OpTxnOffsets, Do: tester.Error(kafka.ErrFenced)},
		"fenced by nobody at the end":  {Op: tester.OpEndTxn, Do: tester.Error(kafka.ErrFenced)},
		"timed out":                    {Op: tester.OpTxnOffsets, Do: tester.Delay(12 * time.Second)},
		"timed out again and again":    {Op: tester.OpProduce, Topic: "echoes", Times: 3, Do: tester.Delay(12 * time.Second)},
		"between two generations":      {Op: tester.OpTxnOffsets, Times: 2, Do: tester.Error(kafka.ErrRebalanceInProgress)},
		"markers of the one before":    {Op: tester.OpMarker, Times: 6, Do: tester.Delay(3 * time.Second)},
		"the epoch cannot be renewed":  {Op: tester.OpInitProducer, Times: 2, Do: tester.ErrorAfter(gone)},
		"nothing but a slow end":       {Op: tester.OpEndTxn, Times: 5, Do: tester.Delay(time.Second)},
		"the coordinator does not say": {Op: tester.OpEndTxn, Times: 4, Do: tester.ErrorAfter(gone)},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExact(t, 2)
			x.start("app", processor.WithTransactionTimeout(10*time.Second))
			x.sendMany(8)
			x.doneWithin(time.Second)
			x.tt.Fail(f)
			if name == "the epoch cannot be renewed" {
				x.fail("app", tester.OpTxnOffsets, tester.Lost)
			}
			for range 4 {
				x.sendMany(8)
				x.tt.Advance(time.Second)
			}
			x.doneWithin(2 * time.Minute)
			x.check()
			x.alive("app")
			equal(t, "callbacks", x.count("app"), 40)
		})
	}
}

// The answer to the end of a transaction is lost, whether the broker carried
// it out or not. The question is asked again, and if that does not help, the
// mark answers it. A hundred inputs have a hundred outputs.
func TestEndOfUnknownOutcomeIsWrittenOnce(t *testing.T) {
	gone := errors.New("connection reset by peer")
	for name, do := range map[string]tester.Action{
		"executed": tester.ErrorAfter(gone), "not executed": tester.Lost, "executed later": tester.Late(700 * time.Millisecond),
		"executed much later": tester.Late(20 * time.Second),
	} {
		for _, asked := range []int{1, 3, 100_000} { // more often than there is patience for
			t.Run(fmt.Sprintf("%s, asked %d times", name, asked), func(t *testing.T) {
				x := newExact(t, 1)
				x.start("app", processor.WithTransactionTimeout(5*time.Second), processor.WithStopTimeout(time.Second))
				x.tt.Settle()
				x.fail("app", tester.OpEndTxn, do, times(asked))
				x.sendMany(100)
				x.tt.Advance(time.Second)
				if asked > 3 { // the coordinator cannot be reached for a while
					x.tt.Advance(20 * time.Second)
					x.start("next", processor.WithTransactionTimeout(5*time.Second))
					if err := x.nodes["app"].Stop(); err != nil {
						t.Logf("stop: %v", err)
					}
					delete(x.nodes, "app")
				}
				x.doneWithin(time.Minute)
				x.check()
				if asked <= 3 {
					equal(t, "callbacks", x.count("app"), 100)
				}
			})
		}
	}
}

// One broken connection to the coordinators does not end commits.
func TestCommitsGoOnAfterTheCoordinatorWasAway(t *testing.T) {
	for guarantee, g := range guarantees {
		t.Run(guarantee, func(t *testing.T) {
			x := newExact(t, 4)
			x.start("app", processor.WithGuarantee(g))
			x.sendMany(16)
			x.doneWithin(time.Second)
			for _, op := range []tester.Op{tester.OpAddOffsets, tester.OpTxnOffsets, tester.OpEndTxn, tester.OpInitProducer} {
				x.fail("app", op, tester.Lost, times(2))
			}
			x.fail("app", tester.OpCommit, tester.Delay(3*time.Second))
			for range 10 {
				x.sendMany(16)
				x.tt.Advance(time.Second)
			}
			x.doneWithin(5 * time.Second)
			x.check()
			equal(t, "callbacks", x.count("app"), 176)
		})
	}
}

// A transaction is open while results are written, never while callbacks run:
// a batch of records that takes longer than the transaction timeout, or a
// single callback that does, is nothing special.
func TestCallbacksMayOutlastTheTransactionTimeout(t *testing.T) {
	for _, each := range []time.Duration{200 * time.Millisecond, 15 * time.Second} {
		t.Run(each.String(), func(t *testing.T) {
			x := newExact(t, 1)
			fenced := 0
			x.tt.Hook(func(c tester.Call) tester.Action {
				if c.Op == tester.OpInitProducer {
					fenced++
				}
				return tester.Proceed
			})
			x.hold = func(ctx *processor.Context, _ int64) error {
				return x.nodes["app"].Client().Driver().Clock().Sleep(ctx, each)
			}
			x.start("app", processor.WithTransactionTimeout(10*time.Second))
			x.tt.Settle()
			begun := fenced
			n := 200
			if each > time.Second {
				n = 3
			}
			x.sendMany(n)
			half := time.Duration(n) * each / 2
			x.tt.Advance(half)
			if at := x.tt.Committed("g", "numbers", 0); at < int64(n)/2-2 {
				t.Errorf("after half of the time %d of %d are committed", at, n)
			}
			x.doneWithin(half + time.Second)
			x.check()
			equal(t, "callbacks", x.count("app"), n)
			equal(t, "epochs of the producer", fenced, begun)
		})
	}
}

// Offsets with gaps, as control records leave them, are no loss.
func TestGapsInATransactionalInputAreNoLoss(t *testing.T) {
	x := newExact(t, 1)
	x.start("app")
	x.send("k", "k", "k")
	x.tt.WriteControl("numbers", 0)
	x.send("k", "k")
	x.tt.WriteControl("numbers", 0)
	x.send("k")
	x.tt.Advance(time.Second)
	equal(t, "committed", x.tt.Committed("g", "numbers", 0), 8)
	equal(t, "callbacks", x.count("app"), 6)
	equal(t, "outputs", join(tester.Output(x.tt, echoesText).Values()), "1 2 3 4 5 6")
	x.alive("app")
}

// Nothing is taken for an epoch that only skips what nobody reads: no
// transaction of its own.
func TestQuietProcessorWritesNoTransactions(t *testing.T) {
	x := newExact(t, 2)
	x.start("app")
	x.sendMany(8)
	x.doneWithin(time.Second)
	before := x.tt.Calls()[tester.OpEndTxn]
	x.tt.Advance(time.Hour)
	equal(t, "transactions of an hour without input", x.tt.Calls()[tester.OpEndTxn], before)
	x.check()
}
