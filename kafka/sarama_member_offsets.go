package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

func (m *saramaMember) Commit(ctx context.Context, memberID string, generation int32, offsets []CommittedOffset) error {
	if len(offsets) == 0 {
		return nil
	}
	return m.untilDone(ctx, "committing offsets", func(ctx context.Context) error {
		if m.stay.Err() != nil {
			return fmt.Errorf("the member has left: %w", kerror(sarama.ErrUnknownMemberId))
		}
		var answer *sarama.OffsetCommitResponse
		err := m.ask(ctx, m.offsets, func(b *sarama.Broker) (err error) {
			answer, err = b.CommitOffset(m.commitRequest(memberID, generation, offsets))
			return err
		})
		if err != nil {
			return err
		}
		return m.readCommit(answer, offsets)
	})
}

func (m *saramaMember) commitRequest(memberID string, generation int32, offsets []CommittedOffset) *sarama.OffsetCommitRequest {
	req := &sarama.OffsetCommitRequest{
		Version: 8, ConsumerGroup: m.cfg.Group, ConsumerGroupGeneration: generation,
		ConsumerID: memberID, GroupInstanceId: m.instance(),
	}
	for i := range offsets {
		o := &offsets[i]
		req.AddBlockWithLeaderEpoch(o.Topic, o.Partition, o.Offset, o.LeaderEpoch, 0, o.Metadata)
	}
	return req
}

// readCommit sorts the errors of partitions: those that concern the group,
// which brokers repeat for every partition, are returned.
func (m *saramaMember) readCommit(answer *sarama.OffsetCommitResponse, offsets []CommittedOffset) error {
	for i := range offsets {
		o := &offsets[i]
		code, ok := answer.Errors[o.Topic][o.Partition]
		if !ok {
			return sarama.ErrIncompleteResponse
		}
		o.Err = nil
		if code == sarama.ErrNoError {
			continue
		}
		m.moved(code)
		if groupWide(code) {
			return kerror(code)
		}
		o.Err = &Error{TopicPartition: o.TopicPartition, Offset: o.Offset, Err: kerror(code)}
	}
	return nil
}

// groupWide reports whether an error of a partition concerns the group, its
// coordinator or the member.
func groupWide(e sarama.KError) bool {
	switch e {
	case sarama.ErrIllegalGeneration, sarama.ErrUnknownMemberId, sarama.ErrRebalanceInProgress,
		sarama.ErrFencedInstancedId, sarama.ErrGroupAuthorizationFailed, sarama.ErrInvalidGroupId:
		return true
	}
	return retriableCode(e)
}

func (m *saramaMember) Committed(ctx context.Context, partitions []TopicPartition, stable bool) ([]CommittedOffset, error) {
	if len(partitions) == 0 {
		return nil, nil
	}
	if stable && !m.d.cfg.Version.IsAtLeast(sarama.V2_5_0_0) {
		return nil, m.groupError(fmt.Errorf("%w: stable offsets need protocol version 2.5", ErrUnsupported))
	}
	var offsets []CommittedOffset
	err := m.untilDone(ctx, "reading committed offsets", func(ctx context.Context) (err error) {
		var answer *sarama.OffsetFetchResponse
		err = m.ask(ctx, m.offsets, func(b *sarama.Broker) (err error) {
			answer, err = b.FetchOffset(m.committedRequest(partitions, stable))
			return err
		})
		if err == nil {
			offsets, err = m.readCommitted(answer, partitions)
		}
		return err
	})
	return offsets, err
}

func (m *saramaMember) committedRequest(partitions []TopicPartition, stable bool) *sarama.OffsetFetchRequest {
	byTopic := map[string][]int32{}
	for _, tp := range partitions {
		byTopic[tp.Topic] = append(byTopic[tp.Topic], tp.Partition)
	}
	req := sarama.NewOffsetFetchRequest(m.d.cfg.Version, m.cfg.Group, byTopic)
	req.RequireStable = stable
	return req
}

func (m *saramaMember) readCommitted(answer *sarama.OffsetFetchResponse, partitions []TopicPartition) ([]CommittedOffset, error) {
	if e := answer.GroupError(); e != sarama.ErrNoError {
		m.moved(e)
		return nil, kerror(e)
	}
	offsets := make([]CommittedOffset, len(partitions))
	for i, tp := range partitions {
		offsets[i] = CommittedOffset{TopicPartition: tp, Offset: -1, LeaderEpoch: -1}
		block := answer.GetBlock(tp.Topic, tp.Partition)
		if block == nil {
			continue
		}
		if block.Err != sarama.ErrNoError {
			m.moved(block.Err)
			if groupWide(block.Err) {
				return nil, kerror(block.Err)
			}
			offsets[i].Err = &Error{TopicPartition: tp, Offset: -1, Err: kerror(block.Err)}
			continue
		}
		offsets[i].Offset, offsets[i].LeaderEpoch, offsets[i].Metadata = block.Offset, block.LeaderEpoch, block.Metadata
	}
	return offsets, nil
}

func (m *saramaMember) Leave(ctx context.Context) error {
	m.depart(ErrClosed) // cuts a parked join, too
	started, err := m.stop(ctx)
	if err != nil {
		return fmt.Errorf("leaving: %w", m.groupError(err))
	}
	m.mu.Lock()
	id := m.id
	m.mu.Unlock()
	if !started || id == "" && m.cfg.InstanceID == "" {
		return nil // at most an id was asked for, which stands for nothing yet
	}
	return m.untilDone(ctx, "leaving", func(ctx context.Context) error {
		var answer *sarama.LeaveGroupResponse
		err := m.ask(ctx, m.offsets, func(b *sarama.Broker) (err error) {
			answer, err = b.LeaveGroup(&sarama.LeaveGroupRequest{
				Version: 4, GroupId: m.cfg.Group,
				Members: []sarama.MemberIdentity{{MemberId: id, GroupInstanceId: m.instance()}},
			})
			return err
		})
		if err != nil {
			return err
		}
		code := answer.Err
		for _, member := range answer.Members {
			if code == sarama.ErrNoError {
				code = member.Err
			}
		}
		m.moved(code)
		if code == sarama.ErrUnknownMemberId || code == sarama.ErrFencedInstancedId {
			return nil // it is not in the group: all that was wanted
		}
		return kerror(code)
	})
}

// stop ends the membership on run. It reports whether there was one: whoever
// has taken the identity would be the one who leaves.
func (m *saramaMember) stop(ctx context.Context) (started bool, err error) {
	stopped := make(chan bool, 1) // run puts one
	if !m.mail.Put(func() {
		stopped <- m.state != memberCreated && !m.taken
		m.end()
	}) {
		return false, ErrClosed
	}
	select {
	case started = <-stopped:
		return started, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-m.ended:
		return false, ErrClosed
	}
}

// untilDone repeats f until it succeeds, is refused, ctx ends or the member
// is closed.
func (m *saramaMember) untilDone(ctx context.Context, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(m.ctx, func() { cancel(ErrClosed) })
	defer stop()
	b := newBackoff(what+" of group "+m.cfg.Group, m.d.clock, m.d.log)
	for {
		err := f(ctx)
		if retriable(err) {
			if b.wait(ctx, err) == nil {
				continue
			}
			err = fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		}
		if err == nil {
			b.reset()
			return nil
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = errors.Join(cause, err)
		}
		return fmt.Errorf("%s: %w", what, m.groupError(err))
	}
}

// codeOf is the broker's code in an error.
func codeOf(err error) (sarama.KError, bool) {
	var code sarama.KError
	ok := errors.As(err, &code)
	return code, ok
}
