package replica

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rekastream/reka/kafka"
)

// Bounds is what the broker says of a partition before it is followed.
type Bounds struct {
	LogStart, LastStable, HighWatermark int64

	TopicID kafka.TopicID

	// TombstoneRetention is the topic's delete.retention.ms. 0: unknown, or
	// the topic is not compacted: the age of a checkpoint does not matter.
	TombstoneRetention time.Duration

	cut cut
}

// AskBounds asks for the bounds of partitions of one topic, of all if none
// is named. kafka.ErrUnknownTopic, as a *kafka.Error, if there is no such
// topic.
func AskBounds(ctx context.Context, a kafka.Admin, topic string, partitions ...int32) (map[int32]Bounds, error) {
	topics, err := a.Topics(ctx, topic)
	if err != nil {
		return nil, err
	}
	t, ok := topics[topic]
	if !ok {
		return nil, &kafka.Error{TopicPartition: kafka.TopicPartition{Topic: topic, Partition: -1}, Offset: -1, Err: kafka.ErrUnknownTopic}
	}
	if len(partitions) == 0 {
		for p := range t.Partitions {
			partitions = append(partitions, p)
		}
	}
	keep, err := tombstoneRetention(ctx, a, topic)
	if err != nil {
		return nil, err
	}
	all := make(map[int32]Bounds, len(partitions))
	tps := make([]kafka.TopicPartition, 0, len(partitions))
	for _, p := range partitions {
		all[p] = Bounds{TopicID: t.ID, TombstoneRetention: keep}
		tps = append(tps, kafka.TopicPartition{Topic: topic, Partition: p})
	}
	for _, m := range []struct {
		mark kafka.Mark
		set  func(*Bounds, int64)
	}{
		{kafka.LogStart, func(b *Bounds, o int64) { b.LogStart = o }},
		{kafka.LastStable, func(b *Bounds, o int64) { b.LastStable = o }},
		{kafka.HighWatermark, func(b *Bounds, o int64) { b.HighWatermark = o }},
	} {
		marks, err := a.Offsets(ctx, m.mark, tps...)
		if err != nil {
			return nil, err
		}
		for _, tp := range tps {
			b := all[tp.Partition]
			m.set(&b, marks[tp])
			all[tp.Partition] = b
		}
	}
	return all, nil
}

// tombstoneRetention returns 0 for a topic that is not compacted, and where
// the settings may not be read: that is a right of its own.
func tombstoneRetention(ctx context.Context, a kafka.Admin, topic string) (time.Duration, error) {
	configs, err := a.Configs(ctx, topic)
	switch {
	case errors.Is(err, kafka.ErrNotAuthorized), errors.Is(err, kafka.ErrUnsupported):
		return 0, nil
	case err != nil:
		return 0, err
	case !strings.Contains(configs["cleanup.policy"], "compact"):
		return 0, nil
	}
	if ms, err := strconv.ParseInt(configs["delete.retention.ms"], 10, 64); err == nil && ms > 0 {
		return time.Duration(min(ms, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond, nil
	}
	return 0, nil // not said: unknown
}

// tombstoneMargin is how much earlier than the broker may drop a tombstone a
// checkpoint counts as too old: clocks differ, and batches wait.
func tombstoneMargin(retention time.Duration) time.Duration {
	return min(time.Hour, retention/10)
}

// unsound says why a checkpoint cannot be resumed from; empty if it can.
func (b Bounds) unsound(pos int64, t Target) string {
	if reason := b.cut.unsound(pos); reason != "" {
		return reason
	}
	switch {
	case pos < b.LogStart:
		return fmt.Sprintf("its position %d lies before the log's start %d", pos, b.LogStart)
	case pos > b.HighWatermark:
		return fmt.Sprintf("its position %d lies behind the log's end %d", pos, b.HighWatermark)
	case t.Exact && pos > t.At:
		return fmt.Sprintf("its position %d lies behind the wanted one, %d", pos, t.At)
	}
	return ""
}
