package stream_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/window"
)

// shopDescribed builds a graph and describes it.
func shopDescribed(t testing.TB, build func(*stream.Builder)) processor.Description {
	t.Helper()
	b := stream.NewBuilder("shop", processor.OnError(processor.Decode, processor.DeadLetters("broken")))
	build(b)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g.Describe()
}

func shopLong(_, v string) bool      { return len(v) > 3 }
func shopKey(_, v string) string     { return v }
func shopBoth(_, l, r string) string { return l + r }
func shopLast(_, b string) string    { return b }
func shopUpper(_, v string) string   { return strings.ToUpper(v) }
func shopWindows() window.Windows    { return window.Tumbling(5*time.Minute, 10*time.Second) }
func shopText() stream.Option        { return stream.WithCodec(codec.String()) }
func shopJoin() stream.JoinWindow    { return stream.Within(time.Minute, 10*time.Second) }

func shopCounts(topic string) reka.WindowTable[int64] {
	return reka.NewWindowTable(topic, shopWindows(), codec.Int64())
}

// shop has steps without state, counts behind a repartition topic, windows and
// a join of streams, in two subgraphs.
func shop(b *stream.Builder) {
	views := stream.From(b, text("views")).Filter(shopLong)
	byPage := views.GroupBy(shopKey, stream.Partitions(6))
	byPage.Count(stream.Named("views-by-page"))
	byPage.Windowed(shopWindows()).Late(text("late-views")).Count().OnClose().To(shopCounts("page-views"))
	buys := stream.MapValues(stream.From(b, text("buys")), shopUpper, shopText())
	stream.LeftJoin(views, buys, shopJoin(), func(_, l string, r *string) string { return l }, shopText()).To(text("bought"))
}

func TestDescriptionOfAGraphOfOperations(t *testing.T) {
	d := shopDescribed(t, shop)
	tester.Golden(t, "testdata/shop.txt", d.String())
	tester.Golden(t, "testdata/shop.json", string(d.JSON()))
	tester.Golden(t, "testdata/shop.mmd", d.Mermaid())
}

func TestSecondBuildOfABuilderIsDescribedAlike(t *testing.T) {
	b := stream.NewBuilder("shop")
	shop(b)
	first, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if a, b := first.Describe(), again.Describe(); !reflect.DeepEqual(a, b) {
		t.Errorf("first:\n%v\nagain:\n%v", a, b)
	}
}

// shopPlan is a random graph: what each step does, and behind which flow.
type shopPlan []struct{ what, behind, other int }

func randomShop(r *rand.Rand, n int) shopPlan {
	p := make(shopPlan, n)
	for i := range p {
		p[i].what, p[i].behind, p[i].other = r.IntN(9), r.IntN(100), r.IntN(100)
	}
	return p
}

// build declares a plan. Before step at it declares what has nothing to do
// with the rest of the graph.
func (p shopPlan) build(b *stream.Builder, at int) {
	flows := []stream.Flow[string]{stream.From(b, text("a")), stream.From(b, text("b")), stream.From(b, text("c"))}
	for i, s := range p {
		if i == at {
			shopApart(b)
		}
		f, o := flows[s.behind%len(flows)], flows[s.other%len(flows)]
		switch s.what {
		case 0:
			flows = append(flows, f.Filter(shopLong))
		case 1:
			flows = append(flows, f.SelectKey(shopKey))
		case 2:
			flows = append(flows, stream.MapValues(f, shopUpper, shopText()))
		case 3:
			flows = append(flows, f.Merge(o))
		case 4:
			f.GroupByKey().Count()
		case 5:
			flows = append(flows, stream.Changes(f.GroupBy(shopKey).Reduce(shopLast)))
		case 6:
			f.GroupByKey().Windowed(shopWindows()).Count().OnClose()
		case 7:
			flows = append(flows, stream.Join(f, o, shopJoin(), shopBoth, shopText()))
		case 8:
			f.To(text("out"))
		}
	}
	if at == len(p) {
		shopApart(b)
	}
}

// shopApart declares some of everything behind a topic of its own.
func shopApart(b *stream.Builder) {
	f := stream.From(b, text("apart")).Filter(shopLong)
	f.GroupBy(shopKey).Count()
	f.GroupByKey().Windowed(shopWindows()).Count().OnClose()
	stream.Join(f, f.SelectKey(shopKey), shopJoin(), shopBoth, shopText()).To(text("out"))
}

func TestUnrelatedOperationsRenameNothing(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := randomShop(r, 1+r.IntN(12))
		old := shopDescribed(t, func(b *stream.Builder) { p.build(b, -1) })
		next := shopDescribed(t, func(b *stream.Builder) { p.build(b, r.IntN(len(p)+1)) })
		for _, s := range old.Subgraphs {
			if !slices.ContainsFunc(next.Subgraphs, func(n processor.SubgraphDescription) bool { return reflect.DeepEqual(s, n) }) {
				t.Fatalf("seed %d: subgraph %s has changed:\n%v\n%v", seed, s.Name, old, next)
			}
		}
		for _, d := range processor.Compare(old, next) {
			if d.Severity != processor.Compatible || d.Change != processor.Added {
				t.Fatalf("seed %d: %v", seed, d)
			}
		}
	}
}

