package kafka

import (
	"context"
	"encoding/binary"

	"github.com/IBM/sarama"
)

// The request that asks for the end of a leader epoch, in its last version
// that is not flexible; all brokers from 2.3 on know it.
const (
	epochEndKey     = 23
	epochEndVersion = 3
)

// epochEnd is what a leader answers.
type epochEnd struct {
	code  sarama.KError
	epoch int32
	end   int64
}

func (a *saramaAdmin) EpochEnd(ctx context.Context, tp TopicPartition, leaderEpoch int32) (epoch int32, end int64, err error) {
	var answer epochEnd
	if leaderEpoch == NewestEpoch {
		a.d.invalidate(tp.Topic) // the leader may have begun another one unnoticed
	}
	err = a.onLeaders(ctx, "asking for the end of a leader epoch", []TopicPartition{tp},
		func(addr string, _ []TopicPartition) (map[TopicPartition]sarama.KError, error) {
			// Who leads no more, and one who does not yet know that it
			// leads, refuse it by the epoch of the metadata.
			_, current, err := a.d.meta.leader(tp)
			if err != nil {
				current = -1
			}
			asked := leaderEpoch
			if asked == NewestEpoch {
				if asked = current; asked < 0 {
					return nil, sarama.ErrUnsupportedVersion // it is not told with the leaders
				}
			}
			body, err := a.inspect.ask(ctx, addr, bareRequest{epochEndKey, epochEndVersion, epochEndBody(tp, current, asked)})
			if err != nil {
				return nil, err
			}
			if answer, err = decodeEpochEnd(body, tp); err != nil {
				return nil, err
			}
			return map[TopicPartition]sarama.KError{tp: answer.code}, nil
		})
	if err != nil {
		return -1, -1, err
	}
	return answer.epoch, answer.end, nil
}

func epochEndBody(tp TopicPartition, current, asked int32) []byte {
	const consumer, one = ^uint32(0), 1
	b := binary.BigEndian.AppendUint32(nil, consumer)
	b = binary.BigEndian.AppendUint32(b, one)
	b = appendString(b, tp.Topic)
	b = binary.BigEndian.AppendUint32(b, one)
	b = binary.BigEndian.AppendUint32(b, uint32(tp.Partition))
	b = binary.BigEndian.AppendUint32(b, uint32(current))
	return binary.BigEndian.AppendUint32(b, uint32(asked))
}

func decodeEpochEnd(body []byte, tp TopicPartition) (epochEnd, error) {
	r := bareReader{b: body}
	r.int32() // throttle time
	topics, topic, partitions := r.int32(), r.string(), r.int32()
	code, partition := sarama.KError(r.int16()), r.int32()
	answer := epochEnd{code: code, epoch: r.int32(), end: r.int64()}
	if r.cut || topics != 1 || partitions != 1 || topic != tp.Topic || partition != tp.Partition {
		return epochEnd{}, sarama.ErrIncompleteResponse
	}
	return answer, nil
}
