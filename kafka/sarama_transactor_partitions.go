package kafka

import (
	"fmt"

	"github.com/IBM/sarama"
)

// want has a partition added with the next request.
func (t *saramaTransactor) want(tp TopicPartition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted[tp] = struct{}{}
}

// addPartitions adds the wanted partitions to the transaction. It returns
// what was decided for single ones; the others stay wanted. An error concerns
// the transaction. It runs on a goroutine of the producer, one at a time.
func (t *saramaTransactor) addPartitions() (map[TopicPartition]error, error) {
	s := t.scopeOf()
	var decided map[TopicPartition]error
	err := t.persist(s, "adding partitions", func() error {
		var answer *sarama.AddPartitionsToTxnResponse
		var asked []TopicPartition
		maybe, err := t.ask(s, t.ofID(), func(b *sarama.Broker) (err error) {
			var req *sarama.AddPartitionsToTxnRequest
			req, asked = t.partitionsRequest()
			answer, err = b.AddPartitionsToTxn(req)
			return err
		})
		if err != nil {
			if maybe {
				t.opened(maybeOpen)
			}
			return err
		}
		decided, err = t.readPartitions(answer, asked)
		return err
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	for tp := range decided {
		delete(t.wanted, tp)
	}
	if err == nil {
		return decided, nil
	}
	clear(t.wanted)
	return nil, t.failure("adding partitions", txnError(err))
}

// partitionsRequest asks for all that is wanted by now.
func (t *saramaTransactor) partitionsRequest() (*sarama.AddPartitionsToTxnRequest, []TopicPartition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	byTopic := map[string][]int32{}
	asked := make([]TopicPartition, 0, len(t.wanted))
	for tp := range t.wanted {
		byTopic[tp.Topic] = append(byTopic[tp.Topic], tp.Partition)
		asked = append(asked, tp)
	}
	return &sarama.AddPartitionsToTxnRequest{
		Version: t.version(), TransactionalID: t.cfg.ID, ProducerID: t.seat.id, ProducerEpoch: t.seat.epoch, TopicPartitions: byTopic,
	}, asked
}

// readPartitions sorts the answer. Brokers add all partitions of a request
// or none: beside one that is refused, the others are not attempted.
func (t *saramaTransactor) readPartitions(answer *sarama.AddPartitionsToTxnResponse, asked []TopicPartition) (map[TopicPartition]error, error) {
	codes := make(map[TopicPartition]sarama.KError, len(asked))
	for topic, partitions := range answer.Errors {
		for _, p := range partitions {
			codes[TopicPartition{Topic: topic, Partition: p.Partition}] = p.Err
		}
	}
	decided := make(map[TopicPartition]error, len(asked))
	var later error
	for _, tp := range asked {
		code, ok := codes[tp]
		if !ok {
			return nil, sarama.ErrIncompleteResponse
		}
		switch code {
		case sarama.ErrNoError:
			t.opened(openTxn)
			decided[tp] = nil
		case sarama.ErrOperationNotAttempted:
		case sarama.ErrUnknownTopicOrPartition, sarama.ErrTopicAuthorizationFailed:
			decided[tp] = kerror(code)
		default:
			t.moved(t.ofID(), code)
			if !retriableCode(code) {
				return nil, fmt.Errorf("%s: %w", tp, t.step(code))
			}
			if endUncertain(code) {
				t.opened(maybeOpen)
			}
			later = kerror(code)
		}
	}
	if len(decided) == 0 && later == nil && len(asked) > 0 {
		later = sarama.ErrIncompleteResponse // not attempted, and no reason given
	}
	return decided, later
}

// opened notes what the coordinator knows.
func (t *saramaTransactor) opened(o openness) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = max(t.open, o)
}

// isOpen reports what the coordinator knows.
func (t *saramaTransactor) isOpen() openness {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}
