package stream_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

func Example() {
	b := stream.NewBuilder("word-count", processor.OnError(processor.Decode, processor.SkipAndCount))
	words := stream.FlatMap(stream.From(b, Clicks), func(_, line string, emit func(key, v string)) {
		for word := range strings.FieldsSeq(line) {
			emit(word, word)
		}
	}, stream.WithCodec(codec.String()))
	words.GroupByKey().Count(stream.Named("counts")).To(Sums)
	graph, err := b.Graph() // for processor.New
	fmt.Println(graph.Inputs(), graph.Outputs(), err)
	// Output:
	// [clicks] [sums] <nil>
}

// What the README shows.
func Example_perMinute() {
	type Click struct{ Page string }
	Clicks := reka.NewStream("clicks", codec.JSON[Click]())
	b := stream.NewBuilder("page-views")
	byPage := stream.From(b, Clicks).GroupBy(func(_ string, c Click) string { return c.Page })
	byPage.Windowed(window.Tumbling(time.Minute, 10*time.Second)).
		Count(stream.Named("views-per-minute")).OnClose().To(PerMinute)
	graph, err := b.Graph()
	fmt.Println(graph.Outputs(), err)
	// Output:
	// [per-minute] <nil>
}

func ExampleFrom() {
	demo(func(b *stream.Builder) {
		stream.From(b, Clicks).To(Out)
	},
		"clicks ann:/home@1", "clicks ⊥:/home@2", "clicks ann:⊥@3")
	// Output:
	// clicks ann:/home@1 → out ann:/home@1
	// clicks ⊥:/home@2   → out ⊥:/home@2
	// clicks ann:⊥@3     → out ann:⊥@3
}

func ExampleFlow_Filter() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		clicks.Filter(func(_, page string) bool { return page == "/buy" }).To(Out)
		clicks.FilterNot(func(_, page string) bool { return page == "/buy" }).To(Rest)
	},
		"clicks ann:/home@1", "clicks ann:/buy@2", "clicks ann:⊥@3")
	// Output:
	// clicks ann:/home@1 → rest ann:/home@1
	// clicks ann:/buy@2  → out ann:/buy@2
	// clicks ann:⊥@3     → out ann:⊥@3, rest ann:⊥@3
}

func ExampleMap() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		stream.Map(clicks, func(user, page string) (string, string) { return page, user }).To(Out)
	},
		"clicks ann:/home@1", "clicks ann:⊥@2")
	// Output:
	// clicks ann:/home@1 → out /home:ann@1
	// clicks ann:⊥@2     → –
}

func ExampleTryMap() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		stream.TryMap(clicks, func(user, page string) (string, string, error) {
			if page == "" {
				return "", "", errors.New("a click on nothing") // see processor.OnError
			}
			return page, user, nil
		}).To(Out)
	},
		"clicks ann:/home@1")
	// Output:
	// clicks ann:/home@1 → out /home:ann@1
}

func ExampleMapValues() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		stream.MapValues(clicks, func(_, page string) int64 { return int64(len(page)) }).To(Sums)
	},
		"clicks ann:/home@1", "clicks ann:⊥@2")
	// Output:
	// clicks ann:/home@1 → sums ann:5@1
	// clicks ann:⊥@2     → sums ann:⊥@2
}

func ExampleTryMapValues() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		stream.TryMapValues(clicks, func(_, page string) (string, error) {
			section, _, ok := strings.Cut(strings.TrimPrefix(page, "/"), "/")
			if !ok {
				return "", fmt.Errorf("page %q has no section", page)
			}
			return section, nil
		}).To(Out)
	},
		"clicks ann:/shop/tea@1")
	// Output:
	// clicks ann:/shop/tea@1 → out ann:shop@1
}

func ExampleFlatMap() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		stream.FlatMap(clicks, func(user, page string, emit func(key, v string)) {
			emit(user, page)
			emit(page, user)
		}).To(Out)
	},
		"clicks ann:/home@1")
	// Output:
	// clicks ann:/home@1 → out ann:/home@1, out /home:ann@1
}

