package processor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// A group of two parts, whose topics have different partition counts, counts
// right while instances come, are killed, come back and leave.
func TestTwoPartsCountRightWhileInstancesComeAndGo(t *testing.T) {
	for guarantee, g := range guarantees {
		t.Run(guarantee, func(t *testing.T) {
			x := newParted(t, 4, 6, g)
			first := x.start("p1")
			x.send(50)
			x.check()
			x.start("p2")
			x.send(50)
			x.check()
			first.Crash()
			x.send(50)
			x.tt.Advance(30 * time.Second)
			x.check()
			first.Restart()
			x.send(50)
			x.check()
			x.start("p3")
			x.send(50)
			x.tt.Rebalance("g")
			x.send(50)
			x.check()
			if err := x.nodes["p2"].Stop(); err != nil {
				t.Error(err)
			}
			x.send(50)
			x.check()
		})
	}
}

// Every task runs on one instance, and the parts are shared out together.
func TestTasksOfAllPartsAreSharedOut(t *testing.T) {
	x := newParted(t, 4, 6, processor.ExactlyOnce)
	x.start("p1")
	equal(t, "tasks of one", strings.Join(x.nodes["p1"].tasks(), " "), "read/0 read/1 read/2 read/3 count/0 count/1 count/2 count/3 count/4 count/5")
	x.start("p2")
	x.tt.Advance(10 * time.Second)
	var all []string
	for _, n := range x.nodes {
		equal(t, "tasks of one of two", len(n.tasks()), 5)
		all = append(all, n.tasks()...)
	}
	x.start("p3")
	x.tt.Advance(10 * time.Second)
	slices.Sort(all)
	equal(t, "all tasks", strings.Join(all, " "), "count/0 count/1 count/2 count/3 count/4 count/5 read/0 read/1 read/2 read/3")
	all = nil
	for _, n := range x.nodes {
		if len(n.tasks()) < 3 || len(n.tasks()) > 4 {
			t.Errorf("one of three has %v", n.tasks())
		}
		all = append(all, n.tasks()...)
	}
	equal(t, "tasks of three", len(all), 10)
}

// The process is killed inside a transaction of both parts, at any request of
// it, and comes back, or another one takes over.
func TestTwoPartsKilledInsideATransaction(t *testing.T) {
	for _, op := range []tester.Op{
		tester.OpAddPartitions, tester.OpProduce, tester.OpAddOffsets, tester.OpTxnOffsets, tester.OpEndTxn, tester.OpApply,
	} {
		for when, act := range map[string]tester.Action{"before": tester.CrashBefore, "within": tester.CrashWithin, "after": tester.CrashAfter} {
			for _, again := range []bool{false, true} {
				t.Run(fmt.Sprint(op, " ", when, " again ", again), func(t *testing.T) {
					x := newParted(t, 2, 3, processor.ExactlyOnce)
					app := x.start("p1")
					x.send(20)
					x.check()
					x.tt.Fail(tester.Fault{Op: op, Instance: "p1", Do: act})
					x.send(20)
					x.tt.Advance(time.Second)
					if !app.Crashed() {
						t.Fatal("it was not killed")
					}
					if again {
						app.Restart()
					} else {
						x.start("p2")
					}
					x.check()
				})
			}
		}
	}
}

// Anything happens in any order.
func TestTwoPartsCountRightWhateverHappens(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			x := newParted(t, 1+rnd.Int32N(5), rnd.Int32N(6), processor.ExactlyOnce)
			names := []string{"p1", "p2", "p3"}
			for _, name := range names {
				x.start(name)
			}
			for range 25 {
				n := x.nodes[names[rnd.IntN(len(names))]]
				switch rnd.IntN(7) {
				case 0:
					n.Crash()
				case 1:
					n.Restart()
				case 2:
					x.tt.Rebalance("g")
				case 3:
					if !n.Crashed() {
						x.tt.Expel("g", n.Instance)
					}
				}
				x.send(rnd.IntN(20))
				x.tt.Advance(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			}
			for _, name := range names {
				if x.nodes[name].Crashed() {
					x.nodes[name].Restart()
				}
			}
			x.check()
		})
	}
}