func TestFurtherOperationsRenameNothing(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := randomShop(r, 2+r.IntN(12))
		old := shopDescribed(t, func(b *stream.Builder) { p[:len(p)-1].build(b, -1) })
		next := shopDescribed(t, func(b *stream.Builder) { p.build(b, -1) })
		var now []processor.OperationDescription
		for _, s := range next.Subgraphs {
			now = append(now, s.Operations...)
		}
		for _, s := range old.Subgraphs {
			for _, o := range s.Operations {
				if !slices.ContainsFunc(now, func(n processor.OperationDescription) bool { return reflect.DeepEqual(o, n) }) {
					t.Fatalf("seed %d: operation %s has changed:\n%v\n%v", seed, o.ID, old, next)
				}
			}
		}
		for _, d := range processor.Compare(old, next) {
			if d.Severity > processor.NeedsStop {
				t.Fatalf("seed %d: %v", seed, d)
			}
		}
	}
}

func TestCompareFollowsOperationsToTheirNewNames(t *testing.T) {
	named := func(store, topic string) func(b *stream.Builder) {
		return func(b *stream.Builder) {
			stream.From(b, text("views")).SelectKey(shopKey).GroupByKey(stream.Named(topic)).Count(stream.Named(store))
		}
	}
	got := shopDifferences(processor.Compare(shopDescribed(t, named("counts", "paged")), shopDescribed(t, named("totals", "by-page"))))
	want := []string{
		"loses state: repartition topic shop-paged-repartition renamed: it is shop-by-page-repartition now: records in the old one that are not processed yet stay there",
		"loses state: store counts renamed: it is totals now, and that begins empty: its rows stay in shop-counts-changelog; give it its old name to keep them",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCompareTellsWindowsThatDoNotFitFromLongerGrace(t *testing.T) {
	counting := func(w window.Windows) processor.Description {
		return shopDescribed(t, func(b *stream.Builder) {
			stream.From(b, text("views")).GroupByKey().Windowed(w).Count()
		})
	}
	old := counting(window.Tumbling(5*time.Minute, 10*time.Second))
	for _, c := range []struct {
		w    window.Windows
		want string
	}{
		{
			window.Tumbling(5*time.Minute, time.Minute),
			"compatible: store views-count changed: it was of tumbling 5m, grace 10s, and is of tumbling 5m, grace 1m, which holds from then on",
		},
		{
			window.Tumbling(time.Minute, 10*time.Second),
			"loses state: store views-count changed: it was of tumbling 5m, grace 10s, and is of tumbling 1m, grace 10s: rows that it has do not fit; give it another name",
		},
		{
			window.Hopping(5*time.Minute, time.Minute, 10*time.Second),
			"loses state: store views-count changed: it was of tumbling 5m, grace 10s, and is of hopping 5m every 1m, grace 10s: rows that it has do not fit; give it another name",
		},
	} {
		if got := shopDifferences(processor.Compare(old, counting(c.w))); !slices.Equal(got, []string{c.want}) {
			t.Errorf("got  %s\nwant %s", strings.Join(got, "\n"), c.want)
		}
	}
}

// shopDifferences are differences as text.
func shopDifferences(ds []processor.Difference) (out []string) {
	for _, d := range ds {
		out = append(out, d.String())
	}
	return out
}

// wideShop has what keeps or reads something in every other way.
func wideShop(b *stream.Builder) {
	views := stream.From(b, text("views"))
	users := stream.FromTable(b, rows("users"))
	pages := stream.FromTable(b, rows("pages"), stream.Named("kept-pages"))
	prices := stream.FromTable(b, rows("prices"), stream.Versioned(time.Hour))
	stream.JoinTable(views, users, shopBoth, shopText()).To(text("known"))
	stream.JoinTable(views, prices, shopBoth, shopText())
	stream.JoinGlobal(views, stream.Global(b, rows("countries")), func(_, v string) (string, bool) { return v, true }, shopBoth, shopText())
	stream.JoinForeign(users, pages, func(_, v string) (string, bool) { return v, true }, shopBoth, shopText())
	stream.JoinForeign(users, pages, func(_, v string) (string, bool) { return v, true }, shopBoth, shopText())
	stream.GroupTable(pages, func(k, v string) (string, string) { return v, k }).Count()
	views.SelectKey(shopKey).ToTable()
	views.GroupByKey().Windowed(window.Session(time.Minute, 0)).Count()
	views.GroupByKey().Windowed(window.Sliding(time.Minute, 0)).Count()
}

func TestEverythingOfASubgraphBelongsToAnOperation(t *testing.T) {
	d := shopDescribed(t, wideShop)
	ids := map[string]bool{}
	for _, s := range d.Subgraphs {
		var read, written, lookedUp, kept []string
		for _, o := range s.Operations {
			if ids[o.ID] {
				t.Errorf("two operations have the id %s", o.ID)
			}
			ids[o.ID] = true
			for _, p := range o.Parents {
				if !ids[p] {
					t.Errorf("operation %s comes before its parent %s", o.ID, p)
				}
			}
			read, written = append(read, o.Reads...), append(written, o.Writes...)
			lookedUp, kept = append(lookedUp, o.Lookups...), append(kept, o.Stores...)
		}
		for _, in := range s.Inputs {
			if !slices.Contains(read, in.Topic) {
				t.Errorf("no operation reads %s", in.Topic)
			}
		}
		for _, st := range s.Stores {
			if !slices.Contains(kept, st.Name) {
				t.Errorf("no operation keeps %s", st.Name)
			}
		}
		for _, topic := range s.Outputs {
			if !slices.Contains(written, topic) {
				t.Errorf("no operation writes %s", topic)
			}
		}
		for _, topic := range s.Lookups {
			if !slices.Contains(lookedUp, topic) {
				t.Errorf("no operation looks up %s", topic)
			}
		}
	}
	if len(ids) < 25 {
		t.Errorf("only %d operations", len(ids))
	}
}
