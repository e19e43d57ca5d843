package stream_test

import (
	"fmt"

	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
)

// What is wrong with a graph is told together.
func ExampleBuilder_Graph() {
	b := stream.NewBuilder("shop")
	clicks := stream.From(b, Clicks)
	lengths := stream.MapValues(clicks, func(_, page string) int { return len(page) })
	lengths.SelectKey(func(_ string, n int) string { return fmt.Sprint(n) }).GroupByKey().Count()
	clicks.Filter(nil)
	_, err := b.Graph()
	fmt.Println(err)
	// Output:
	// stream: graph shop: keyed "clicks-keyed": needs a codec for int: give it to the operation that makes them (WithCodec)
	// filter of clicks: no function
}

// Names of what is kept. Without one, it is made of what stands before.
func ExampleNamed() {
	b := stream.NewBuilder("shop")
	clicks := stream.From(b, Clicks)
	clicks.GroupByKey().Count()
	clicks.GroupBy(func(_, page string) string { return page }, stream.Named("by-page")).Count(stream.Named("page-counts"))
	graph, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, part := range graph.Describe().Subgraphs {
		for _, s := range part.Stores {
			fmt.Println(part.Name, s.Name, s.Changelog)
		}
	}
	// Output:
	// clicks clicks-count shop-clicks-count-changelog
	// by-page-repartition page-counts shop-page-counts-changelog
}

// What a change of a graph does to what its group keeps.
func Example_compare() {
	version := func(build func(clicks stream.Flow[string])) processor.Description {
		b := stream.NewBuilder("shop")
		build(stream.From(b, Clicks))
		graph, err := b.Graph()
		if err != nil {
			fmt.Println(err)
		}
		return graph.Describe()
	}
	first := version(func(clicks stream.Flow[string]) {
		clicks.GroupByKey().Count(stream.Named("counts")).To(Sums)
	})
	second := version(func(clicks stream.Flow[string]) {
		clicks.Filter(func(_, page string) bool { return page != "/ping" }).GroupByKey().Count(stream.Named("counts")).To(Sums)
	})
	third := version(func(clicks stream.Flow[string]) {
		clicks.GroupByKey().Count(stream.Named("clicks")).To(Sums)
	})
	fmt.Println("second version:", processor.Compare(first, second))
	for _, d := range processor.Compare(first, third) {
		fmt.Println("third version:", d)
	}
	// Output:
	// second version: []
	// third version: loses state: store counts renamed: it is clicks now, and that begins empty: its rows stay in shop-counts-changelog; give it its old name to keep them
	// third version: needs a stop: subgraph clicks changed: the new version lacks shop-counts-changelog, the old one shop-clicks-changelog: neither runs beside the other
}
