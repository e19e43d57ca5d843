package processor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// What a failed record emitted before it failed appears under no policy and
// no guarantee.
func TestOutputsOfAFailedRecordNeverAppear(t *testing.T) {
	policies := map[string]processor.Policy{
		"fail": processor.Fail, "skip": processor.SkipAndCount, "dead letters": processor.DeadLetters("dead"),
		"retry, then skip": processor.Retry(3, time.Millisecond, processor.SkipAndCount),
	}
	for guarantee, g := range guarantees {
		for policy, p := range policies {
			for _, bad := range []int64{-1, -999} { // an error, a panic
				t.Run(fmt.Sprint(guarantee, " ", policy, " ", bad), func(t *testing.T) {
					tt := policyWorld(t)
					in := tester.Input(tt, numbers)
					app := run(tt, "app", adder(processor.OnError(processor.Process, p)), processor.WithGuarantee(g))
					for _, n := range []int64{1, bad, 2} {
						in.Send("a", n)
					}
					tt.Advance(time.Minute)
					outputs, row := "1 2", int64(3)
					if err := app.Err(); policy == "fail" {
						outputs, row = "1", 1
						if err == nil || !strings.Contains(err.Error(), "numbers/0@1") {
							t.Errorf("ended with %v", err)
						}
					} else if err != nil {
						t.Errorf("ended with %v", err)
					}
					equal(t, "outputs", join(tester.Output(tt, echoes).Values()), outputs)
					got, _ := tester.Table(tt, sums).Get("a")
					equal(t, "row", got, row)
				})
			}
		}
	}
}

// A dead letter is an output like any other: it is there once, with the
// position that covers its record, or not at all.
func TestDeadLettersArePartOfTheTransaction(t *testing.T) {
	for name, act := range map[string]tester.Action{"before": tester.CrashBefore, "after": tester.CrashAfter} {
		t.Run(name, func(t *testing.T) {
			tt := policyWorld(t)
			in := tester.Input(tt, numbers)
			app := run(tt, "app", adder(processor.OnError(processor.Process, processor.DeadLetters("dead"))))
			tt.Settle()
			tt.Fail(tester.Fault{Op: tester.OpEndTxn, Do: act})
			in.Send("a", 1)
			in.Send("a", -1)
			tt.Advance(time.Second)
			if !app.Crashed() {
				t.Fatal("no transaction was ended")
			}
			if name == "before" {
				equal(t, "dead letters of an open transaction", tester.Output(tt, dead).Len(), 0)
				equal(t, "committed", tt.Committed("g", "numbers", 0), 0)
			}
			app.Restart()
			tt.Advance(time.Minute)
			equal(t, "dead letters", tester.Output(tt, dead).Len(), 1)
			equal(t, "outputs", join(tester.Output(tt, echoes).Values()), "1")
			equal(t, "committed", tt.Committed("g", "numbers", 0), 2)
		})
	}
}

// An output that is refused for good takes its own task's epoch out of the
// transaction; what the other tasks did is committed all the same.
func TestRefusedOutputTakesOutOnlyItsOwnTask(t *testing.T) {
	x := newExact(t, 2)
	app := x.start("app")
	x.sendMany(8)
	x.tt.Settle()
	one := int32(1)
	x.tt.Fail(tester.Fault{Op: tester.OpProduce, Topic: "echoes", Partition: &one, Times: -1, Do: tester.Error(kafka.ErrNotAuthorized)})
	before := x.tt.Committed("g", "numbers", 1)
	x.sendMany(8)
	x.tt.Advance(time.Second)
	err := app.Err()
	if !errors.Is(err, kafka.ErrNotAuthorized) || !strings.Contains(err.Error(), "echoes/1") || !strings.Contains(err.Error(), "numbers/1@") {
		t.Errorf("ended with %v", err)
	}
	equal(t, "committed of the task whose output was refused", x.tt.Committed("g", "numbers", 1), before)
	equal(t, "committed of the other task", x.tt.Committed("g", "numbers", 0), 16-2*before)
	for _, r := range tester.Output(x.tt, echoesText).All() {
		if r.Partition == 1 && r.Value > 1 {
			t.Errorf("output %d of %s appeared", r.Value, r.Key)
		}
	}
}

// With dead letters for refused outputs the task goes on: each refused one is
// replaced by a dead letter in the same epoch, and no callback runs again.
func TestRefusedOutputsAreReplacedByDeadLettersInTheirEpoch(t *testing.T) {
	for guarantee, g := range guarantees {
		t.Run(guarantee, func(t *testing.T) {
			tt := policyWorld(t)
			in := tester.Input(tt, numbers)
			app := run(tt, "app", adder(processor.OnError(processor.Produce, processor.DeadLetters("dead"))), processor.WithGuarantee(g))
			in.Send("a", 1)
			tt.Settle()
			tt.Fail(tester.Fault{Op: tester.OpProduce, Topic: "echoes", Times: 1, Do: tester.Error(kafka.ErrInvalidRecord)})
			in.Send("a", 2)
			in.Send("b", 3)
			tt.Advance(time.Second)
			in.Send("b", 4)
			tt.Advance(time.Second)
			if err := app.Err(); err != nil {
				t.Errorf("ended with %v", err)
			}
			letters, outputs := tester.Output(tt, dead).Len(), tester.Output(tt, echoes).Values()
			equal(t, "dead letters and outputs together", letters+len(outputs), 4)
			if letters == 0 {
				t.Error("no dead letter")
			}
			equal(t, "committed", tt.Committed("g", "numbers", 0), 4)
			got := tester.Table(tt, sums).All()
			equal(t, "rows", fmt.Sprint(got), "map[a:3 b:7]")
		})
	}
}

// The broker refuses the fourth of ten outputs. Nothing behind the third is
// committed, the error names output and input, and once the cause is gone
// all ten are there.
func TestRefusedOutputIsWrittenAfterItsCauseIsGone(t *testing.T) {
	for guarantee, g := range guarantees {
		t.Run(guarantee, func(t *testing.T) {
			tt := policyWorld(t)
			in := tester.Input(tt, numbers)
			app := run(tt, "app", adder(), processor.WithGuarantee(g))
			for n := range int64(3) {
				in.Send("a", n+1)
			}
			tt.Settle()
			tt.Fail(tester.Fault{Op: tester.OpProduce, Topic: "echoes", Times: 3, Do: tester.Error(kafka.ErrNotAuthorized)})
			for n := range int64(7) {
				in.Send("a", n+4)
			}
			err := app.Err()
			if !errors.Is(err, kafka.ErrNotAuthorized) || !strings.Contains(err.Error(), "echoes/0") || !strings.Contains(err.Error(), "numbers/0@3") {
				t.Errorf("ended with %v", err)
			}
			equal(t, "committed", tt.Committed("g", "numbers", 0), 3)
			for app.Err() != nil { // until the faults are used up
				app.Restart()
			}
			tt.Advance(time.Second)
			equal(t, "outputs", join(tester.Output(tt, echoes).Values()), "1 2 3 4 5 6 7 8 9 10")
			equal(t, "committed at the end", tt.Committed("g", "numbers", 0), 10)
			got, _ := tester.Table(tt, sums).Get("a")
			equal(t, "row", got, 55)
		})
	}
}
