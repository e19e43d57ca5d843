package processor_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

var (
	byWord  = reka.NewStream("g-by-word-repartition", codec.Int64())
	counted = reka.NewStream("counted", codec.Int64())
	perWord = reka.NewTable(reka.ChangelogTopic("g", "per-word"), codec.Int64())
)

// rekeying are the parts of a group that counts words: "read" sends each one
// to its own key, "count" counts them there and tells each count. partitions
// are declared of the topic between them, 0: none.
func rekeying(partitions int32) []processor.Part {
	return []processor.Part{reading("read", words.Name(), byWord), counting("count", partitions, "read")}
}

// reading is a part that emits 1 at the key that each word of a topic names.
func reading(name, topic string, to reka.Stream[int64]) processor.Part {
	out := processor.Output(to)
	return processor.Part{
		Graph: graph.Graph{Subgraph: name, Inputs: []graph.Input{{Topic: topic}}},
		Edges: []processor.Edge{out},
		Inputs: []func(*processor.Context) error{func(ctx *processor.Context) error {
			out.Emit(ctx, string(ctx.Record().Source().Value), 1)
			return nil
		}},
	}
}

// counting is a part that counts what comes through byWord, of partitions (0:
// not said).
func counting(name string, partitions int32, from ...string) processor.Part {
	rows, out := processor.Store("per-word", codec.Int64()), processor.Output(counted)
	return processor.Part{
		Graph: graph.Graph{Subgraph: name, Inputs: []graph.Input{
			{Topic: byWord.Name(), Repartition: &graph.Repartition{Partitions: partitions, From: from}},
		}},
		Edges: []processor.Edge{rows, out},
		Inputs: []func(*processor.Context) error{func(ctx *processor.Context) error {
			n, _ := rows.Get(ctx, ctx.Key())
			rows.Set(ctx, ctx.Key(), n+1)
			out.Emit(ctx, ctx.Key(), n+1)
			return nil
		}},
	}
}

// parted is a world in which a group of two parts counts words.
type parted struct {
	t          testing.TB
	tt         *tester.Tester
	in         *tester.InputTopic[string]
	partitions int32 // of the topic between the parts
	guarantee  processor.Guarantee
	sent       map[string]int64
	nodes      map[string]*partedNode
	n          int
}

type partedNode struct {
	*tester.Instance
	p *processor.Processor
}

// newParted makes a world whose input and inner topic have these counts, while
// brokers create topics with three.
func newParted(t testing.TB, inputs, inner int32, g processor.Guarantee) *parted {
	tt := tester.New(t, tester.WithPartitions(3), tester.WithLogger(zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))))
	tt.CreateTopic(words.Name(), inputs)
	tt.CreateTopic(counted.Name(), 2)
	return &parted{t: t, tt: tt, in: tester.Input(tt, words), partitions: inner, guarantee: g, sent: map[string]int64{}, nodes: map[string]*partedNode{}}
}

func (x *parted) start(name string, opts ...processor.Option) *partedNode {
	x.t.Helper()
	n := &partedNode{}
	x.nodes[name] = n
	disk := newDisk(name)
	n.Instance = x.tt.Start(name, func(i *tester.Instance) (_ []reka.Runner, err error) {
		g, err := processor.Assemble("g", rekeying(x.partitions)...)
		if err != nil {
			return nil, err
		}
		n.p, err = processor.New(i.Client(), g, append([]processor.Option{
			processor.WithStorage(i.Guard(disk)), processor.WithGuarantee(x.guarantee),
			processor.WithTuning(processor.Tuning{FlushBytes: 1}),
		}, opts...)...)
		return []reka.Runner{n.p}, err
	})
	return n
}

// send sends n words, of seven, at eleven keys.
func (x *parted) send(n int) {
	x.t.Helper()
	for range n {
		x.n++
		w := fmt.Sprint("w", x.n%7)
		x.sent[w]++
		x.in.Send(fmt.Sprint("k", x.n%11), w)
	}
}

// counts returns the rows of the group's store.
func (x *parted) counts() map[string]int64 {
	return tester.Table(x.tt, perWord).All()
}

// complete reports whether every word was counted.
func (x *parted) complete() bool {
	got := x.counts()
	for w, n := range x.sent {
		if got[w] < n {
			return false
		}
	}
	return true
}

// check lets time pass until all words are counted, at most a minute, and
// compares: with exactly once each word is counted once and each count is told
// once, in order.
func (x *parted) check() {
	x.t.Helper()
	for range 120 {
		if x.complete() {
			break
		}
		x.tt.Advance(500 * time.Millisecond)
	}
	x.tt.Advance(2 * time.Second)
	got := x.counts()
	if !x.complete() || x.guarantee == processor.ExactlyOnce && !maps.Equal(got, x.sent) {
		x.t.Errorf("counted %v, sent %v", got, x.sent)
	}
	next := map[string]int64{}
	for _, r := range tester.Output(x.tt, counted).All() {
		if next[r.Key]++; x.guarantee == processor.ExactlyOnce && r.Value != next[r.Key] {
			x.t.Errorf("output %d of %s, want %d", r.Value, r.Key, next[r.Key])
		}
		if r.Value > got[r.Key] {
			x.t.Errorf("output %d of %s, its row is %d", r.Value, r.Key, got[r.Key])
		}
	}
	for w, n := range got {
		if next[w] < n {
			x.t.Errorf("%d outputs of %s, its row is %d", next[w], w, n)
		}
	}
}

// tasks returns which tasks an instance has, as subgraph/partition.
func (n *partedNode) tasks() (all []string) {
	for _, p := range n.p.Stats().Partitions {
		all = append(all, fmt.Sprintf("%s/%d", p.Subgraph, p.Partition))
	}
	return all
}
