package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// Bounds of what a windowed group may grow between a quarter of the hour and
// its end.
const (
	flatHeap = 0.10
	flatRows = 0.10
)

// flatHour is how much event time is played.
const flatHour = time.Hour

// flat plays an hour of event time in b.duration through windows of all kinds
// and a join, with keys that come and go, and compares heap and live rows of
// the changelogs at a quarter of it with those at the end.
func (b *bench) flat(ctx context.Context) error {
	from, err := b.output(ctx, "in")
	if err != nil {
		return err
	}
	to, err := b.output(ctx, "out")
	if err != nil {
		return err
	}
	bld := stream.NewBuilder(b.name("group"))
	flatGraph(bld, from, to)
	g, err := bld.Graph()
	if err != nil {
		return err
	}
	// Memory is to be steady within seconds: smaller bounds than the defaults.
	r, err := b.startGraph(ctx, g, how{state: true, with: exactly(processor.WithTuning(processor.Tuning{FlushBytes: 4 << 20, FlushAge: 3 * time.Second}))})
	if err != nil {
		return err
	}
	var changelogs []string
	for _, s := range g.Describe().Subgraphs {
		for _, st := range s.Stores {
			changelogs = append(changelogs, st.Changelog)
		}
	}
	load, stop := context.WithTimeout(ctx, b.duration)
	defer stop()
	flowing := make(chan error, 1)
	go func() { flowing <- b.play(load, from) }() // ends with load; waited for below
	rows := make(chan [2]float64, 2)
	go b.countAtQuarter(load, changelogs, rows) // ends with load; waited for below
	early, late := b.sample(load, b.duration)
	err = <-flowing
	atQuarter := <-rows
	atEnd := b.liveRows(ctx, changelogs)
	if err := errors.Join(err, r.end(), ctx.Err()); err != nil {
		return err
	}
	if len(early) == 0 || len(late) == 0 || atQuarter[0] == 0 {
		return errors.New("the duration is too short to look twice")
	}
	x, y := median(early), median(late)
	fmt.Printf("an hour of event time in %s\nheap after collection: %.1f MiB at a quarter, %.1f MiB at the end: %+.1f %% (at most %+.1f %%)\n", b.duration, x, y, 100*(y/x-1), 100*flatHeap)
	fmt.Printf("live rows in %d changelogs: %.0f at a quarter, %.0f at the end: %+.1f %% (at most %+.1f %%); records in them: %.0f, %.0f\n",
		len(changelogs), atQuarter[0], atEnd[0], 100*(atEnd[0]/atQuarter[0]-1), 100*flatRows, atQuarter[1], atEnd[1])
	if y/x-1 > flatHeap || atEnd[0]/atQuarter[0]-1 > flatRows {
		return errors.New("the group grows")
	}
	return nil
}

// flatGraph has windows of all kinds, and a join, over one topic.
func flatGraph(bld *stream.Builder, from, to string) {
	in := stream.From(bld, reka.NewStream(from, codec.Bytes()))
	out := reka.NewStream(to, codec.Int64())
	results := func(w stream.Windows[int64]) {
		stream.MapValues(stream.Results(w), func(_ string, r stream.Result[int64]) int64 { return r.Value }, stream.WithCodec(codec.Int64())).To(out)
	}
	keys := in.GroupByKey()
	results(keys.Windowed(window.Tumbling(time.Minute, 10*time.Second)).Count(stream.Named("tumbling")))
	results(keys.Windowed(window.Hopping(2*time.Minute, 10*time.Second, 10*time.Second)).Count(stream.Named("hopping")).OnClose())
	results(keys.Windowed(window.Session(20*time.Second, 10*time.Second)).Count(stream.Named("sessions")).OnClose())
	stream.LeftJoin(in, in, stream.Within(5*time.Second, 10*time.Second), func(string, []byte, *[]byte) int64 { return 1 }, stream.Named("join")).To(out)
}

// play writes records whose times run through an hour while ctx lasts.
func (b *bench) play(ctx context.Context, topic string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	began, n := time.Now(), 0
	first := began.Add(-2 * flatHour)
	r := rand.New(rand.NewSource(1))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	value := text()[:valueBytes]
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return cl.Flush(context.WithoutCancel(ctx))
		}
		played := time.Since(began) * time.Duration(int64(flatHour/time.Millisecond)/max(1, b.duration.Milliseconds()))
		for ; n < int(time.Since(began).Seconds()*float64(b.rate)); n++ {
			late := time.Duration(r.Intn(8000)) * time.Millisecond
			key := uint64(played/time.Minute)*100 + uint64(r.Intn(2000)) // who is there changes
			cl.Produce(context.WithoutCancel(ctx), &kgo.Record{Key: appendKey(nil, key), Value: value, Timestamp: first.Add(played - late)}, nil)
		}
	}
}

// countAtQuarter counts live rows at a quarter of the time.
func (b *bench) countAtQuarter(ctx context.Context, changelogs []string, out chan<- [2]float64) {
	select {
	case <-time.After(b.duration / 4):
		out <- b.liveRows(ctx, changelogs)
	case <-ctx.Done():
		out <- [2]float64{}
	}
}

// liveRows counts the rows that compaction would leave, and the records that
// are there.
func (b *bench) liveRows(ctx context.Context, topics []string) (n [2]float64) {
	ends, err := b.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return n
	}
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left++
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ConsumeTopics(topics...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return n
	}
	defer cl.Close()
	live := map[string]bool{}
	for left > 0 && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if o, ok := ends.Lookup(r.Topic, r.Partition); ok && r.Offset == o.Offset-1 {
				left--
			}
			if r.Attrs.IsControl() {
				return
			}
			n[1]++
			key := fmt.Sprintf("%s/%d/%s", r.Topic, r.Partition, r.Key)
			if r.Value == nil {
				delete(live, key)
			} else {
				live[key] = true
			}
		})
	}
	n[0] = float64(len(live))
	return n
}