func ExampleFlatMapValues() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		stream.FlatMapValues(clicks, func(_, page string, emit func(v string)) {
			for part := range strings.SplitSeq(page, "/") {
				if part != "" {
					emit(part)
				}
			}
		}).To(Out)
	},
		"clicks ann:/shop/tea@1", "clicks ann:/@2")
	// Output:
	// clicks ann:/shop/tea@1 → out ann:shop@1, out ann:tea@1
	// clicks ann:/@2         → –
}

func ExampleFlow_SelectKey() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		clicks.SelectKey(func(_, page string) string { return page }).To(Out)
	},
		"clicks ann:/home@1", "clicks ⊥:/home@2", "clicks ann:⊥@3")
	// Output:
	// clicks ann:/home@1 → out /home:/home@1
	// clicks ⊥:/home@2   → out /home:/home@2
	// clicks ann:⊥@3     → –
}

func ExampleFlow_Peek() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		clicks.Peek(func(user, page string) { fmt.Println(user, "was at", page) }).To(Out)
	},
		"clicks ann:/home@1", "clicks ann:⊥@2")
	// Output:
	// ann was at /home
	// clicks ann:/home@1 → out ann:/home@1
	// clicks ann:⊥@2     → out ann:⊥@2
}

func ExampleFlow_Merge() {
	demo(func(b *stream.Builder) {
		stream.From(b, Clicks).Merge(stream.From(b, Purchases)).To(Out)
	},
		"clicks ann:/home@1", "purchases bob:tea@2")
	// Output:
	// clicks ann:/home@1  → out ann:/home@1
	// purchases bob:tea@2 → out bob:tea@2
}

func ExampleFlow_Split() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		parts := clicks.Split(
			stream.Way[string]{Name: "shop", Take: func(_, page string) bool { return strings.HasPrefix(page, "/shop") }},
			stream.Way[string]{Name: "home", Take: func(_, page string) bool { return page == "/home" }},
		)
		parts.Way("shop").To(Out)
		parts.Default().To(Rest)
	},
		"clicks ann:/shop/tea@1", "clicks ann:/home@2", "clicks ann:/help@3")
	// Output:
	// clicks ann:/shop/tea@1 → out ann:/shop/tea@1
	// clicks ann:/home@2     → –
	// clicks ann:/help@3     → rest ann:/help@3
}

func ExampleFlow_ToBy() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		clicks.ToBy(func(_, page string) string {
			switch page {
			case "/shop":
				return Out.Name()
			case "/home":
				return "" // nowhere
			}
			return Rest.Name()
		}, Out, Rest)
	},
		"clicks ann:/shop@1", "clicks ann:/home@2", "clicks ann:/help@3")
	// Output:
	// clicks ann:/shop@1 → out ann:/shop@1
	// clicks ann:/home@2 → –
	// clicks ann:/help@3 → rest ann:/help@3
}

func ExampleFlow_Repartition() {
	demo(func(b *stream.Builder) {
		byPage := stream.From(b, Clicks).
			SelectKey(func(_, page string) string { return page }).
			Repartition(stream.Named("by-page"), stream.Partitions(12))
		byPage.To(Out)
	},
		"clicks ann:/home@1", "clicks bob:/home@2")
	// Output:
	// clicks ann:/home@1 → out /home:/home@1
	// clicks bob:/home@2 → out /home:/home@2
}

func ExampleProcess() {
	demo(func(b *stream.Builder) {
		last := processor.Store("last-page", codec.String())
		moves := stream.Process(stream.From(b, Clicks),
			func(ctx *processor.Context, page string, emit func(key, v string)) error {
				if was, ok := last.Get(ctx, ctx.Key()); ok {
					emit(ctx.Key(), was+" to "+page)
				}
				last.Set(ctx, ctx.Key(), page)
				return nil
			},
			[]processor.Edge{last})
		moves.To(Out)
	},
		"clicks ann:/home@1", "clicks bob:/help@2", "clicks ann:/shop@3")
	// Output:
	// clicks ann:/home@1 → –
	// clicks bob:/help@2 → –
	// clicks ann:/shop@3 → out ann:/home to /shop@3
}
