package stream_test

import (
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
	"github.com/rekastream/reka/storage"
)

func TestProbeView(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		stream.From(b, text("in")).GroupByKey().Count(stream.Named("counts"))
	})
	s.send("in", "a:x@5", "b:x@7", "a:y@6")
	tb := reka.NewTable(reka.ChangelogTopic("g", "counts"), codec.Int64())
	t.Log(tester.Table(s.tt, tb).Get("a"))
	var v *view.View[int64]
	s.tt.Start("v", func(i *tester.Instance) ([]reka.Runner, error) {
		var err error
		v, err = view.New(i.Client(), tb, view.WithStorage(storage.Memory()))
		return []reka.Runner{v}, err
	})
	s.tt.Settle()
	t.Log(v.Get("a"))
}

func TestProbeNamedTable(t *testing.T) {
	for _, opts := range [][]stream.Option{nil, {stream.Named("x")}} {
		s := play(t, "T", func(b *stream.Builder) {
			stream.Changes(stream.FromTable(b, rows("T"), opts...)).To(text("out"))
		})
		s.send("T", "a:@1", "a:x@5", "a:x@7", "a:@8", "a:@9")
		t.Log(s.news("out"))
	}
	// aggregation behind a source table with surplus deletes
	s := play(t, "T", func(b *stream.Builder) {
		stream.GroupTable(stream.FromTable(b, rows("T")), func(k, v string) (string, string) { return v, v }).Count(stream.Named("n")).To(reka.NewStream("out", codec.Int64Text()))
	})
	s.send("T", "a:@1", "a:x@5", "a:x@7", "a:@8", "a:@9")
	t.Log(s.news("out"))
	// timers behind a hold
}

// two streams of one topic, late after filter etc
func TestProbeNullKeyFilter(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		w := stream.From(b, text("in")).GroupByKey()
		stream.Changes(w.Count()).To(reka.NewStream("out", codec.Int64Text()))
		stream.Changes(w.Count()).To(reka.NewStream("out2", codec.Int64Text()))
	})
	s.send("in", "⊥:x@5", "b:x@7", "a:y@6")
	t.Log(s.news("out"), s.news("out2"), s.now.Stats().Partitions[0].Counters)
}
