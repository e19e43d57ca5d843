package tester

import (
	"errors"
	"fmt"

	"github.com/rekastream/reka/kafka"
)

// maxMetadata is what a broker accepts as metadata of one offset, in bytes.
const maxMetadata = 4096

var errMetadata = errors.New("offset metadata too large")

// commit is an OffsetCommit request. The errors of single partitions are
// written into offsets. mu is held.
func (g *group) commit(m *member, id string, generation int32, offsets []kafka.CommittedOffset) error {
	switch {
	case id == "" && generation < 0 && len(g.members) == 0:
		// Somebody commits for a group that nobody is in: a reset.
	default:
		if _, err := g.check(id, m.cfg.InstanceID); err != nil {
			return err
		}
		if generation != g.generation {
			return kafka.ErrIllegalGeneration
		}
		if g.state == completing {
			return kafka.ErrRebalanceInProgress
		}
	}
	for i := range offsets {
		o := &offsets[i]
		if o.Err = g.judge(*o); o.Err == nil {
			g.store(*o)
		}
	}
	return nil
}

// judge is what the coordinator checks of one offset. mu is held.
func (g *group) judge(o kafka.CommittedOffset) error {
	if _, l := g.w.log(o.TopicPartition); l == nil {
		return &kafka.Error{TopicPartition: o.TopicPartition, Offset: -1, Err: kafka.ErrUnknownTopic}
	}
	if len(o.Metadata) > maxMetadata {
		return &kafka.Error{TopicPartition: o.TopicPartition, Offset: -1, Err: errMetadata}
	}
	return nil
}

// committed is an OffsetFetch request. mu is held.
func (g *group) committed(tps []kafka.TopicPartition) []kafka.CommittedOffset {
	out := make([]kafka.CommittedOffset, len(tps))
	for i, tp := range tps {
		out[i] = kafka.CommittedOffset{TopicPartition: tp, Offset: -1, LeaderEpoch: -1}
		if o, ok := g.offsets[tp]; ok {
			out[i] = o.CommittedOffset
		}
	}
	return out
}

// describe is a DescribeGroups request. mu is held.
func (w *world) describe(name string) kafka.Group {
	g := w.groups[name]
	if g == nil || len(g.members) == 0 && len(g.offsets) == 0 {
		return kafka.Group{Name: name, State: "Dead"}
	}
	out := kafka.Group{Name: name, State: string(g.state), Protocol: g.protocol, Shares: map[string]kafka.Share{}}
	for _, m := range g.members {
		out.Members = append(out.Members, m.describe())
		if g.state == stable {
			out.Shares[m.id] = m.share
		}
	}
	return out
}

func groupError(what, group string, err error) error {
	return fmt.Errorf("%s group %s: %w", what, group, err)
}
