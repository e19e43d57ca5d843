package systemtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/systemtest/realkafka"
	"github.com/rekastream/reka/view"
)

// openView runs a view until the test ends, and waits until it is ready.
func openView[T any](t *testing.T, c *kafka.Client, table reka.Table[T]) *view.View[T] {
	t.Helper()
	v, err := view.New(c, table, view.WithStorage(storage.Memory()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	result := make(chan error, 1)
	go func() { result <- v.Run(ctx) }() // the cleanup waits
	t.Cleanup(func() {
		cancel()
		if err := <-result; err != nil {
			t.Errorf("view: %v", err)
		}
	})
	wait, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	if err := v.WaitReady(wait); err != nil {
		t.Fatal(err)
	}
	return v
}

// A table that was written in transactions ends in control records, and has
// records that were aborted: neither may hold a view up or be seen in it.
func TestViewOfATransactionallyWrittenTableIsCompleteAndHidesAborted(t *testing.T) {
	onBoth(t, false, func(t *testing.T, b broker) {
		c := b.client(t)
		table := reka.NewTable(unique(t, "table"), codec.String())
		b.topics(t, c, 1, table.Name())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.TransactionalID(unique(t, "writer")), kgo.DefaultProduceTopic(table.Name()))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
			if err := p.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			if err := p.ProduceSync(ctx, kgo.KeyStringRecord(fmt.Sprint("key-", i), "v")).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if err := p.EndTransaction(ctx, end); err != nil {
				t.Fatal(err)
			}
		}
		v := openView(t, c, table)
		for i, want := range []bool{true, false, true, false} {
			if _, ok, err := v.Get(fmt.Sprint("key-", i)); err != nil || ok != want {
				t.Errorf("key-%d: %v, %v, want %v", i, ok, err, want)
			}
		}
	})
}

const javaProducer = `
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

/** Writes key-i = i for i below n with Kafka's own client, and prints where each went. */
public class Produce {
    public static void main(String[] a) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", a[0]);
        try (Producer<String, Long> out = new KafkaProducer<>(p, new StringSerializer(), new LongSerializer())) {
            for (long i = 0; i < Long.parseLong(a[2]); i++) {
                RecordMetadata m = out.send(new ProducerRecord<>(a[1], "key-" + i, i)).get();
                System.out.println("key-" + i + " " + m.partition());
            }
        }
    }
}
`

func TestRowsWrittenByJavaAreFoundAndLieWhereRekaWouldPutThem(t *testing.T) {
	node := realkafka.Shared(t)
	b := broker{brokers: node.Brokers()}
	c := b.client(t)
	table := reka.NewTable(unique(t, "table"), codec.Int64())
	b.topics(t, c, 10, table.Name())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out := realkafka.RunJava(ctx, t, writeSource(t, "Produce.java", javaProducer), node.Brokers()[0], table.Name(), "100")
	v := openView(t, c, table)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 100 {
		t.Fatalf("the producer printed %d lines, want 100", len(lines))
	}
	for i, line := range lines {
		var key string
		var partition int32
		if _, err := fmt.Sscan(line, &key, &partition); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if got := c.Partitioner().Partition([]byte(key), 10); got != partition {
			t.Errorf("%s: Reka places it in %d, Java in %d", key, got, partition)
		}
		if got, ok, err := v.Get(key); err != nil || !ok || got != int64(i) {
			t.Errorf("%s: %d, %v, %v, want %d", key, got, ok, err, i)
		}
	}
}
