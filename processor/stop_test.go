package processor_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// The leader of the output is away: emits stay open. Run ends all the same,
// says so, and commits nothing that waits for them.
func TestStopDoesNotWaitForEverForOpenEmits(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in, out := tester.Input(tt, numbers), tester.Output(tt, echoes)
	app := run(tt, "app", adder(), processor.WithStopTimeout(5*time.Second))
	in.Send("a", 1)
	equal(t, "echoes", out.Len(), 1)
	tt.Fail(tester.Fault{Op: tester.OpProduce, Topic: "echoes", Times: -1, Do: tester.Delay(24 * time.Hour)})
	for i := range 100 {
		in.Send(fmt.Sprint("k", i), 1)
	}
	tt.Settle()
	before := tt.Now()
	if err := app.Stop(); !errors.Is(err, reka.ErrStopTimeout) {
		t.Errorf("Run: %v, want ErrStopTimeout", err)
	}
	if took := tt.Now().Sub(before); took > 6*time.Second { // and leaving the group
		t.Errorf("took %v", took)
	}
	equal(t, "committed offset", tt.Committed("g", "numbers", 0), 1)
	equal(t, "rows", len(tester.Table(tt, sums).All()), 1)
}

func TestCallbackThatBlocksDelaysRebalanceAndStopOnlyUntilItReturns(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	tt := tester.New(t, tester.WithPartitions(2))
	tester.Input(tt, words)
	gate := tt.NewGate()
	moved := &owners{all: map[string][]int32{}}
	start := func(name string) *tester.Instance {
		return run(tt, name, func() []processor.Edge {
			st := processor.Persist(table)
			return []processor.Edge{st, processor.Input(words, func(ctx *processor.Context, w string) error {
				st.Set(ctx, w)
				if w == "wait" {
					return gate.Wait(ctx)
				}
				return nil
			})}
		}, moved.observe(name))
	}
	a := start("a")
	for p := range int32(2) {
		tt.SendRaw("words", p, put(fmt.Sprint(p), "wait"))
	}
	tt.Settle()
	equal(t, "callbacks that wait", gate.Waiting(), 2)
	b := start("b")
	tt.Advance(5 * time.Second) // heartbeats go on: nobody is expelled
	equal(t, "partitions of a while it waits", moved.count("a"), 2)
	if err := b.Stop(); err != nil {
		t.Errorf("stop of b: %v", err)
	}
	c := start("c")
	tt.Advance(5 * time.Second)
	gate.Open()
	tt.Settle()
	equal(t, "partitions of a", moved.count("a"), 1)
	equal(t, "partitions of c", moved.count("c"), 1)
	equal(t, "rows", len(tester.Table(tt, table).All()), 2)
	for _, i := range []*tester.Instance{a, c} {
		if err := i.Stop(); err != nil {
			t.Errorf("stop of %s: %v", i.Name(), err)
		}
	}
	for p := range int32(2) {
		equal(t, "committed offset", tt.Committed("g", "words", p), 1)
	}
	t.Cleanup(func() { fewer(t, goroutines) }) // before the tester's own cleanup ends its pump
}

// fewer waits until there are no more goroutines than before, and the few of
// a tester that has not ended.
func fewer(t *testing.T, before int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before+2 {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}

func TestRunThatFailsEarlyLeavesNothingBehind(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	goroutines := runtime.NumGoroutine()
	for _, missing := range []string{"input", "lookup"} {
		app := run(tt, missing, func() []processor.Edge {
			if missing == "lookup" {
				tester.Input(tt, words)
			}
			l := processor.Lookup(names)
			return []processor.Edge{l, processor.Input(words, func(*processor.Context, string) error { return nil })}
		})
		if err := app.Err(); !errors.Is(err, kafka.ErrUnknownTopic) {
			t.Errorf("missing %s: %v", missing, err)
		}
		fewer(t, goroutines)
	}
}
