package processor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// contains reports whether an error names all of parts.
func contains(err error, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			return false
		}
	}
	return true
}

// How a deferred record can fail: from outside, by the error of its function,
// by its panic.
var deferredFailures = map[string]func(slip){
	"fail":  func(s slip) { s.Fail(errBad) },
	"error": func(s slip) { s.Finish(func(ctx *processor.Context) error { _ = s.apply(ctx); return errBad }) },
	"panic": func(s slip) { s.Finish(func(ctx *processor.Context) error { _ = s.apply(ctx); panic(errBad) }) },
}

// A deferred record that fails for good ends the processor. Positions have
// moved past others that are open, so nothing since the last commit counts.
func TestDeferredRecordThatFailsForGoodEndsTheProcessorAndCommitsNothing(t *testing.T) {
	for guarantee, g := range guarantees {
		for how, fail := range deferredFailures {
			t.Run(guarantee+" "+how, func(t *testing.T) {
				d := newDesk(t, 1)
				d.send("x", 0)
				app := d.start("app", nil, processor.WithGuarantee(g))
				d.committed(1)
				d.send("abac", 1)
				d.tt.Settle()
				d.finish(4)
				old := d.slip(2)
				fail(d.slip(1))
				d.tt.Settle()
				old.Finish(old.apply)
				d.tt.Settle()
				if err := app.Err(); !errors.Is(err, errBad) || !contains(err, "numbers/0@1") {
					t.Errorf("ended with %v", err)
				}
				d.committed(1)
				app.Restart()
				d.tt.Settle()
				d.finish(1, 2, 4, 3)
				d.committed(5)
				d.rows("[a:4 b:2 c:4 x:0]")
				if g == processor.ExactlyOnce {
					d.echoes("0 1 2 4 3")
				}
			})
		}
	}
}

// A record that fails for good at once takes the open ones' epoch with it
// too.
func TestRecordThatFailsForGoodTakesOpenOnesWithIt(t *testing.T) {
	d := newDesk(t, 1)
	d.callback = func(ctx *processor.Context, n int64) error {
		if ctx.Defer(); n == 3 {
			return errBad
		}
		return nil
	}
	d.send("abcd", 1)
	app := d.start("app", nil)
	equal(t, "runs", d.took(), "run 1, run 2, run 3")
	if err := app.Err(); !errors.Is(err, errBad) || !contains(err, "numbers/0@2") {
		t.Errorf("ended with %v", err)
	}
	d.committed(0)
}

func TestDeferredRecordThatFailsIsPassedOver(t *testing.T) {
	for policy, p := range map[string]processor.Policy{"skip": processor.SkipAndCount, "dead letters": processor.DeadLetters("dead")} {
		for how, fail := range deferredFailures {
			t.Run(policy+" "+how, func(t *testing.T) {
				d := newDesk(t, 1)
				d.send("abac", 1)
				d.start("app", processor.OnError(processor.Process, p))
				d.tt.Settle()
				d.finish(4)
				fail(d.slip(1))
				d.tt.Settle()
				d.finish(3, 2)
				d.committed(4)
				d.rows("[a:3 b:2 c:4]")
				d.echoes("4 3 2")
				s := d.p.Stats().Partitions[0]
				equal(t, "passed over", s.Skipped+s.DeadLetters, 1)
				equal(t, "records", s.Records, 4)
				letters := tester.Output(d.tt, dead).All()
				if policy == "skip" {
					equal(t, "dead letters", len(letters), 0)
					return
				}
				equal(t, "dead letters", len(letters), 1)
				offset, _ := letters[0].Header("reka-offset")
				equal(t, "dead letter", letters[0].Key+string(letters[0].Value)+" of "+string(offset), "a1 of 0")
			})
		}
	}
}

