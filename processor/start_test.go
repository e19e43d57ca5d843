package processor_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// runners notes which partitions have begun to run.
type runners struct {
	mu  sync.Mutex
	all []int32 // guarded by mu
}

func (r *runners) observe() processor.Option {
	return processor.WithObserver(processor.Observer{Running: func(p int32) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, p)
	}})
}

func (r *runners) sorted() []int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.all))
}

// keeper keeps the last word of each key in the group table.
func keeper() []processor.Edge {
	st := processor.Persist(table)
	return []processor.Edge{st, processor.Input(words, func(ctx *processor.Context, w string) error {
		st.Set(ctx, w)
		return nil
	})}
}

func TestFirstStartOnEmptyTablesRunsEveryPartition(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(3))
	tester.Input(tt, words)
	tt.CreateTopic("g-table", 3, "cleanup.policy", "compact")
	var running runners
	run(tt, "app", keeper, running.observe())
	tt.SendRaw("words", 0, kafka.Record{Key: []byte("k"), Value: []byte("v"), Timestamp: 1})
	for p, want := range []int{1, 0, 0} {
		equal(t, fmt.Sprint("rows of partition ", p), len(tt.Raw("g-table", int32(p))), want)
	}
	if got := running.sorted(); !slices.Equal(got, []int32{0, 1, 2}) {
		t.Errorf("partitions %v run, want all three", got)
	}
}

func TestJoinedAndLookedUpTablesWithoutDataHoldNothingUp(t *testing.T) {
	for _, opts := range [][]processor.JoinOption{nil, {processor.TableFirst()}} {
		tt := tester.New(t, tester.WithPartitions(2))
		in, out := tester.Input(tt, words), tester.Output(tt, answers)
		tt.CreateTopic("names", 2)
		for i := range 6 {
			tt.CreateTopic(fmt.Sprint("facts-", i), int32(i+1))
		}
		app := run(tt, "app", func() []processor.Edge {
			join, out := processor.Join(names, opts...), processor.Output(answers)
			edges := []processor.Edge{join, out}
			var lookups []*processor.Global[string]
			for i := range 6 {
				l := processor.Lookup(reka.NewTable(fmt.Sprint("facts-", i), codec.String()))
				lookups, edges = append(lookups, l), append(edges, l)
			}
			return append(edges, processor.Input(words, func(ctx *processor.Context, w string) error {
				_, found := join.Get(ctx)
				for _, l := range lookups {
					_, ok := l.Get(ctx, w)
					found = found || ok
				}
				out.Emit(ctx, ctx.Key(), fmt.Sprint(found))
				return nil
			}))
		})
		for i := range 5 {
			in.Send(fmt.Sprint("k", i), "x")
		}
		if got, want := out.Values(), slices.Repeat([]string{"false"}, 5); !slices.Equal(got, want) {
			t.Errorf("answers %q, want %q", got, want)
		}
		if err := app.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
}

// The tables come slowly, a batch a second; the records that need their last
// rows wait already.
func TestCallbacksWaitForTablesThatAreStillLoading(t *testing.T) {
	const rows = 50_000
	tt := tester.New(t, tester.WithPartitions(1))
	in, out := tester.Input(tt, words), tester.Output(tt, answers)
	tt.CreateTopic("names", 1)
	tt.CreateTopic("facts", 1)
	records := make([]kafka.Record, rows)
	for i := range records {
		records[i] = kafka.Record{Key: fmt.Append(nil, "k", i), Value: []byte("v"), Timestamp: int64(i)}
	}
	tt.SendRaw("names", 0, records...)
	tt.SendRaw("facts", 0, records...)
	for i := range 10 {
		in.Send(fmt.Sprint("k", rows-1-i), "x", reka.At(time.UnixMilli(1)))
	}
	for _, topic := range []string{"names", "facts"} {
		tt.Fail(tester.Fault{Op: tester.OpFetch, Topic: topic, Times: 20, Do: tester.Delay(time.Second)})
	}
	run(tt, "app", func() []processor.Edge {
		join, out := processor.Join(names, processor.TableFirst()), processor.Output(answers)
		lookup := processor.Lookup(reka.NewTable("facts", codec.String()))
		return []processor.Edge{join, lookup, out, processor.Input(words, func(ctx *processor.Context, _ string) error {
			_, joined := join.Get(ctx)
			_, found := lookup.Get(ctx, ctx.Key())
			out.Emit(ctx, ctx.Key(), fmt.Sprint(joined, ", ", found))
			return nil
		})}
	})
	equal(t, "answers while the tables load", out.Len(), 0)
	tt.Advance(time.Minute)
	if got, want := out.Values(), slices.Repeat([]string{"true, true"}, 10); !slices.Equal(got, want) {
		t.Errorf("answers %q, want %q", got, want)
	}
}

func TestGraphWithoutStateRunsAtOnceAndAfterACrash(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	in, out := tester.Input(tt, words), tester.Output(tt, answers)
	app := run(tt, "app", func() []processor.Edge {
		out := processor.Output(answers)
		return []processor.Edge{out, processor.Input(words, func(ctx *processor.Context, w string) error {
			out.Emit(ctx, ctx.Key(), w)
			return nil
		})}
	})
	in.Send("a", "1")
	equal(t, "answers", out.Len(), 1)
	app.Crash()
	app.Restart()
	in.Send("b", "2")
	// Without tables a member has no identity that would outlive the crash.
	tt.Advance(11 * time.Second)
	equal(t, "answers", out.Len(), 2)
}
