package tester_test

import (
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// A test of a graph, through a crash.
func Example() {
	_ = func(t *testing.T) { // TestCounts
		countThroughACrash(t)
	}
}

func countThroughACrash(t *testing.T) {
	clicks := reka.NewStream("clicks", codec.String())
	counts := reka.GroupTable("counter", codec.Int64())

	tt := tester.New(t)
	in := tester.Input(tt, clicks)
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		n := processor.Persist(counts)
		g, err := processor.NewGraph("counter", n,
			processor.Input(clicks, func(ctx *processor.Context, _ string) error {
				v, _ := n.Get(ctx)
				n.Set(ctx, v+1)
				return nil
			}))
		if err != nil {
			return nil, err
		}
		p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return []reka.Runner{p}, err
	})
	in.Send("alice", "/")
	app.Crash()
	app.Restart()
	if got, ok := tester.Table(tt, counts).Get("alice"); !ok || got != 1 {
		t.Errorf("alice: %d, %v, want 1", got, ok)
	}
}
