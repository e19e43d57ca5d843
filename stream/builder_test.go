package stream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

func TestNothingIsDeclaredAfterGraph(t *testing.T) {
	var in stream.Flow[string]
	var b *stream.Builder
	s := play(t, "in", func(builder *stream.Builder) {
		b = builder
		in = stream.From(b, text("in"))
		in.To(text("out"))
	})
	in.Filter(func(string, string) bool { return true }).To(text("other"))
	in.GroupByKey().Count()
	if _, err := b.Graph(); err == nil || !strings.Contains(err.Error(), "declared after Graph") {
		t.Errorf("error %v", err)
	}
	s.send("in", "a:x@1")
	s.wants("out", "a:x@1")
}

// Mistakes are errors of Graph that name the operation and the option.
func TestMistakesAreReportedByGraph(t *testing.T) {
	w := window.Tumbling(time.Minute, 0)
	tables := rows("table")
	for name, c := range map[string]struct {
		build func(b *stream.Builder)
		says  []string
	}{
		"window without size": {func(b *stream.Builder) {
			stream.From(b, text("in")).GroupByKey().Windowed(window.Tumbling(0, 0)).Count()
		}, []string{"count", "in-count", "size"}},
		"advance over size": {func(b *stream.Builder) {
			stream.From(b, text("in")).GroupByKey().Windowed(window.Hopping(time.Second, 2*time.Second, 0)).Count()
		}, []string{"count", "advance"}},
		"negative grace": {func(b *stream.Builder) {
			stream.From(b, text("in")).GroupByKey().Windowed(window.Session(time.Second, -1)).Count()
		}, []string{"count", "grace"}},
		"retention below size and grace": {func(b *stream.Builder) {
			stream.From(b, text("in")).GroupByKey().Windowed(w.WithRetention(time.Second)).Count()
		}, []string{"count", "retention"}},
		"join that ends before it begins": {func(b *stream.Builder) {
			in := stream.From(b, text("in"))
			stream.Join(in, in, stream.Between(time.Second, -2*time.Second, 0), func(_, l, r string) string { return l + r })
		}, []string{"join", "in-join", "ends before it begins"}},
		"negative grace of a join": {func(b *stream.Builder) {
			in := stream.From(b, text("in"))
			stream.Join(in, in, stream.Within(time.Second, -1*time.Second), func(_, l, r string) string { return l + r })
		}, []string{"join", "grace"}},
		"one name twice": {func(b *stream.Builder) {
			keys := stream.From(b, text("in")).GroupByKey()
			keys.Count(stream.Named("n"))
			keys.Count(stream.Named("n"))
		}, []string{"count", `"n"`}},
		"name that no topic can have": {func(b *stream.Builder) {
			stream.From(b, text("in")).GroupByKey().Count(stream.Named("a b"))
		}, []string{"count", `"a b"`}},
		"topic of two types": {func(b *stream.Builder) {
			stream.FromTable(b, tables)
			stream.FromTable(b, reka.NewTable("table", codec.Int64()))
		}, []string{"table", "two types"}},
		"output without a name": {func(b *stream.Builder) {
			stream.From(b, text("in")).To(text(""))
		}, []string{"to", "without a name"}},
		"cycle": {func(b *stream.Builder) {
			stream.From(b, text("in")).Filter(func(string, string) bool { return true }).To(text("in"))
		}, []string{"to", "topic in", "cycle"}},
		"cycle through keys": {func(b *stream.Builder) {
			n := stream.From(b, text("in")).GroupBy(func(_, v string) string { return v }).Reduce(func(a, _ string) string { return a })
			stream.Changes(n).To(text("in"))
		}, []string{"to", "topic in", "cycle"}},
		"no codec": {func(b *stream.Builder) {
			in := stream.From(b, text("in"))
			stream.MapValues(in, func(_, v string) int64 { return int64(len(v)) }).GroupByKey().Reduce(func(a, b int64) int64 { return a + b })
		}, []string{"reduce", "codec", "int64"}},
		"codec of another type": {func(b *stream.Builder) {
			stream.From(b, text("in")).GroupByKey().Count(stream.WithCodec(codec.String()))
		}, []string{"count", "WithCodec"}},
		"partitions of what repartitions nothing": {func(b *stream.Builder) {
			stream.From(b, text("in")).GroupByKey(stream.Partitions(3)).Count()
		}, []string{"groupbykey", "Partitions"}},
		"partitions of a count": {func(b *stream.Builder) {
			stream.From(b, text("in")).GroupByKey().Count(stream.Partitions(3))
		}, []string{"count", "Partitions"}},
		"name of a map": {func(b *stream.Builder) {
			stream.MapValues(stream.From(b, text("in")), func(_, v string) string { return v }, stream.Named("m"))
		}, []string{"mapvalues", "Named"}},
		"nil function": {func(b *stream.Builder) {
			stream.From(b, text("in")).Filter(nil)
		}, []string{"filter", "no function"}},
		"nil option": {func(b *stream.Builder) {
			stream.From(b, text("in")).GroupByKey().Count(nil)
		}, []string{"count", "nil option"}},
		"topic of other windows": {func(b *stream.Builder) {
			stream.From(b, text("in")).GroupByKey().Windowed(w).Count().To(counts("out", window.Tumbling(time.Hour, 0)))
		}, []string{"to", "out", "1h", "1m"}},
		"two builders": {func(b *stream.Builder) {
			stream.From(b, text("in")).Merge(stream.From(stream.NewBuilder("other"), text("in")))
		}, []string{"merge", "another builder"}},
		"nothing": {func(*stream.Builder) {}, []string{"no operation"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := stream.NewBuilder("g")
			c.build(b)
			_, err := b.Graph()
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is missing in: %v", part, err)
				}
			}
			if n := strings.Count(err.Error(), "\n"); n > 0 {
				t.Errorf("reported more than once: %v", err)
			}
		})
	}
}

// A topic between two parts of a graph is no cycle.
func TestGraphMayReadATopicThatItWrites(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		stream.From(b, text("in")).To(text("between"))
		stream.From(b, text("between")).To(text("out"))
	})
	s.send("in", "a:x@1")
	s.wants("out", "a:x@1")
}
