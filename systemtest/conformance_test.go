package systemtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/kafka/kafkatest"
	"github.com/rekastream/reka/systemtest/fakekafka"
	"github.com/rekastream/reka/systemtest/realkafka"
)

func TestDriverConformsOnFakeKafka(t *testing.T) {
	c := fakekafka.Start(t, fakekafka.Config{})
	kafkatest.Run(t, func(t *testing.T) kafkatest.Env {
		e := env(t, c.Brokers(), fakekafka.MinSession)
		e.Lacks = fakekafka.Lacks
		e.Compact = func(*testing.T, string) { c.Compact() }
		e.Elect = func(t *testing.T, tp kafka.TopicPartition) {
			if err := c.MoveTopicPartition(tp.Topic, tp.Partition, c.LeaderFor(tp.Topic, tp.Partition)); err != nil {
				t.Fatal(err)
			}
		}
		return e
	})
}

func TestDriverConformsOnRealKafka(t *testing.T) {
	c := realkafka.Shared(t)
	kafkatest.Run(t, func(t *testing.T) kafkatest.Env {
		return env(t, c.Brokers(), realkafka.MinSession)
	})
}

func env(t *testing.T, brokers []string, session time.Duration) kafkatest.Env {
	return kafkatest.Env{
		Driver:  driver(t, brokers),
		Second:  driver(t, brokers),
		Session: session,
		Advance: func(d time.Duration) { <-time.After(d) },
		Control: func(t *testing.T, tp kafka.TopicPartition) { writeControl(t, brokers, tp) },
	}
}

// driver returns a driver of a process of its own.
func driver(t *testing.T, brokers []string) kafka.Driver {
	t.Helper()
	c, err := kafka.NewClient(brokers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c.Driver()
}

// writeControl ends a transaction that wrote nothing, which leaves one
// control record in the partition.
func writeControl(t *testing.T, brokers []string, tp kafka.TopicPartition) {
	t.Helper()
	cfg := sarama.NewConfig()
	client, err := sarama.NewClient(brokers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	id := fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixNano())
	before := highWatermark(t, client, tp)
	var pid int64
	var epoch int16
	coordinate(t, client, id, "init", func(b *sarama.Broker) (sarama.KError, error) {
		res, err := b.InitProducerID(&sarama.InitProducerIDRequest{
			Version: 3, TransactionalID: &id, TransactionTimeout: 10 * time.Second, ProducerID: -1, ProducerEpoch: -1,
		})
		if err != nil {
			return 0, err
		}
		pid, epoch = res.ProducerID, res.ProducerEpoch
		return res.Err, nil
	})
	coordinate(t, client, id, "add", func(b *sarama.Broker) (sarama.KError, error) {
		res, err := b.AddPartitionsToTxn(&sarama.AddPartitionsToTxnRequest{
			Version: 1, TransactionalID: id, ProducerID: pid, ProducerEpoch: epoch,
			TopicPartitions: map[string][]int32{tp.Topic: {tp.Partition}},
		})
		if err != nil {
			return 0, err
		}
		return res.Errors[tp.Topic][0].Err, nil
	})
	coordinate(t, client, id, "end", func(b *sarama.Broker) (sarama.KError, error) {
		res, err := b.EndTxn(&sarama.EndTxnRequest{
			Version: 2, TransactionalID: id, ProducerID: pid, ProducerEpoch: epoch, TransactionResult: true,
		})
		if err != nil {
			return 0, err
		}
		return res.Err, nil
	})
	// The broker answers before the record is written.
	until(t, func() bool { return highWatermark(t, client, tp) > before }, func() string { return "no control record came" })
}

func highWatermark(t *testing.T, client sarama.Client, tp kafka.TopicPartition) int64 {
	t.Helper()
	n, err := client.GetOffset(tp.Topic, tp.Partition, sarama.OffsetNewest)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// coordinate repeats a request of a transaction until its coordinator takes
// it.
func coordinate(t *testing.T, client sarama.Client, id, what string, f func(*sarama.Broker) (sarama.KError, error)) {
	t.Helper()
	var last error
	until(t, func() bool {
		b, err := client.TransactionCoordinator(id)
		if err == nil {
			var code sarama.KError
			if code, err = f(b); err == nil && code == sarama.ErrNoError {
				return true
			} else if err == nil {
				err = code
			}
		}
		last = fmt.Errorf("transaction %s: %s: %w", id, what, err)
		_ = client.RefreshTransactionCoordinator(id) // the next try tells
		return false
	}, func() string { return last.Error() })
}

// until waits for a condition, 30 s at most; says tells what was missing.
func until(t *testing.T, done func() bool, says func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain: ", says())
		}
	}
}
