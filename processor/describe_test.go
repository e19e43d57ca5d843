package processor_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/window"
)

func nothing[T any](*processor.Context, T) error { return nil }

// wholeOrders is a graph that has one of each.
func wholeOrders(t testing.TB) *processor.Graph {
	t.Helper()
	str := codec.String()
	fiveMin := window.Tumbling(5*time.Minute, 10*time.Second)
	loop := processor.Loop(str)
	idle := processor.Timer("idle", processor.StreamTime)
	g, err := processor.NewGraph("orders",
		processor.Input(reka.NewStream("placed", str), nothing[string], processor.FromLatest(), processor.Nulls(), processor.MaxFuture(time.Hour)),
		processor.Input(reka.NewStream("paid", str), nothing[string]),
		processor.Join(reka.NewTable("customers", str), processor.TableFirst()),
		processor.Lookup(reka.NewTable("prices", str)),
		processor.Output(reka.NewStream("invoices", str)),
		processor.Persist(reka.GroupTable("orders", str)),
		processor.Store("drafts", str),
		processor.WindowStore("per-five", fiveMin, str),
		processor.SessionStore("visits", window.Session(time.Minute, 0), str),
		processor.VersionedStore("history", time.Hour, str),
		idle, idle.On(func(*processor.Context, time.Time) error { return nil }),
		processor.Every("flush", time.Minute, processor.WallClock, func(*processor.Context, time.Time) error { return nil }),
		loop, loop.On(nothing[string]),
		processor.Visitor("forget", nothing[string]),
		processor.OnError(processor.Decode, processor.DeadLetters("broken")),
		processor.OnError(processor.Process, processor.Retry(3, time.Second, processor.SkipAndCount)),
	)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestDescriptionOfAGraphOfHandles(t *testing.T) {
	d := wholeOrders(t).Describe()
	tester.Golden(t, "testdata/orders.txt", d.String())
	tester.Golden(t, "testdata/orders.json", string(d.JSON()))
	tester.Golden(t, "testdata/orders.mmd", d.Mermaid())
}

func TestDescriptionOfSeveralSubgraphs(t *testing.T) {
	d := assembled(t, rekeying(6)).Describe()
	tester.Golden(t, "testdata/rekeying.txt", d.String())
	tester.Golden(t, "testdata/rekeying.mmd", d.Mermaid())
}

func assembled(t testing.TB, parts []processor.Part) *processor.Graph {
	t.Helper()
	g, err := processor.Assemble("g", parts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestDescriptionIsReadBackFromItsJSON(t *testing.T) {
	for _, g := range []*processor.Graph{wholeOrders(t), assembled(t, rekeying(6))} {
		d := g.Describe()
		var back processor.Description
		if err := json.Unmarshal(d.JSON(), &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, d) {
			t.Errorf("read back:\n%+v\nwas:\n%+v", back, d)
		}
		if diffs := processor.Compare(back, g.Describe()); len(diffs) > 0 {
			t.Errorf("differences: %v", diffs)
		}
	}
}

func TestDescriptionIsACopy(t *testing.T) {
	g := assembled(t, rekeying(6))
	d := g.Describe()
	d.Subgraphs[1].Inputs[0].From[0], d.Subgraphs[0].Outputs[0] = "spoilt", "spoilt"
	if s := g.Describe().String(); strings.Contains(s, "spoilt") {
		t.Errorf("the graph has changed:\n%s", s)
	}
}

func TestProcessorDescribesCountsOnceItKnowsThem(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(3))
	tt.CreateTopic(words.Name(), 4)
	tt.CreateTopic(counted.Name(), 2)
	var p *processor.Processor
	tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		p, err = processor.New(i.Client(), assembled(t, rekeying(6)),
			processor.WithStorage(storage.Memory()), processor.WithGuarantee(processor.AtLeastOnce))
		if d, known := p.Describe(); known || d.Guarantee != "at least once" || d.Partitions != nil {
			t.Errorf("before Run: known %v, %s, counts %v", known, d.Guarantee, d.Partitions)
		}
		return []reka.Runner{p}, err
	})
	tt.Settle()
	d, known := p.Describe()
	want := map[string]int32{words.Name(): 4, counted.Name(): 2, byWord.Name(): 6, perWord.Name(): 6}
	if !known || !reflect.DeepEqual(d.Partitions, want) {
		t.Errorf("known %v, counts %v, want %v", known, d.Partitions, want)
	}
	tester.Golden(t, "testdata/running.txt", d.String())
	tester.Golden(t, "testdata/running.mmd", d.Mermaid())
}

func TestProcessorDescribesPartitionsThatCame(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	tester.Input(tt, words)
	s := &seen{all: map[int32]int{}}
	var p *processor.Processor
	tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		g, err := processor.NewGraph("g", s.reading()...)
		if err != nil {
			return nil, err
		}
		p, err = processor.New(i.Client(), g)
		return []reka.Runner{p}, err
	})
	tt.Settle()
	before, _ := p.Describe()
	grow(t, tt, words.Name(), 6)
	tt.Advance(look)
	after, _ := p.Describe()
	if before.Partitions[words.Name()] != 2 || after.Partitions[words.Name()] != 6 {
		t.Errorf("counts %v, then %v", before.Partitions, after.Partitions)
	}
}

// Names of stores, timers and operations may be anything.
func TestNamesCannotBreakADiagram(t *testing.T) {
	names := []string{`end`, `a"b`, "a`b", "x]y)", "<b>", "1. list", "- item", "a\nb", "a;b", "%%", "ü#&", `\`, "subgraph", "a-b", "a_b", "a|b", "{}"}
	p := processor.Part{Graph: graph.Graph{Subgraph: `sub "graph" [x]`, Inputs: []graph.Input{{Topic: "end"}}}, Inputs: []func(*processor.Context) error{nil}}
	for _, n := range names {
		p.Graph.Stores = append(p.Graph.Stores, graph.Store{Name: n, Of: n, Details: n})
		p.Graph.Operations = append(p.Graph.Operations, graph.Operation{ID: n, Kind: n, Details: []string{n}, Parents: names[:1], Stores: []string{n}})
	}
	d := assembled(t, []processor.Part{p}).Describe()
	tester.Golden(t, "testdata/names.mmd", d.Mermaid())
	if lines := strings.Count(d.String(), "\n"); lines != 2+1+1+1+2*len(names)+2 {
		t.Errorf("%d lines:\n%s", lines, d)
	}
}
