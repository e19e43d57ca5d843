package processor_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

func TestVisitsLeaveNothingBehind(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	in := tester.Input(tt, words)
	var p *processor.Processor
	st := processor.Persist(table)
	visits := processor.Visitor("look", func(ctx *processor.Context, _ int) error {
		st.Get(ctx)
		return nil
	})
	tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		p, err = build(i, []processor.Edge{st, visits, processor.Input(words, func(ctx *processor.Context, w string) error {
			st.Set(ctx, w)
			return nil
		})})
		return []reka.Runner{p}, err
	})
	for i := range 10 {
		in.Send(fmt.Sprint("k", i), "x")
	}
	tt.Settle()
	round := func(n int) (heap uint64, goroutines int) {
		for range n {
			if seen, err := visits.Run(t.Context(), p, 0); seen != 10 || err != nil {
				t.Fatalf("visited %d, %v", seen, err)
			}
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	heap, goroutines := round(200)
	heap2, goroutines2 := round(2000)
	if goroutines2 > goroutines || heap2 > heap+256<<10 {
		t.Errorf("heap %d → %d, goroutines %d → %d", heap, heap2, goroutines, goroutines2)
	}
}
