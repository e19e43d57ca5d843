package systemtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/systemtest/realkafka"
)

// The fake cluster does not stamp records: this needs real Kafka.
func TestBrokersTimeCountsWhereTheTopicSaysSo(t *testing.T) {
	b := broker{brokers: realkafka.Shared(t).Brokers()}
	c := b.client(t)
	topic := unique(t, "stamped")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.EnsureTopics(ctx, kafka.TopicSpec{Name: topic, Partitions: 1, Configs: map[string]string{"message.timestamp.type": "LogAppendTime"}}); err != nil {
		t.Fatal(err)
	}
	p, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.SnappyCompression()), kgo.ProducerLinger(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	before := time.Now().Truncate(time.Millisecond)
	var batch []*kgo.Record
	for i := range 10 {
		r := kgo.KeyStringRecord(fmt.Sprint("k", i), "v")
		r.Timestamp = time.Date(2000, 1, 1, 0, 0, i, 0, time.UTC)
		batch = append(batch, r)
	}
	if err := p.ProduceSync(ctx, batch...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	want := map[string]time.Time{} // as another client reads them
	other, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for len(want) < len(batch) && ctx.Err() == nil {
		other.PollFetches(ctx).EachRecord(func(r *kgo.Record) { want[string(r.Key)] = r.Timestamp })
	}

	var mu sync.Mutex
	got := map[string]time.Time{}
	g, err := processor.NewGraph(unique(t, "group"), processor.Input(reka.NewStream(topic, codec.String()), func(ctx *processor.Context, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		got[ctx.Key()] = ctx.Time()
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	proc, err := processor.New(c, g)
	if err != nil {
		t.Fatal(err)
	}
	r := launch(t, proc)
	until(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == len(batch) }, func() string { return "not all records came" })
	r.stop(t)
	for k, at := range got {
		if !at.Equal(want[k]) || at.Before(before) || at.After(after) {
			t.Errorf("%s: the callback saw %v, want %v, the time of the append", k, at, want[k])
		}
	}
}
