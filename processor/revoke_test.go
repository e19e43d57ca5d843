package processor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

func TestRecordInItsBackoffIsTriedByTheNextOwner(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	tries := map[string]int{}
	start := func(name string) *tester.Instance {
		return run(tt, name, func() []processor.Edge {
			sum := processor.Persist(sums)
			return []processor.Edge{sum, processor.OnError(processor.Process, processor.Retry(100, time.Hour, processor.Fail)),
				processor.Input(numbers, func(ctx *processor.Context, n int64) error {
					tries[name]++
					sum.Set(ctx, n)
					if n == 2 && name == "a" {
						return errBad
					}
					return nil
				})}
		})
	}
	a := start("a")
	in.Send("k", 1)
	in.Send("k", 2)
	in.Send("k", 3)
	tt.Settle()
	equal(t, "committed while it waits", tt.Committed("g", "numbers", 0), 1)
	start("b")
	if err := a.Stop(); err != nil {
		t.Errorf("stop in a backoff: %v", err)
	}
	tt.Settle()
	equal(t, "committed by b", tt.Committed("g", "numbers", 0), 3)
	equal(t, "tries", fmt.Sprint(tries), "map[a:2 b:2]")
}

func TestVisitEndsWithItsCountWhenTheTaskIsTakenAway(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	gate := tt.NewGate()
	var p *processor.Processor
	sum := processor.Persist(sums)
	visits := processor.Visitor("wait", func(ctx *processor.Context, _ int) error {
		if ctx.Key() == "k3" {
			return gate.Wait(ctx)
		}
		return nil
	})
	app := tt.Start("a", func(i *tester.Instance) (_ []reka.Runner, err error) {
		p, err = build(i, []processor.Edge{sum, visits, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
			sum.Set(ctx, n)
			return nil
		})})
		return []reka.Runner{p}, err
	})
	for n := range int64(6) {
		in.Send(fmt.Sprint("k", n), n)
	}
	tt.Settle()
	type result struct {
		n   int64
		err error
	}
	done := make(chan result, 1)
	go func() { // ends with the visit; waited for below
		n, err := visits.Run(context.Background(), p, 0)
		done <- result{n, err}
	}()
	for deadline := time.Now().Add(5 * time.Second); gate.Waiting() == 0; tt.Settle() {
		if time.Now().After(deadline) {
			t.Fatal("no visit")
		}
	}
	tt.Expel("g", app)
	tt.Settle()
	r := <-done
	if !errors.Is(r.err, processor.ErrVisitAborted) || r.n > 4 {
		t.Errorf("visited %d, %v", r.n, r.err)
	}
	tt.Settle()
	if err := app.Err(); err != nil {
		t.Errorf("the callback's error, of its context that ended, ended the processor: %v", err)
	}
	in.Send("k0", 9)
	got, _ := tester.Table(tt, sums).Get("k0")
	equal(t, "row after it came back", got, 9)
}

// Inputs are not held up by a visit of many keys.
func TestInputsHaveTheirTurnDuringAVisit(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	gate := tt.NewGate()
	var p *processor.Processor
	sum, visited, between := processor.Persist(sums), 0, -1
	visits := processor.Visitor("count", func(*processor.Context, int) error {
		if visited++; visited == 1 {
			return gate.Wait(context.Background())
		}
		return nil
	})
	tt.Start("a", func(i *tester.Instance) (_ []reka.Runner, err error) {
		p, err = build(i, []processor.Edge{sum, visits, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
			if n < 0 {
				between = visited
			}
			sum.Set(ctx, n)
			return nil
		})})
		return []reka.Runner{p}, err
	})
	for n := range int64(5000) {
		in.Send(fmt.Sprint("k", n), n)
	}
	tt.Settle()
	done := make(chan int64, 1)
	go func() { // ends with the visit; waited for below
		n, _ := visits.Run(context.Background(), p, 0)
		done <- n
	}()
	for deadline := time.Now().Add(5 * time.Second); gate.Waiting() == 0; tt.Settle() {
		if time.Now().After(deadline) {
			t.Fatal("no visit")
		}
	}
	in.Send("k0", -1)
	tt.Settle()
	gate.Open()
	tt.Settle()
	equal(t, "visited", <-done, 5000)
	if between < 0 || between > 2048 {
		t.Errorf("the record had its turn after %d keys", between)
	}
}

