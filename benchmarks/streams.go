package main

import (
	"context"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// streamPart prepares a part about stream operations; it reports false if the
// name is of another one.
func (b *bench) streamPart(ctx context.Context, name string) (part, bool, error) {
	n := b.records
	switch name {
	case "chain", "exact-chain":
		with, says := atLeast(), "at least once"
		if name == "exact-chain" {
			with, says = exactly(), "exactly once"
		}
		topic, err := b.load(ctx, zipf, n, valueBytes)
		return part{name: "five steps without state, " + says + " (raw: a bare processor)", unit: "records/s", target: 0.9, contestants: []contestant{
			{"raw", b.rekaPass(topic, n, with)}, {"reka", b.chain(topic, n, with)},
		}}, true, err
	case "tumbling":
		topic, err := b.load(ctx, hour, n, valueBytes)
		return part{name: "count in windows of 5 minutes, 100,000 keys (raw: count)", unit: "records/s", target: 0.6, contestants: []contestant{
			{"raw", b.rekaCount(topic, n, b.stated())}, {"reka", b.tumbling(topic, n)},
		}}, true, err
	case "hopping":
		topic, err := b.load(ctx, minutes, n, valueBytes)
		return part{name: "count in 60 overlapping windows, on close (raw: count)", unit: "records/s", target: 0.25, contestants: []contestant{
			{"raw", b.rekaCount(topic, n, b.stated())}, {"reka", b.hopping(topic, n)},
		}}, true, err
	case "join", "left-join":
		left, err := b.load(ctx, pairs, n/2, valueBytes)
		if err != nil {
			return part{}, true, err
		}
		right, err := b.load(ctx, pairs, n/2, valueBytes+1)
		p := part{name: "join of two streams within 10 s (raw: consume)", unit: "records/s", target: 0.05, contestants: []contestant{
			{"raw", b.rawConsume(left, n/2)}, {"reka", b.joined(left, right, false)},
		}}
		if name == "left-join" {
			p.name, p.target = "left join of two streams (raw: inner join)", 0.5
			p.contestants = []contestant{{"raw", b.joined(left, right, false)}, {"reka", b.joined(left, right, true)}}
		}
		return p, true, err
	}
	return part{}, false, nil
}

// stated are the options of processors of stream parts with state.
func (b *bench) stated() []processor.Option {
	if b.least {
		return atLeast()
	}
	return exactly()
}

// timedGraph runs what build declares over n records of input, with an output
// topic.
func (b *bench) timedGraph(n int, h how, build func(bld *stream.Builder, to string)) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		to, err := b.output(ctx, "reka")
		if err != nil {
			return 0, err
		}
		defer b.drop(ctx, to)
		bld := stream.NewBuilder(b.name("group"))
		build(bld, to)
		g, err := bld.Graph()
		if err != nil {
			return 0, err
		}
		began := time.Now()
		r, err := b.startGraph(ctx, g, h)
		if err != nil {
			return 0, err
		}
		err = b.finished(ctx, r, n)
		took := time.Since(began)
		if ended := r.end(); err == nil {
			err = ended
		}
		return float64(n) / took.Seconds(), err
	}
}

// chain copies records in five steps.
func (b *bench) chain(topic string, n int, with []processor.Option) func(context.Context) (float64, error) {
	return b.timedGraph(n, how{with: with}, func(bld *stream.Builder, to string) {
		in := stream.From(bld, reka.NewStream(topic, codec.Bytes())).
			Filter(func(_ string, v []byte) bool { return len(v) > 0 }).
			Peek(func(string, []byte) {}).
			FilterNot(func(key string, _ []byte) bool { return key == "" })
		cut := stream.MapValues(in, func(_ string, v []byte) []byte { return v[:len(v)-1] })
		stream.MapValues(cut, func(_ string, v []byte) []byte { return v[:len(v)+1] }).To(reka.NewStream(to, codec.Bytes()))
	})
}

// tumbling counts by key in windows of five minutes.
func (b *bench) tumbling(topic string, n int) func(context.Context) (float64, error) {
	return b.timedGraph(n, how{state: true, with: b.stated()}, func(bld *stream.Builder, _ string) {
		stream.From(bld, reka.NewStream(topic, codec.Bytes())).GroupByKey().
			Windowed(window.Tumbling(5*time.Minute, window.NoGrace)).Count()
	})
}

// hopping counts by key in windows of a minute, one a second, and writes the
// final counts.
func (b *bench) hopping(topic string, n int) func(context.Context) (float64, error) {
	w := window.Hopping(time.Minute, time.Second, window.NoGrace)
	return b.timedGraph(n, how{state: true, with: b.stated()}, func(bld *stream.Builder, to string) {
		stream.From(bld, reka.NewStream(topic, codec.Bytes())).GroupByKey().Windowed(w).Count().OnClose().
			To(reka.NewWindowTable(to, w, codec.Int64()))
	})
}

// joined joins two topics, of which each has half of the records.
func (b *bench) joined(left, right string, outer bool) func(context.Context) (float64, error) {
	return b.timedGraph(b.records/2*2, how{state: true, with: b.stated()}, func(bld *stream.Builder, to string) {
		l := stream.From(bld, reka.NewStream(left, codec.Bytes()))
		r := stream.From(bld, reka.NewStream(right, codec.Bytes()))
		w := stream.Within(10*time.Second, window.NoGrace)
		out := reka.NewStream(to, codec.Int64())
		if outer {
			stream.LeftJoin(l, r, w, func(_ string, l []byte, r *[]byte) int64 { return int64(len(l)) }).To(out)
			return
		}
		stream.Join(l, r, w, func(_ string, l, r []byte) int64 { return int64(len(l) + len(r)) }).To(out)
	})
}
