package systemtest

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/stream"
)

// inMemory returns a processor of a graph that build declares.
func inMemory(t *testing.T, c *kafka.Client, group string, build func(*stream.Builder)) *processor.Processor {
	t.Helper()
	b := stream.NewBuilder(group)
	build(b)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	p, err := processor.New(c, g, processor.WithStorage(storage.Memory()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// partitionsOf returns how many partitions topics have.
func partitionsOf(t *testing.T, c *kafka.Client, topics ...string) map[string]int32 {
	t.Helper()
	info, err := c.Driver().Admin().Topics(t.Context(), topics...)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int32{}
	for _, topic := range topics {
		out[topic] = info[topic].Partitions
	}
	return out
}

func TestJoinOfTopicsWithUnequalPartitionCountsNamesThemAtTheStart(t *testing.T) {
	onBoth(t, false, func(t *testing.T, b broker) {
		c := b.client(t)
		left, right, out := unique(t, "left"), unique(t, "right"), unique(t, "out")
		b.topics(t, c, 3, left, out)
		b.topics(t, c, 4, right)
		p := inMemory(t, c, unique(t, "group"), func(b *stream.Builder) {
			l, r := stream.From(b, reka.NewStream(left, codec.String())), stream.From(b, reka.NewStream(right, codec.String()))
			stream.Join(l, r, stream.Within(time.Second, time.Second), func(_, l, r string) string { return l + r }, asText).
				To(reka.NewStream(out, codec.String()))
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := p.Run(ctx)
		if err == nil || ctx.Err() != nil {
			t.Fatalf("run: %v, want an error at the start", err)
		}
		for _, want := range []string{"partition counts", left + " has 3", right + " has 4"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %q", want, err)
			}
		}
	})
}

// counting counts the values of a topic: a repartition topic, and a store
// behind it.
func counting(input, out string, opts ...stream.Option) func(*stream.Builder) {
	return func(b *stream.Builder) {
		stream.From(b, reka.NewStream(input, codec.String())).
			GroupBy(func(_, v string) string { return v }, append(opts, stream.Named("by-value"))...).
			Count(stream.Named("counts")).To(reka.NewTable(out, codec.Int64Text()))
	}
}

func TestInternalTopicsTakeTheInputsPartitionCountNotTheBrokersDefault(t *testing.T) {
	b := onFake(t, kfake.DefaultNumPartitions(3))
	c := b.client(t)
	for name, opts := range map[string][]stream.Option{"as the input": nil, "as stated": {stream.Partitions(4)}} {
		t.Run(name, func(t *testing.T) {
			want := int32(10)
			if opts != nil {
				want = 4
			}
			input, out, group := unique(t, "input"), unique(t, "out"), unique(t, "group")
			b.topics(t, c, 10, input)
			b.topics(t, c, 2, out)
			r := launch(t, inMemory(t, c, group, counting(input, out, opts...)))
			l := newLoad(t, c, input)
			l.emit(t, 100)
			until(t, func() bool { return len(fold(t, c, out)) == 100 }, func() string { return "values are not counted" })
			r.stop(t)
			for topic, n := range partitionsOf(t, c, group+"-by-value-repartition", reka.ChangelogTopic(group, "counts")) {
				if n != want {
					t.Errorf("%s has %d partitions, want %d", topic, n, want)
				}
			}
		})
	}
}

// A repartition topic keeps its records for ever; what its reader has
// committed is deleted, and nothing else.
func TestConsumedRepartitionRecordsAreDeleted(t *testing.T) {
	const keeps = 1000 // records that are not worth a request
	onBoth(t, false, func(t *testing.T, b broker) {
		c := b.client(t)
		input, out, group := unique(t, "input"), unique(t, "out"), unique(t, "group")
		b.topics(t, c, 1, input, out)
		r := launch(t, inMemory(t, c, group, func(b *stream.Builder) {
			stream.From(b, reka.NewStream(input, codec.String())).
				GroupBy(func(key, _ string) string { return "all of " + key[:5] }, stream.Named("by-head")).
				Count(stream.Named("counts")).To(reka.NewTable(out, codec.Int64Text()))
		}))
		l := newLoad(t, c, input)
		admin, tp := c.Driver().Admin(), kafka.TopicPartition{Topic: group + "-by-head-repartition"}
		says := ""
		for sent := 0; sent < 3*keeps; {
			l.emit(t, 3*keeps/2)
			sent += 3 * keeps / 2
			sums := map[string]int64{}
			for key, n := range l.sent {
				sums["all of "+key[:5]] += n
			}
			want := map[string]string{}
			for key, n := range sums {
				want[key] = strconv.FormatInt(n, 10)
			}
			until(t, func() bool {
				got := fold(t, c, out)
				says = fmt.Sprintf("counts are %v, want %v", got, want)
				return maps.Equal(got, want)
			}, func() string { return says })
			until(t, func() bool {
				starts, err := admin.Offsets(t.Context(), kafka.LogStart, tp)
				if err != nil {
					t.Fatal(err)
				}
				ends, err := admin.Offsets(t.Context(), kafka.HighWatermark, tp)
				if err != nil {
					t.Fatal(err)
				}
				says = fmt.Sprintf("%v has offsets from %d to %d", tp, starts[tp], ends[tp])
				return starts[tp] > 0 && ends[tp]-starts[tp] <= keeps+100 // and ends of transactions
			}, func() string { return says })
		}
		r.stop(t)
	})
}
