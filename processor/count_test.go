package processor_test

import (
	"fmt"
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

var (
	clicks = reka.NewStream("clicks", codec.String())
	counts = reka.GroupTable("counter", codec.Int64())
	totals = reka.NewStream("totals", codec.Int64())
)

// counter builds a processor that counts clicks per key and emits each total.
func counter(opts ...processor.Option) func(*tester.Instance) ([]reka.Runner, error) {
	return func(i *tester.Instance) ([]reka.Runner, error) {
		n, out := processor.Persist(counts), processor.Output(totals)
		g, err := processor.NewGraph("counter", n, out, processor.Input(clicks, func(ctx *processor.Context, _ string) error {
			v, _ := n.Get(ctx)
			n.Set(ctx, v+1)
			out.Emit(ctx, ctx.Key(), v+1)
			return nil
		}))
		if err != nil {
			return nil, err
		}
		p, err := processor.New(i.Client(), g, append([]processor.Option{processor.WithStorage(i.Storage())}, opts...)...)
		return []reka.Runner{p}, err
	}
}

func TestCountsPerKeySurviveCrashAndRestart(t *testing.T) {
	tt := tester.New(t)
	in, out, table := tester.Input(tt, clicks), tester.Output(tt, totals), tester.Table(tt, counts)
	app := tt.Start("app", counter())
	for i := range 10 {
		in.Send(fmt.Sprintf("user-%d", i%3), "/")
	}
	if v, ok := table.Get("user-0"); !ok || v != 4 {
		t.Fatalf("user-0 = %d, %v, want 4", v, ok)
	}
	app.Crash()
	in.Send("user-0", "/")
	app.Restart()
	if v, _ := table.Get("user-0"); v != 5 {
		t.Errorf("after the crash user-0 = %d, want 5", v)
	}
	if got := out.Len(); got != 11 {
		t.Errorf("%d totals, want 11", got)
	}
}

func TestThousandRecordsTakeMilliseconds(t *testing.T) {
	tt := tester.New(t)
	in, table := tester.Input(tt, clicks), tester.Table(tt, counts)
	tester.Output(tt, totals)
	tt.Start("app", counter())
	for i := range 1000 {
		in.Send(fmt.Sprintf("user-%d", i%10), "/")
	}
	all := table.All()
	if len(all) != 10 {
		t.Fatalf("%d rows, want 10", len(all))
	}
	for k, v := range all {
		if v != 100 {
			t.Errorf("%s = %d, want 100", k, v)
		}
	}
}