// The observer is told of each subgraph's partitions, and a rebalance that
// changes nothing interrupts none of them.
func TestObserverIsToldOfAllParts(t *testing.T) {
	x := newParted(t, 2, 3, processor.ExactlyOnce)
	var told []string // on the processor's goroutine, read when it rests
	n := x.start("p1", processor.WithObserver(processor.Observer{
		Assigned: func(p []int32) { told = append(told, fmt.Sprint("assigned ", p)) },
		Running:  func(int32) { told = append(told, "running") },
		Revoked:  func([]int32) { told = append(told, "revoked") },
	}))
	x.send(10)
	x.check()
	x.tt.Rebalance("g")
	x.send(10)
	x.check()
	equal(t, "told", strings.Join(told, ", "), "assigned [0 1], assigned [0 1 2]"+strings.Repeat(", running", 5))
	if err := n.Stop(); err != nil {
		t.Error(err)
	}
	equal(t, "revoked at the end", strings.Count(strings.Join(told, " "), "revoked"), 5)
}

func TestStatsTellTheSubgraph(t *testing.T) {
	x := newParted(t, 1, 2, processor.ExactlyOnce)
	n := x.start("p1")
	x.send(21)
	x.tt.Advance(time.Second)
	var got []string
	for _, p := range n.p.Stats().Partitions {
		got = append(got, fmt.Sprint(p.Subgraph, "/", p.Partition, " ", p.Inputs[0].Topic))
		if p.Subgraph == "read" {
			equal(t, "records of read", p.Records, 21)
		}
	}
	equal(t, "partitions", strings.Join(got, ", "), "read/0 words, count/0 g-by-word-repartition, count/1 g-by-word-repartition")
}

// A handle may serve several parts; visitors run where they are declared; what
// the task keeps for package stream is the same for all its records.
func TestHandlesAreFoundInThePartThatUsesThem(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	in := tester.Input(tt, words)
	tester.Output(tt, counted)
	var p *processor.Processor
	var seen seenRows
	seen.rows = map[string]string{}
	out, between := processor.Output(counted), processor.Output(byWord)
	st := processor.Persist(table)
	rows := processor.Visitor("rows", func(ctx *processor.Context, to *seenRows) error {
		w, _ := st.Get(ctx)
		to.set(ctx.Key(), w)
		return nil
	})
	number := func(ctx *processor.Context) int64 {
		n, _ := (*ctx.Local()).(int64)
		*ctx.Local() = n + 1
		return n + 1
	}
	parts := []processor.Part{{
		Graph: graph.Graph{Subgraph: "one", Inputs: []graph.Input{{Topic: words.Name()}}},
		Edges: []processor.Edge{between, out},
		Inputs: []func(*processor.Context) error{func(ctx *processor.Context) error {
			out.Emit(ctx, "one", number(ctx))
			between.Emit(ctx, ctx.Key(), 7)
			return nil
		}},
	}, {
		Graph: graph.Graph{Subgraph: "two", Inputs: []graph.Input{{Topic: byWord.Name(), Repartition: &graph.Repartition{From: []string{"one"}}}}},
		Edges: []processor.Edge{out, rows, st},
		Inputs: []func(*processor.Context) error{func(ctx *processor.Context) error {
			st.Set(ctx, "seen")
			out.Emit(ctx, "two", number(ctx))
			return nil
		}},
	}}
	tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		g, err := processor.Assemble("g", parts...)
		if err != nil {
			return nil, err
		}
		p, err = processor.New(i.Client(), g, processor.WithStorage(i.Storage()),
			processor.WithMiddleware(func(ctx *processor.Context, next func(*processor.Context) error) error {
				return next(ctx.With(ctx))
			}))
		return []reka.Runner{p}, err
	})
	for range 3 {
		in.Send("k", "x")
	}
	tt.Advance(time.Second)
	got := map[string][]int64{}
	for _, r := range tester.Output(tt, counted).All() {
		got[r.Key] = append(got[r.Key], r.Value)
	}
	equal(t, "outputs", fmt.Sprint(got), "map[one:[1 2 3] two:[1 2 3]]")
	if n, err := rows.Run(t.Context(), p, &seen); n != 1 || err != nil {
		t.Errorf("visited %d, %v", n, err)
	}
	equal(t, "rows", fmt.Sprint(seen.rows), "map[k:seen]")
}

