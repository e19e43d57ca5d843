package processor_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// calls notes what an instance asked for, in order.
type calls struct {
	mu  sync.Mutex
	all []string // guarded by mu
}

func (c *calls) note(name string, ops ...tester.Op) func(tester.Call) tester.Action {
	return func(call tester.Call) tester.Action {
		if call.Instance == name && slices.Contains(ops, call.Op) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.all = append(c.all, string(call.Op)+" "+call.Topic)
		}
		return tester.Proceed
	}
}

func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

func TestOffsetsFollowChangelogAndChangelogFollowsOutputs(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	run(tt, "app", adder(), processor.WithGuarantee(processor.WithoutTransactions))
	var c calls
	tt.Hook(c.note("app", tester.OpProduce, tester.OpCommit))
	tt.Fail(tester.Fault{Op: tester.OpProduce, Topic: "echoes", Do: tester.Delay(time.Second)})
	tt.Fail(tester.Fault{Op: tester.OpProduce, Topic: "g-table", Do: tester.Delay(time.Second)})
	in.Send("a", 1)
	tt.Settle()
	equal(t, "changelog before the output is acked", len(tt.Raw("g-table", 0)), 0)
	tt.Advance(time.Second)
	equal(t, "output", tester.Output(tt, echoes).Len(), 1)
	equal(t, "changelog before it is acked", len(tt.Raw("g-table", 0)), 0)
	equal(t, "committed before the changelog is acked", tt.Committed("g", "numbers", 0), 0)
	tt.Advance(time.Second)
	equal(t, "committed", tt.Committed("g", "numbers", 0), 1)
	equal(t, "calls", fmt.Sprint(c.take()), "[commit ]")
}

// A process stands still for longer than its session while a callback runs
// and more records wait. When it goes on it is no owner any more: nothing of
// what it had is written.
func TestPausedOwnerWritesNothingOnceItsLeaseIsOver(t *testing.T) {
	tt := policyWorld(t)
	in, out := tester.Input(tt, numbers), tester.Output(tt, echoes)
	gate := tt.NewGate()
	var mu sync.Mutex
	seen := map[string]int{}
	start := func(name string) *tester.Instance {
		return run(tt, name, func() []processor.Edge {
			sum, out := processor.Persist(sums), processor.Output(echoes)
			return []processor.Edge{sum, out, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
				mu.Lock()
				seen[name]++
				mu.Unlock()
				v, _ := sum.Get(ctx)
				sum.Set(ctx, v+n)
				out.Emit(ctx, ctx.Key(), n)
				if name == "a" {
					return gate.Wait(context.Background())
				}
				return nil
			})}
		})
	}
	a := start("a")
	for n := range int64(10) {
		in.Send("k", n)
	}
	tt.Settle()
	equal(t, "callbacks that wait", gate.Waiting(), 1)
	start("b")
	a.Pause()
	tt.Advance(11 * time.Second)
	equal(t, "outputs of b", out.Len(), 10)
	var c calls
	tt.Hook(c.note("a", tester.OpProduce, tester.OpCommit))
	gate.Open()
	a.Resume()
	tt.Advance(time.Minute)
	for _, call := range c.take() {
		if call != "commit " { // of its new tenure, if it gets one
			t.Errorf("a wrote: %s", call)
		}
	}
	equal(t, "outputs", out.Len(), 10)
	equal(t, "callbacks on b", seen["b"], 10)
	got, _ := tester.Table(tt, sums).Get("k")
	equal(t, "sum", got, 45)
	if err := a.Err(); err != nil {
		t.Errorf("a: %v", err)
	}
	in.Send("k", 5)
	got, _ = tester.Table(tt, sums).Get("k")
	equal(t, "sum at the end", got, 50)
}

