package systemtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/systemtest/fakekafka"
	"github.com/rekastream/reka/systemtest/realkafka"
)

// broker is a cluster that a scenario runs on.
type broker struct {
	brokers []string
	outage  func(t *testing.T, while func()) // takes all brokers away for the time of while
}

// onBoth runs a scenario on the fake cluster and on real Kafka. A scenario
// that takes brokers away gets a cluster of its own.
func onBoth(t *testing.T, outage bool, scenario func(*testing.T, broker)) {
	t.Run("fake", func(t *testing.T) { scenario(t, onFake(t)) })
	t.Run("real", func(t *testing.T) {
		if !outage {
			scenario(t, broker{brokers: realkafka.Shared(t).Brokers()})
			return
		}
		c := realkafka.Start(t, realkafka.Config{})
		scenario(t, broker{c.Brokers(), func(t *testing.T, while func()) {
			c.Kill(t, 0)
			while()
			c.Restart(t, 0)
		}})
	})
}

// onFake returns a fake cluster of the test's own, for scenarios to which real
// Kafka adds nothing but time.
func onFake(t *testing.T, opts ...kfake.Opt) broker {
	c := fakekafka.Start(t, fakekafka.Config{Options: opts})
	return broker{c.Brokers(), func(t *testing.T, while func()) {
		c.Stop()
		while()
		c.Restart(t)
	}}
}

// unique names topics and groups of one test.
func unique(t *testing.T, what string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", r) {
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("%s-%s-%d", what, name, time.Now().UnixNano())
}

// client returns a client that is closed with the test.
func (b broker) client(t *testing.T) *kafka.Client {
	t.Helper()
	c, err := kafka.NewClient(b.brokers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close client: %v", err)
		}
	})
	return c
}

// topics creates topics.
func (b broker) topics(t *testing.T, c *kafka.Client, partitions int32, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, n := range names {
		if err := c.EnsureTopics(ctx, kafka.TopicSpec{Name: n, Partitions: partitions}); err != nil {
			t.Fatal(err)
		}
	}
}

// fold reads a topic to its end and returns the last value of each key, and
// the partition that it stands in.
func fold(t *testing.T, c *kafka.Client, topic string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rows := map[string]string{}
	for _, r := range readAll(ctx, t, c, topic) {
		if r.Value == nil {
			delete(rows, string(r.Key))
		} else {
			rows[string(r.Key)] = string(r.Value)
		}
	}
	return rows
}

// readAll reads what a topic holds now, partition by partition.
func readAll(ctx context.Context, t *testing.T, c *kafka.Client, topic string) (out []kafka.Record) {
	t.Helper()
	for _, rs := range readPartitions(ctx, t, c, topic) {
		out = append(out, rs...)
	}
	return out
}

// readPartitions reads what a topic holds now, by partition.
func readPartitions(ctx context.Context, t *testing.T, c *kafka.Client, topic string) [][]kafka.Record {
	t.Helper()
	d := c.Driver()
	info, err := d.Admin().Topics(ctx, topic)
	if err != nil || info[topic].Partitions == 0 {
		t.Fatalf("topic %s: %v, %v", topic, info, err)
	}
	parts := make([]kafka.TopicPartition, info[topic].Partitions)
	for p := range parts {
		parts[p] = kafka.TopicPartition{Topic: topic, Partition: int32(p)}
	}
	starts, err := d.Admin().Offsets(ctx, kafka.LogStart, parts...)
	if err != nil {
		t.Fatal(err)
	}
	ends, err := d.Admin().Offsets(ctx, kafka.LastStable, parts...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.NewFetcher(kafka.FetcherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Errorf("close fetcher: %v", err)
		}
	}()
	batches := make(chan *kafka.Batch, 1024)
	for _, tp := range parts {
		if starts[tp] < ends[tp] {
			f.Follow(kafka.Follow{TopicPartition: tp, Position: starts[tp], Deliver: func(b *kafka.Batch) { batches <- b }})
		}
	}
	byPartition := make([][]kafka.Record, len(parts))
	for _, tp := range parts {
		for at := starts[tp]; at < ends[tp]; {
			select {
			case b := <-batches:
				if b.Err != nil {
					t.Fatal(b.Err)
				}
				byPartition[b.Partition] = append(byPartition[b.Partition], b.Records...)
				starts[b.TopicPartition] = b.Position
				b.Release()
				at = starts[tp]
			case <-ctx.Done():
				t.Fatalf("%s: %v", topic, ctx.Err())
			}
		}
	}
	return byPartition
}

// writeSource writes a Java source file into the test's directory.
func writeSource(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