func TestPartsThatDoNotGoTogetherAreRefused(t *testing.T) {
	ok := func() []processor.Part { return rekeying(0) }
	for says, change := range map[string]func([]processor.Part){
		"subgraph count is declared twice":                                         func(p []processor.Part) { p[0].Graph.Subgraph = "count" },
		"a subgraph without a name":                                                func(p []processor.Part) { p[0].Graph.Subgraph = "" },
		"2 callbacks for 1 inputs":                                                 func(p []processor.Part) { p[0].Inputs = append(p[0].Inputs, p[0].Inputs[0]) },
		"input words belongs to subgraph read and to subgraph count":               func(p []processor.Part) { p[1].Graph.Joins = []graph.Join{{Topic: "words"}} },
		"store per-word belongs to subgraph read and to subgraph count":            func(p []processor.Part) { p[0].Graph.Stores = []graph.Store{{Name: "per-word"}} },
		"changelog g-per-word-changelog belongs to":                                func(p []processor.Part) { p[0].Graph.Stores = []graph.Store{{Name: "x", Changelog: perWord.Name()}} },
		"change the store instead of emitting to it":                               func(p []processor.Part) { p[0].Graph.Outputs = []graph.Output{{Topic: perWord.Name()}} },
		"topic g-per-word-changelog is a changelog of this group (subgraph count)": func(p []processor.Part) { p[0].Graph.Joins = []graph.Join{{Topic: perWord.Name()}} },
		"topic words is looked up, and another subgraph reads or keeps it":         func(p []processor.Part) { p[1].Graph.Lookups = []graph.Lookup{{Topic: "words"}} },
		"error policies differ from those of subgraph read": func(p []processor.Part) {
			p[1].Edges = append(p[1].Edges, processor.OnError(processor.Process, processor.SkipAndCount))
		},
		"repartition topic g-by-word-repartition: subgraph other does not emit to it": func(p []processor.Part) { p[1].Graph.Inputs[0].Repartition.From = []string{"other"} },
		"repartition topic g-by-word-repartition: nobody writes to it":                func(p []processor.Part) { p[1].Graph.Inputs[0].Repartition.From = nil },
	} {
		parts := ok()
		change(parts)
		if _, err := processor.Assemble("g", parts...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
	if _, err := processor.Assemble("g", ok()...); err != nil {
		t.Error(err)
	}
	if _, err := processor.Assemble("g"); err == nil {
		t.Error("a graph without parts is taken")
	}
}

// A failure says in which subgraph it was.
func TestFailureOfAPartNamesIt(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, words)
	tester.Output(tt, counted)
	broken := errors.New("broken")
	parts := rekeying(0)
	parts[1].Inputs[0] = func(*processor.Context) error { return broken }
	app := startParts(tt, "app", parts)
	in.Send("k", "x")
	tt.Advance(time.Second)
	if err := app.Err(); !errors.Is(err, broken) || !strings.Contains(err.Error(), "subgraph count: task 0") {
		t.Errorf("error %v", err)
	}
}

// startParts starts an instance of a group "g" of parts.
func startParts(tt *tester.Tester, name string, parts []processor.Part) *tester.Instance {
	return tt.Start(name, func(i *tester.Instance) ([]reka.Runner, error) {
		g, err := processor.Assemble("g", parts...)
		if err != nil {
			return nil, err
		}
		p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return []reka.Runner{p}, err
	})
}

// A version with one more part joins: it alone runs that part, the others are
// shared.
func TestPartThatOnlyNewMembersHaveRunsThere(t *testing.T) {
	x := newParted(t, 2, 2, processor.ExactlyOnce)
	x.tt.CreateTopic(moreWords.Name(), 3)
	x.start("p1")
	x.send(20)
	more := append(rekeying(2), reading("more", moreWords.Name(), counted))
	app := startParts(x.tt, "p2", more)
	x.tt.Advance(10 * time.Second)
	equal(t, "tasks of the old version", len(x.nodes["p1"].tasks()), 2)
	tester.Input(x.tt, moreWords).Send("k", "x")
	x.send(20)
	x.tt.Advance(time.Second)
	added := 0
	for _, r := range tester.Output(x.tt, counted).All() {
		if r.Key == "x" {
			added++
		}
	}
	equal(t, "outputs of the added part", added, 1)
	if err := app.Err(); err != nil {
		t.Error(err)
	}
	equal(t, "counted", fmt.Sprint(x.counts()), fmt.Sprint(x.sent))
}
