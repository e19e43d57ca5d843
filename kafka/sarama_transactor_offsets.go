package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

func (t *saramaTransactor) Offsets(ctx context.Context, by Committer, offsets []CommittedOffset) error {
	if len(offsets) == 0 {
		return nil
	}
	if err := t.refused(); err != nil {
		return t.failure("committing offsets", err)
	}
	if err := t.brokenBy(); errors.Is(err, ErrFenced) {
		return t.failure("committing offsets", err)
	}
	s, done := t.scoped(ctx)
	defer done()
	err := t.enlist(s, by.Group)
	if err == nil {
		err = t.commitOffsets(s, by, offsets)
	}
	if err == nil {
		return nil
	}
	err = t.failure("committing offsets of group "+by.Group, txnError(err))
	t.breakOff(err)
	return err
}

// enlist makes the group part of the transaction.
func (t *saramaTransactor) enlist(s txnScope, group string) error {
	if _, ok := t.enlisted[group]; ok {
		return nil
	}
	err := t.persist(s, "adding a group", func() error {
		var answer *sarama.AddOffsetsToTxnResponse
		maybe, err := t.ask(s, t.ofID(), func(b *sarama.Broker) (err error) {
			answer, err = b.AddOffsetsToTxn(&sarama.AddOffsetsToTxnRequest{
				Version: t.version(), TransactionalID: t.cfg.ID, ProducerID: t.id, ProducerEpoch: t.epoch, GroupID: group,
			})
			return err
		})
		if err != nil {
			if maybe {
				t.opened(maybeOpen)
			}
			return err
		}
		t.moved(t.ofID(), answer.Err)
		if endUncertain(answer.Err) {
			t.opened(maybeOpen)
		}
		return t.step(answer.Err)
	})
	if err == nil {
		t.opened(openTxn)
		t.enlisted[group] = struct{}{}
	}
	return err
}

// step is kerror for the steps of a transaction.
func (t *saramaTransactor) step(code sarama.KError) error {
	if code == sarama.ErrUnknownProducerID {
		t.doubt.Store(true) // the coordinator lost what it knew: only a new epoch helps
	}
	return kerror(code)
}

func (t *saramaTransactor) commitOffsets(s txnScope, by Committer, offsets []CommittedOffset) error {
	req := t.offsetsRequest(by, offsets)
	c := t.ofGroup(by.Group)
	return t.persist(s, "committing offsets", func() error {
		var answer *sarama.TxnOffsetCommitResponse
		_, err := t.ask(s, c, func(b *sarama.Broker) (err error) {
			answer, err = b.TxnOffsetCommit(req)
			return err
		})
		if err != nil {
			return err
		}
		if req.Version < 3 { // sarama lowers it to what the broker knows
			return fmt.Errorf("%w: offsets with a generation need Kafka 2.5", ErrUnsupported)
		}
		return t.readOffsets(c, answer, offsets)
	})
}

func (t *saramaTransactor) offsetsRequest(by Committer, offsets []CommittedOffset) *sarama.TxnOffsetCommitRequest {
	req := &sarama.TxnOffsetCommitRequest{
		Version: 3, TransactionalID: t.cfg.ID, GroupID: by.Group, ProducerID: t.id, ProducerEpoch: t.epoch,
		GenerationID: by.Generation, MemberID: by.MemberID, Topics: map[string][]*sarama.PartitionOffsetMetadata{},
	}
	if by.InstanceID != "" {
		req.GroupInstanceID = &by.InstanceID
	}
	for i := range offsets {
		o := &offsets[i]
		req.Topics[o.Topic] = append(req.Topics[o.Topic], &sarama.PartitionOffsetMetadata{
			Partition: o.Partition, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: &o.Metadata,
		})
	}
	return req
}

// readOffsets sorts the errors of partitions. What concerns the group or the
// transaction, which brokers repeat for every partition, comes first; else
// all that stand in single offsets are joined.
func (t *saramaTransactor) readOffsets(c coordinator, answer *sarama.TxnOffsetCommitResponse, offsets []CommittedOffset) error {
	codes := make(map[TopicPartition]sarama.KError, len(offsets))
	for topic, partitions := range answer.Topics {
		for _, p := range partitions {
			codes[TopicPartition{Topic: topic, Partition: p.Partition}] = p.Err
		}
	}
	var errs []error
	for i := range offsets {
		o := &offsets[i]
		code, ok := codes[o.TopicPartition]
		if !ok {
			return sarama.ErrIncompleteResponse
		}
		o.Err = nil
		if code == sarama.ErrNoError {
			continue
		}
		t.moved(c, code)
		if groupWide(code) || txnWide(code) {
			return t.step(code)
		}
		o.Err = &Error{TopicPartition: o.TopicPartition, Offset: o.Offset, Err: kerror(code)}
		errs = append(errs, o.Err)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrAbortable, errors.Join(errs...)) // typed here, so that no code in it counts as passing
}

// txnWide reports whether an error of a partition concerns the transaction.
func txnWide(e sarama.KError) bool {
	switch e {
	case sarama.ErrUnknownProducerID, sarama.ErrTransactionalIDAuthorizationFailed, sarama.ErrClusterAuthorizationFailed,
		sarama.ErrUnknown, errTransactionAbortable:
		return true
	}
	return fencing(e)
}