// Each try runs the callback anew after its backoff; other keys go on, the
// record's own key waits.
func TestDeferredRecordIsRepeatedWhileOtherKeysGoOn(t *testing.T) {
	for how, fail := range deferredFailures {
		t.Run(how, func(t *testing.T) {
			d := newDesk(t, 1)
			d.send("aab", 1)
			d.start("app", processor.OnError(processor.Process, processor.Retry(2, time.Second, processor.SkipAndCount)))
			d.tt.Settle()
			first := d.slip(1)
			fail(first)
			d.took()
			d.finish(3)
			first.Finish(first.apply)
			equal(t, "in the backoff", d.took(), "end 3")
			d.tt.Advance(time.Second)
			equal(t, "first try", d.took(), "run 1")
			fail(d.slip(1))
			d.took()
			d.tt.Advance(time.Second)
			equal(t, "in the second backoff", d.took(), "")
			d.tt.Advance(time.Second)
			equal(t, "second try", d.took(), "run 1")
			d.finish(1)
			equal(t, "then", d.took(), "end 1, run 2")
			d.slip(2).Fail(processor.AsSkip(errBad))
			d.committed(3)
			d.rows("[a:1 b:3]")
			d.echoes("3 1")
			equal(t, "retries", d.p.Stats().Partitions[0].Retries, 2)
		})
	}
}

func TestTriesThatAreUsedUpPassTheRecordOver(t *testing.T) {
	d := newDesk(t, 1)
	d.send("a", 1)
	d.start("app", processor.OnError(processor.Process, processor.Retry(3, time.Second, processor.SkipAndCount)))
	for range 4 {
		d.tt.Settle()
		d.slip(1).Fail(nil)
		d.tt.Advance(time.Minute)
	}
	equal(t, "runs", d.took(), "run 1, run 1, run 1, run 1")
	d.committed(1)
	d.rows("[]")
}

// The error of a callback that has deferred counts, and what is called later
// does not.
func TestErrorAfterDeferCounts(t *testing.T) {
	d := newDesk(t, 1)
	var kept []*processor.Deferred
	d.callback = func(ctx *processor.Context, _ int64) error {
		kept = append(kept, ctx.Defer())
		return errBad
	}
	d.send("ab", 1)
	d.start("app", processor.OnError(processor.Process, processor.Retry(1, time.Second, processor.SkipAndCount)))
	d.tt.Advance(time.Minute)
	equal(t, "runs", d.took(), "run 1, run 1, run 2, run 2")
	d.committed(2)
	for _, k := range kept {
		k.Finish(func(*processor.Context) error { t.Error("it ran"); return nil })
	}
	d.tt.Settle()
	d.rows("[]")
	equal(t, "skipped", d.p.Stats().Partitions[0].Skipped, 2)
}

// A partition that moves waits for what is unfinished and parked, with its
// effects; the other one goes on.
func TestUnfinishedRecordsHoldUpTheMoveOfTheirPartition(t *testing.T) {
	d := newDesk(t, 2)
	moved := &owners{all: map[string][]int32{}}
	a := d.start("a", nil, moved.observe("a"))
	for p := range int32(2) {
		base := int64(10 * p)
		d.tt.SendRaw("numbers", p, numbered("k", base+1), numbered("k", base+2))
	}
	d.tt.Settle()
	b := d.start("b", nil, moved.observe("b"))
	d.tt.Advance(20 * time.Second)
	equal(t, "partitions of a while it waits", moved.count("a"), 2)
	d.finish(1, 11)
	d.tt.Advance(20 * time.Second)
	equal(t, "while parked ones wait", moved.count("a"), 2)
	d.finish(2, 12)
	d.tt.Advance(5 * time.Second)
	equal(t, "partitions of a", moved.count("a"), 1)
	equal(t, "partitions of b", moved.count("b"), 1)
	for p := range int32(2) {
		equal(t, "committed", d.tt.Committed("g", "numbers", p), 2)
	}
	equal(t, "errors", errors.Join(a.Err(), b.Err()), nil)
	d.echoes("1 2 11 12") // by partition
}

// One that takes longer than the rebalance timeout loses its partition; the
// next owner begins anew, and what is finished afterwards has no effect.
func TestFinishAfterThePartitionIsLostDoesNothing(t *testing.T) {
	d := newDesk(t, 1)
	a := d.start("a", nil)
	d.send("ab", 1)
	d.tt.Settle()
	d.finish(2)
	old := d.slip(1)
	d.tt.Expel("g", a)
	d.tt.Advance(5 * time.Second)
	equal(t, "runs", d.took(), "run 1, run 2, end 2, run 1, run 2")
	old.Finish(func(*processor.Context) error { t.Error("it ran"); return nil })
	d.tt.Settle()
	d.finish(1, 2)
	d.committed(2)
	d.rows("[a:1 b:2]")
	d.echoes("1 2")
	equal(t, "error", a.Err(), nil)
}

