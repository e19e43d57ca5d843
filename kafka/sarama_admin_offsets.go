package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

func (a *saramaAdmin) Offsets(ctx context.Context, at Mark, partitions ...TopicPartition) (map[TopicPartition]int64, error) {
	offsets := make(map[TopicPartition]int64, len(partitions))
	timestamp, isolation := int64(at), sarama.ReadUncommitted
	switch at {
	case HighWatermark:
		timestamp = sarama.OffsetNewest
	case LogStart:
		timestamp = sarama.OffsetOldest
	case LastStable:
		timestamp, isolation = sarama.OffsetNewest, sarama.ReadCommitted
	default:
		if at < 0 {
			return nil, fmt.Errorf("offsets: unknown mark %d", at)
		}
	}
	err := a.onLeaders(ctx, "asking for offsets", partitions, func(addr string, asked []TopicPartition) (map[TopicPartition]sarama.KError, error) {
		req := sarama.NewOffsetRequest(a.d.cfg.Version)
		req.IsolationLevel = isolation
		for _, tp := range asked {
			req.AddBlock(tp.Topic, tp.Partition, timestamp, 1)
		}
		var answer *sarama.OffsetResponse
		if err := a.conns.do(ctx, addr, func(b *sarama.Broker) (err error) {
			answer, err = b.GetAvailableOffsets(req)
			return err
		}); err != nil {
			return nil, err
		}
		codes := map[TopicPartition]sarama.KError{}
		for _, tp := range asked {
			if block := answer.GetBlock(tp.Topic, tp.Partition); block != nil {
				codes[tp], offsets[tp] = block.Err, block.Offset
			}
		}
		return codes, nil
	})
	if err != nil {
		return nil, err
	}
	return offsets, a.fillBehindLast(ctx, at, offsets)
}

// fillBehindLast gives the high watermark to partitions that have no record
// at or after a timestamp.
func (a *saramaAdmin) fillBehindLast(ctx context.Context, at Mark, offsets map[TopicPartition]int64) error {
	var behind []TopicPartition
	for tp, offset := range offsets {
		if offset < 0 && at >= 0 {
			behind = append(behind, tp)
		}
	}
	if len(behind) == 0 {
		return nil
	}
	ends, err := a.Offsets(ctx, HighWatermark, behind...)
	for tp, offset := range ends {
		offsets[tp] = offset
	}
	return err
}

func (a *saramaAdmin) DeleteRecords(ctx context.Context, before map[TopicPartition]int64) error {
	partitions := make([]TopicPartition, 0, len(before))
	for tp := range before {
		partitions = append(partitions, tp)
	}
	return a.onLeaders(ctx, "deleting records", partitions, func(addr string, asked []TopicPartition) (map[TopicPartition]sarama.KError, error) {
		req := &sarama.DeleteRecordsRequest{Version: 1, Topics: map[string]*sarama.DeleteRecordsRequestTopic{}, Timeout: adminTimeout}
		for _, tp := range asked {
			if req.Topics[tp.Topic] == nil {
				req.Topics[tp.Topic] = &sarama.DeleteRecordsRequestTopic{PartitionOffsets: map[int32]int64{}}
			}
			req.Topics[tp.Topic].PartitionOffsets[tp.Partition] = before[tp]
		}
		var answer *sarama.DeleteRecordsResponse
		if err := a.conns.do(ctx, addr, func(b *sarama.Broker) (err error) {
			answer, err = b.DeleteRecords(req)
			return err
		}); err != nil {
			return nil, err
		}
		codes := map[TopicPartition]sarama.KError{}
		for topic, t := range answer.Topics {
			for p, result := range t.Partitions {
				codes[TopicPartition{topic, p}] = result.Err
			}
		}
		return codes, nil
	})
}

// leaderCall asks one broker about some of its partitions and returns what
// the broker said of each.
type leaderCall func(addr string, asked []TopicPartition) (map[TopicPartition]sarama.KError, error)

// onLeaders runs call with the leader of each partition and repeats it for
// those whose leader moved or is away. The error joins those of partitions.
func (a *saramaAdmin) onLeaders(ctx context.Context, what string, partitions []TopicPartition, call leaderCall) error {
	left := partitions
	var refused []error
	err := a.d.retry(ctx, what, func() error {
		byLeader := map[string][]TopicPartition{}
		for _, tp := range left {
			addr, _, err := a.d.leader(ctx, tp)
			if err != nil {
				return err
			}
			byLeader[addr] = append(byLeader[addr], tp)
		}
		left = nil
		var again []error
		for addr, asked := range byLeader {
			codes, err := call(addr, asked)
			if err != nil && !retriable(err) {
				return err
			}
			if err != nil {
				again = append(again, err)
			}
			for _, tp := range asked {
				code, ok := codes[tp]
				switch {
				case !ok:
					left = append(left, tp)
					again = append(again, fmt.Errorf("%s: %w", tp, sarama.ErrIncompleteResponse))
				case retriableCode(code), code == sarama.ErrUnknownTopicOrPartition:
					// A broker may not know yet what the metadata tells; if
					// the partition is gone, the metadata will say so.
					left = append(left, tp)
					again = append(again, fmt.Errorf("%s: %w", tp, code))
				case code != sarama.ErrNoError:
					refused = append(refused, &Error{TopicPartition: tp, Offset: -1, Err: kerror(code)})
				}
			}
		}
		for _, tp := range left {
			a.d.invalidate(tp.Topic)
		}
		if len(left) == 0 {
			return nil
		}
		return stillAwayError{errors.Join(again...)}
	})
	return errors.Join(append(refused, err)...)
}

// stillAwayError is the trouble of partitions whose leader has to be asked again.
// It hides the broker's codes, among them ones that are decisions elsewhere.
type stillAwayError struct{ trouble error }

func (e stillAwayError) Error() string { return e.trouble.Error() }
