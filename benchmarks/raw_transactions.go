package main

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// rawTransactions are the transactions of a rawWriter.
type rawTransactions struct {
	id          string
	topic       string
	partitions  []int32
	coordinator *sarama.Broker
	producer    int64
	epoch       int16
	sequences   []int32 // by partition
}

// transactions gives a writer the name that its transactions have. Until the
// coordinator has loaded it is asked again.
func (w *rawWriter) transactions(name string, partitions int) error {
	t := &rawTransactions{id: name, topic: w.topic, sequences: make([]int32, partitions)}
	for p := range partitions {
		t.partitions = append(t.partitions, int32(p))
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := t.open(w.broker)
		if err == nil {
			w.txn = t
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// open finds the coordinator and gets a producer id.
func (t *rawTransactions) open(seed *sarama.Broker) error {
	found, err := seed.FindCoordinator(&sarama.FindCoordinatorRequest{Version: 2, CoordinatorKey: t.id, CoordinatorType: sarama.CoordinatorTransaction})
	if err == nil && found.Err != sarama.ErrNoError {
		err = found.Err
	}
	if err != nil {
		return err
	}
	if t.coordinator == nil {
		if t.coordinator, err = dial(found.Coordinator.Addr()); err != nil {
			return err
		}
	}
	got, err := t.coordinator.InitProducerID(&sarama.InitProducerIDRequest{
		Version: 3, TransactionalID: &t.id, TransactionTimeout: time.Minute, ProducerID: -1, ProducerEpoch: -1,
	})
	if err == nil && got.Err != sarama.ErrNoError {
		err = got.Err
	}
	if err != nil {
		return err
	}
	t.producer, t.epoch = got.ProducerID, got.ProducerEpoch
	return nil
}

// begin opens a transaction over all partitions. Until the markers of the one
// before are written the coordinator refuses.
func (t *rawTransactions) begin() error {
	for {
		resp, err := t.coordinator.AddPartitionsToTxn(&sarama.AddPartitionsToTxnRequest{
			Version: 1, TransactionalID: t.id, ProducerID: t.producer, ProducerEpoch: t.epoch,
			TopicPartitions: map[string][]int32{t.topic: t.partitions},
		})
		if err != nil {
			return err
		}
		busy := false
		for _, e := range resp.Errors[t.topic] {
			switch e.Err {
			case sarama.ErrNoError:
			case sarama.ErrConcurrentTransactions:
				busy = true
			default:
				return fmt.Errorf("begin: %w", e.Err)
			}
		}
		if !busy {
			return nil
		}
	}
}

// stamp makes a batch part of the transaction.
func (t *rawTransactions) stamp(req *sarama.ProduceRequest, b *sarama.RecordBatch, p int32) {
	req.TransactionalID = &t.id
	b.IsTransactional, b.ProducerID, b.ProducerEpoch = true, t.producer, t.epoch
	b.FirstSequence = t.sequences[p]
	t.sequences[p] += int32(len(b.Records))
}

// commit commits what was written, and is acknowledged, with the positions of
// an input.
func (t *rawTransactions) commit(input string, positions []int64) error {
	added, err := t.coordinator.AddOffsetsToTxn(&sarama.AddOffsetsToTxnRequest{
		Version: 2, TransactionalID: t.id, ProducerID: t.producer, ProducerEpoch: t.epoch, GroupID: t.id,
	})
	if err == nil && added.Err != sarama.ErrNoError {
		err = added.Err
	}
	if err != nil {
		return fmt.Errorf("add offsets: %w", err)
	}
	offsets := make([]*sarama.PartitionOffsetMetadata, len(positions))
	for p, at := range positions {
		offsets[p] = &sarama.PartitionOffsetMetadata{Partition: int32(p), Offset: at, LeaderEpoch: -1}
	}
	committed, err := t.coordinator.TxnOffsetCommit(&sarama.TxnOffsetCommitRequest{
		Version: 3, TransactionalID: t.id, GroupID: t.id, ProducerID: t.producer, ProducerEpoch: t.epoch, GenerationID: -1,
		Topics: map[string][]*sarama.PartitionOffsetMetadata{input: offsets},
	})
	if err != nil {
		return fmt.Errorf("commit offsets: %w", err)
	}
	for _, e := range committed.Topics[input] {
		if e.Err != sarama.ErrNoError {
			return fmt.Errorf("commit offset of partition %d: %w", e.Partition, e.Err)
		}
	}
	ended, err := t.coordinator.EndTxn(&sarama.EndTxnRequest{
		Version: 2, TransactionalID: t.id, ProducerID: t.producer, ProducerEpoch: t.epoch, TransactionResult: true,
	})
	if err == nil && ended.Err != sarama.ErrNoError {
		err = ended.Err
	}
	return err
}

func (t *rawTransactions) close() {
	_ = t.coordinator.Close() // nothing is in flight
}