func TestUnfinishedRecordsThatTakeTooLongLoseTheirPartition(t *testing.T) {
	d := newDesk(t, 2)
	moved := &owners{all: map[string][]int32{}}
	opts := []processor.Option{processor.WithRebalanceTimeout(15 * time.Second)}
	a := d.start("a", nil, append(opts, moved.observe("a"))...)
	for p := range int32(2) {
		d.tt.SendRaw("numbers", p, numbered("k", int64(p)+1))
	}
	d.tt.Settle()
	old := []slip{d.slip(1), d.slip(2)}
	d.start("b", nil, append(opts, moved.observe("b"))...)
	d.tt.Advance(40 * time.Second)
	equal(t, "partitions of a", moved.count("a"), 1)
	equal(t, "partitions of b", moved.count("b"), 1)
	for n, s := range old {
		s.Finish(s.apply)
		if s := d.slip(int64(n + 1)); s.Deferred != old[n].Deferred {
			s.Finish(s.apply)
		}
	}
	d.tt.Settle()
	for p := range int32(2) {
		equal(t, "committed", d.tt.Committed("g", "numbers", p), 1)
	}
	equal(t, "outputs", len(tester.Output(d.tt, echoes).All()), 2)
	equal(t, "error", a.Err(), nil)
}

// after has f called some time later, while the test waits.
func after(i *tester.Instance, d time.Duration, f func()) {
	i.Client().Driver().Clock().AfterFunc(d, f)
}

func TestStopWaitsForUnfinishedRecords(t *testing.T) {
	d := newDesk(t, 1)
	app := d.start("app", nil)
	d.send("aba", 1)
	d.tt.Settle()
	for n, at := range map[int64]time.Duration{1: 2 * time.Second, 2: time.Second, 3: 3 * time.Second} {
		after(app, at, func() { s := d.slip(n); s.Finish(s.apply) })
	}
	if err := app.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	equal(t, "what ran", d.took(), "run 1, run 2, end 2, end 1, run 3, end 3")
	d.committed(3)
	d.rows("[a:4 b:2]")
}

func TestStopGivesUpWaitingForUnfinishedRecords(t *testing.T) {
	d := newDesk(t, 1)
	app := d.start("app", nil, processor.WithStopTimeout(5*time.Second))
	d.send("ab", 1)
	d.tt.Settle()
	d.finish(2)
	before := d.tt.Now()
	if err := app.Stop(); !errors.Is(err, reka.ErrStopTimeout) {
		t.Errorf("stop: %v", err)
	}
	if took := d.tt.Now().Sub(before); took > 7*time.Second {
		t.Errorf("it took %s", took)
	}
	d.slip(1).Finish(func(*processor.Context) error { t.Error("it ran"); return nil })
	d.committed(0)
	app.Restart()
	d.tt.Settle()
	d.finish(1, 2)
	d.committed(2)
	d.echoes("1 2")
}

// A record in its backoff is not waited for: the next owner tries it, and
// everything since the last commit again.
func TestDeferredRecordInItsBackoffIsTriedByTheNextOwner(t *testing.T) {
	for _, late := range []bool{false, true} { // it fails when the processor stops already
		d := newDesk(t, 1)
		app := d.start("app", processor.OnError(processor.Process, processor.Retry(100, time.Hour, processor.Fail)))
		d.send("ab", 1)
		d.tt.Settle()
		fail := func() { d.slip(1).Fail(errBad) }
		if late {
			after(app, time.Second, fail)
		} else {
			fail()
		}
		d.tt.Settle()
		before := d.tt.Now()
		if err := app.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if took := d.tt.Now().Sub(before); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		d.committed(0)
		app.Restart()
		d.tt.Settle()
		d.finish(1, 2)
		d.committed(2)
		d.rows("[a:1 b:2]")
	}
}