func TestStopTimeoutLeavesNothingButTheCallback(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	gate := tt.NewGate()
	app := run(tt, "app", func() []processor.Edge {
		return []processor.Edge{processor.Input(numbers, func(ctx *processor.Context, _ int64) error {
			return gate.Wait(ctx) // ends with its context
		})}
	}, processor.WithStopTimeout(7*time.Second))
	in.Send("a", 1)
	tt.Settle()
	before := tt.Now()
	if err := app.Stop(); !errors.Is(err, reka.ErrStopTimeout) {
		t.Errorf("stop: %v", err)
	}
	if took := tt.Now().Sub(before); took < 7*time.Second || took > 9*time.Second {
		t.Errorf("took %v", took)
	}
	equal(t, "callbacks that wait", gate.Waiting(), 0)
	equal(t, "committed", tt.Committed("g", "numbers", 0), 0)
}

// A rebalance that begins while a member drains gives it another generation:
// it commits in that one.
func TestStopDuringARebalanceCommits(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	tester.Input(tt, numbers)
	gate := tt.NewGate()
	edges := func() []processor.Edge {
		sum := processor.Persist(sums)
		return []processor.Edge{sum, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
			sum.Set(ctx, n)
			if n == 2 {
				return gate.Wait(context.Background())
			}
			return nil
		})}
	}
	stopped := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	tt.Start("a", func(i *tester.Instance) ([]reka.Runner, error) {
		p, err := build(i, edges())
		return []reka.Runner{runnerFunc(func(outer context.Context) error {
			c, cancel := context.WithCancel(outer)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			err := p.Run(c)
			stopped <- err
			<-outer.Done()
			return err
		})}, err
	})
	for p := range int32(2) {
		tt.SendRaw("numbers", p, put("a", "1"), put("b", "2"))
	}
	tt.Settle()
	equal(t, "callbacks that wait", gate.Waiting(), 2)
	stop()
	tt.Settle()
	run(tt, "b", edges) // a joins the next generation while it drains
	gate.Open()
	tt.Advance(time.Second)
	select {
	case err := <-stopped:
		if err != nil {
			t.Errorf("stop: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it does not stop")
	}
	tt.Advance(time.Second)
	for p := range int32(2) {
		equal(t, "committed", tt.Committed("g", "numbers", p), 2)
	}
}

type runnerFunc func(context.Context) error

func (f runnerFunc) Run(ctx context.Context) error { return f(ctx) }

// A callback may take longer than the rebalance timeout: it loses its
// partition then, and the others need not wait for it any more.
func TestCallbackThatOutlastsTheRebalanceLosesItsPartition(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	tester.Input(tt, numbers)
	gate := tt.NewGate()
	o := &owners{all: map[string][]int32{}}
	start := func(name string) *tester.Instance {
		return run(tt, name, func() []processor.Edge {
			return []processor.Edge{processor.Input(numbers, func(*processor.Context, int64) error {
				if name == "a" {
					return gate.Wait(context.Background())
				}
				return nil
			})}
		}, o.observe(name), processor.WithRebalanceTimeout(20*time.Second), processor.WithDynamicMembership())
	}
	a := start("a")
	for p := range int32(2) {
		tt.SendRaw("numbers", p, put("a", "1"))
	}
	tt.Settle()
	start("b")
	tt.Advance(15 * time.Second)
	equal(t, "partitions of b before", o.count("b"), 0)
	tt.Advance(10 * time.Second)
	equal(t, "partitions of b after", o.count("b"), 1)
	done := tt.Committed("g", "numbers", 0) + tt.Committed("g", "numbers", 1)
	equal(t, "committed by b", done, 1)
	gate.Open()
	tt.Advance(time.Second)
	equal(t, "committed", tt.Committed("g", "numbers", 0)+tt.Committed("g", "numbers", 1), 2)
	if err := a.Err(); err != nil {
		t.Errorf("a: %v", err)
	}
}

// A partition moves on while its restore is still under way, and back.
func TestRestoreSlowerThanTheNextRebalance(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	a := run(tt, "a", adder())
	for n := range int64(50) {
		in.Send(fmt.Sprint("k", n%5), 1)
	}
	tt.Settle()
	b := run(tt, "b", adder())
	tt.Fail(tester.Fault{Op: tester.OpFetch, Topic: "g-table", Instance: "b", Do: tester.Delay(20 * time.Second)})
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	tt.Settle() // b restores
	a.Restart()
	in.Send("k0", 1)
	tt.Expel("g", b)
	tt.Advance(time.Second)
	in.Send("k0", 1)
	tt.Advance(time.Minute)
	got := tester.Table(tt, sums).All()
	equal(t, "rows", fmt.Sprint(got), "map[k0:12 k1:10 k2:10 k3:10 k4:10]")
}