// Two strangers' writes in one changelog, found by two epochs before the
// first is repaired, are both repaired.
func TestTwoGapsOfOneChangelogAreBothRepaired(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, clicks)
	tester.Output(tt, totals)
	tt.Start("app", counter(processor.WithGuarantee(processor.WithoutTransactions)))
	for _, k := range []string{"a", "b", "c"} {
		in.Send(k, "/")
		in.Send(k, "/")
	}
	tt.Settle()
	tt.Fail(tester.Fault{Op: tester.OpFetch, Topic: "counter-table", Do: tester.Delay(time.Second)})
	one := []byte{0, 0, 0, 0, 0, 0, 0, 1}
	for _, k := range []string{"a", "b"} {
		tt.SendRaw("counter-table", 0, kafka.Record{Key: []byte(k), Value: one, Timestamp: 1})
		in.Send("c", "/")
		tt.Settle()
	}
	tt.Advance(2 * time.Second)
	got := tester.Table(tt, counts).All()
	equal(t, "rows", fmt.Sprint(got), "map[a:2 b:2 c:4]")
}

// A callback that ends its goroutine ends the processor with an error, and
// everything that was finished before is committed.
func TestCallbackThatEndsItsGoroutineEndsTheProcessorInOrder(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	app := run(tt, "app", func() []processor.Edge {
		sum := processor.Persist(sums)
		return []processor.Edge{sum, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
			sum.Set(ctx, n)
			if n == 3 {
				runtime.Goexit()
			}
			return nil
		})}
	})
	for n := range int64(6) {
		in.Send("a", n)
	}
	tt.Settle()
	if err := app.Err(); err == nil {
		t.Error("it runs on")
	}
	equal(t, "committed", tt.Committed("g", "numbers", 0), 3)
	got, _ := tester.Table(tt, sums).Get("a")
	equal(t, "row", got, 2)
}

// Rows are committed while a slow disk takes the ones before them: the next
// flush begins when one has ended, not when its age is reached.
func TestSlowDiskDoesNotStallTheTaskUntilTheFlushAge(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	run(tt, "app", adder(), processor.WithTuning(processor.Tuning{EpochBytes: 300, FlushBytes: 100, FlushAge: time.Hour}))
	tt.Hook(func(c tester.Call) tester.Action {
		if c.Op == tester.OpApply {
			return tester.Delay(time.Millisecond)
		}
		return tester.Proceed
	})
	for n := range int64(300) {
		in.Send(fmt.Sprint("key-", n%50), n)
	}
	tt.Advance(time.Minute)
	equal(t, "committed", tt.Committed("g", "numbers", 0), 300)
}

// ringOf is the key of what a middleware puts into the context.
type ringOf string

func TestMiddlewareWrapsInOrderAndObserverSeesTheStates(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	var mu sync.Mutex
	var log []string
	add := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, s)
	}
	around := func(name string) processor.Option {
		return processor.WithMiddleware(func(ctx *processor.Context, next func(*processor.Context) error) error {
			add(name + "(")
			defer add(")" + name)
			return next(ctx.With(context.WithValue(ctx, ringOf(name), true)))
		})
	}
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		p, err := build(i, []processor.Edge{processor.Input(numbers, func(ctx *processor.Context, _ int64) error {
			add(fmt.Sprint("callback ", ctx.Value(ringOf("one")) == true && ctx.Value(ringOf("two")) == true))
			return nil
		})}, around("one"), around("two"), processor.WithObserver(processor.Observer{
			State:    func(s processor.Status) { add(s.String()) },
			Assigned: func(p []int32) { add(fmt.Sprint("assigned ", p)) },
			Running:  func(p int32) { add(fmt.Sprint("running ", p)) },
			Revoked:  func(p []int32) { add(fmt.Sprint("revoked ", p)) },
		}))
		return []reka.Runner{p}, err
	})
	in.Send("a", 1)
	tt.Settle()
	if err := app.Stop(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	want := "[connecting assigned [0] restoring running 0 serving one( two( callback true )two )one stopping revoked [0] stopped]"
	equal(t, "sequence", fmt.Sprint(log), want)
}
