package processor_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage/badgerstore"
	"github.com/rekastream/reka/tester"
)

// An instance that lost its partitions gets them again at once, with the
// store still on its disk: it opens it again and restores only what it lacks.
func TestPartitionLostAndAssignedAgainGoesOnFromItsStore(t *testing.T) {
	dir := t.TempDir() // removed after the tester has ended
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	var p *processor.Processor
	app := tt.Start("a", func(i *tester.Instance) (_ []reka.Runner, err error) {
		p, err = build(i, adder()(), processor.WithStorage(i.Guard(badgerstore.In(dir))),
			processor.WithTuning(processor.Tuning{FlushAge: time.Second}))
		return []reka.Runner{p}, err
	})
	want := int64(0)
	for round := range 5 {
		for range 20 {
			in.Send(fmt.Sprint("k", want%7), 1)
			want++
		}
		tt.Advance(2 * time.Second) // flushed
		in.Send("k0", 1)
		want++
		tt.Settle()
		tt.Expel("g", app)
		tt.Advance(time.Second)
		if err := app.Err(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		stats := p.Stats().Partitions
		if len(stats) != 1 || stats[0].State != "running" {
			t.Fatalf("round %d: %+v", round, stats)
		}
		if n := stats[0].RestoredRows; n > 1 {
			t.Errorf("round %d: %d rows were restored, the store lacked 1", round, n)
		}
	}
	sum := int64(0)
	for _, v := range tester.Table(tt, sums).All() {
		sum += v
	}
	equal(t, "sum", sum, want)
}

// A partition is away and comes back to an instance that still has its rows,
// but not those of the owner between.
func TestPartitionThatComesBackIsCaughtUpBeforeItsFirstCallback(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(3))
	in := tester.Input(tt, numbers)
	tester.Output(tt, echoes)
	var mu sync.Mutex
	found := map[string][]int64{} // what callbacks found before they added 1
	edges := func(name string) func() []processor.Edge {
		return func() []processor.Edge {
			sum := processor.Persist(sums)
			return []processor.Edge{sum, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
				v, _ := sum.Get(ctx)
				mu.Lock()
				found[ctx.Key()] = append(found[ctx.Key()], v)
				mu.Unlock()
				sum.Set(ctx, v+n)
				return nil
			})}
		}
	}
	send := func(n int) {
		for range n {
			for k := range 12 {
				in.Send(fmt.Sprint("k", k), 1)
			}
		}
		tt.Settle()
	}
	run(tt, "a", edges("a"))
	send(2)
	b := run(tt, "b", edges("b"))
	send(3)
	c := run(tt, "c", edges("c"))
	send(2)
	for _, i := range []*tester.Instance{c, b} {
		if err := i.Stop(); err != nil {
			t.Fatal(err)
		}
		send(2)
	}
	for k := range 12 {
		equal(t, fmt.Sprint("what was found of k", k), fmt.Sprint(found[fmt.Sprint("k", k)]), "[0 1 2 3 4 5 6 7 8 9 10]")
	}
}

// A partition comes back while its former task is still writing to the disk.
// The new one waits for it.
func TestPartitionThatComesBackWaitsUntilItsStoreIsClosed(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	in := tester.Input(tt, clicks)
	tester.Output(tt, totals)
	o := &owners{all: map[string][]int32{}}
	running := map[int32]int{}
	a := tt.Start("a", counter(processor.WithObserver(processor.Observer{
		Running: func(p int32) { running[p]++ },
		Revoked: func(ps []int32) {
			for _, p := range ps {
				running[p]--
			}
		},
	})))
	send := func() {
		for k := range 10 {
			in.Send(fmt.Sprint("k", k), "/")
		}
		tt.Settle()
	}
	send()
	applied := tt.Calls()[tester.OpApply]
	tt.Fail(tester.Fault{Op: tester.OpApply, Instance: "a", Times: -1, Do: tester.Delay(2 * time.Second)})
	b := countingInstance(tt, o, "b")
	equal(t, "flushes of what moves", tt.Calls()[tester.OpApply]-applied, 1)
	equal(t, "partitions of b", o.count("b"), 1)
	b.Crash() // and nobody is told: a gets it back when the session is over
	b.Restart()
	if err := b.Stop(); err != nil { // at once
		t.Fatal(err)
	}
	tt.Settle()
	send()
	equal(t, "partitions that run while one is being closed", running[0]+running[1], 2)
	tt.Advance(3 * time.Second)
	send()
	equal(t, "partitions that run", fmt.Sprint(running), "map[0:1 1:1]")
	for k, v := range tester.Table(tt, counts).All() {
		equal(t, k, v, 3)
	}
	if err := a.Err(); err != nil {
		t.Error(err)
	}
}
