package systemtest

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage/badgerstore"
)

// warned returns a logger and its warnings.
func warned() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zap.WarnLevel)
	return zap.New(core), logs
}

// trim removes the records of a partition below an offset.
func trim(t *testing.T, c *kafka.Client, topic string, before int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tp := kafka.TopicPartition{Topic: topic}
	if err := c.Driver().Admin().DeleteRecords(ctx, map[kafka.TopicPartition]int64{tp: before}); err != nil {
		t.Fatal(err)
	}
}

// writeTallies appends rows to a table topic, as another owner would, until it
// ends at an offset.
func writeTallies(t *testing.T, c *kafka.Client, b broker, topic string, end int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tp := kafka.TopicPartition{Topic: topic}
	at, err := c.Driver().Admin().Offsets(ctx, kafka.HighWatermark, tp)
	if err != nil {
		t.Fatal(err)
	}
	var records []*kgo.Record
	for i := at[tp]; i < end; i++ {
		v, err := tallyCodec{}.Append(nil, tally{i, i})
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, &kgo.Record{Key: fmt.Append(nil, "other-", i%1500), Value: v})
	}
	if err := p.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// The changelog was trimmed beyond what the local store has: its rows below
// the start are gone for good, and a store that kept them would differ from
// every other.
func TestStoreThatIsBehindTheStartOfItsChangelogIsBuiltAnew(t *testing.T) {
	b := onFake(t) // real brokers do not let a compacted topic be trimmed
	c, s := b.client(t), newService(t, b)
	b.topics(t, c, 1, s.Input)
	l := newLoad(t, c, s.Input)
	r := s.start(t, c)
	l.emit(t, 500)
	l.counted(t, c, s.Group)
	r.stop(t)

	table := reka.TableTopic(s.Group)
	writeTallies(t, c, b, table, 6000)
	trim(t, c, table, 5000)
	for round, want := range []int{1, 0} { // the second start finds a good store
		log, logs := warned()
		r = s.start(t, c, processor.WithLogger(log), processor.WithStorage(badgerstore.In(s.Dir, badgerstore.WithLogger(log))))
		r.stop(t)
		if logs.Len() != want {
			t.Errorf("start %d: warnings %v, want %d", round, logs.All(), want)
		}
		sameAsStore(t, c, s)
	}
}

func TestChangelogEmptiedByRetentionIsNoObstacle(t *testing.T) {
	b := onFake(t) // real brokers do not let a compacted topic be trimmed
	c, s := b.client(t), newService(t, b)
	table := reka.TableTopic(s.Group)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b.topics(t, c, 1, s.Input)
	if err := c.EnsureTopics(ctx, kafka.TopicSpec{Name: table, Partitions: 1, Configs: kafka.ChangelogConfigs()}); err != nil {
		t.Fatal(err)
	}
	writeTallies(t, c, b, table, 500)
	trim(t, c, table, 500)
	r := s.start(t, c)
	if n := restored(r.p); n != 0 {
		t.Errorf("%d rows restored, want none", n)
	}
	l := newLoad(t, c, s.Input)
	l.emit(t, 1)
	l.counted(t, c, s.Group)
	r.stop(t)
	log := readAll(ctx, t, c, table)
	if len(log) != 1 || log[0].Offset != 500 {
		t.Errorf("the changelog has %d records, want one at 500", len(log))
	}
	r = s.start(t, c)
	r.stop(t)
	sameAsStore(t, c, s)
	if got := fold(t, c, table); !maps.Equal(got, map[string]string{"key-0": got["key-0"]}) {
		t.Errorf("rows %v, want key-0 alone", got)
	}
}
