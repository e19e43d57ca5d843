package stream_test

import (
	"testing"
	"time"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

func TestProbeNullKeys(t *testing.T) {
	s := play(t, "T", func(b *stream.Builder) {
		stream.Changes(stream.FromTable(b, rows("T"))).To(text("out"))
	})
	s.send("T", "⊥:x@5", "a:x@7")
	t.Log(s.news("out"), s.now.Stats().Partitions[0].Counters, s.now.Stats().Partitions[0].NullKeys)
}

// A timer in a Process behind a hold, and a periodic call.
func TestProbeTimerBehindHold(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		res := stream.Results(stream.From(b, text("in")).GroupByKey().Windowed(window.Tumbling(time.Second, 0)).Count().OnClose())
		tm := processor.Timer("tm", processor.StreamTime)
		out := processor.Output(text("out"))
		stream.Process(res, func(ctx *processor.Context, _ stream.Result[int64], _ func(string, string)) error {
			tm.Set(ctx, ctx.Time().Add(500*time.Millisecond))
			return nil
		}, []processor.Edge{out, tm.On(func(ctx *processor.Context, _ time.Time) error { out.Emit(ctx, ctx.Key(), "t"); return nil })})
	})
	s.send("in", "a:x@100")
	t.Log(s.news("out"))
	s.send("in", "b:x@1000")
	t.Log(s.news("out"))
}

// The same topic as two typed versions, and a join of a flow with itself.
func TestProbeSelfJoin(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		f := stream.From(b, text("in"))
		stream.Join(f, f, stream.Within(time.Second, 0), func(_, l, r string) string { return l + r }, stream.WithCodec(codec.String())).To(text("out"))
	})
	s.send("in", "a:A@100", "a:B@200", "a:C@300")
	t.Log(s.news("out"))
}

func TestProbeSelfJoinOuter(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		f := stream.From(b, text("in"))
		stream.OuterJoin(f, f, stream.Within(10*time.Millisecond, 0), func(_ string, l, r *string) string { return side(l) + side(r) }, stream.WithCodec(codec.String())).To(text("out"))
	})
	s.send("in", "a:A@100", "a:B@200", "a:C@300")
	t.Log(s.news("out"))
}
