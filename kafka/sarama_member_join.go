package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// join asks the owner what to join with and sends it.
func (m *saramaMember) join() {
	m.again = false
	sub := m.cfg.Subscribe()
	req, err := m.joinRequest(sub)
	if err != nil {
		m.refused(m.groupError(err))
		return
	}
	m.sendJoin(req)
}

func (m *saramaMember) joinRequest(sub Subscription) (*sarama.JoinGroupRequest, error) {
	version := int16(6)
	switch {
	case m.d.cfg.Version.IsAtLeast(sarama.V3_2_0_0):
		version = 8
	case m.d.cfg.Version.IsAtLeast(sarama.V2_5_0_0):
		version = 7
	}
	req := &sarama.JoinGroupRequest{
		Version: version, GroupId: m.cfg.Group, GroupInstanceId: m.instance(), ProtocolType: groupProtocolType,
		SessionTimeout:   int32(m.cfg.SessionTimeout / time.Millisecond),
		RebalanceTimeout: int32(m.cfg.RebalanceTimeout / time.Millisecond),
	}
	err := req.AddGroupProtocolMetadata(m.cfg.Protocol, encodeSubscription(sub, m.place.owned()))
	return req, err
}

func (m *saramaMember) sendJoin(req *sarama.JoinGroupRequest) {
	m.state = memberJoining
	req.MemberId = m.place.id
	m.wg.Go(func() { // ends with the answer or stay
		var answer *sarama.JoinGroupResponse
		err := m.ask(m.stay, m.joins, func(b *sarama.Broker) (err error) {
			answer, err = b.JoinGroup(req)
			return err
		})
		m.mail.Put(func() { m.joined(req, answer, err) })
	})
}

func (m *saramaMember) joined(req *sarama.JoinGroupRequest, answer *sarama.JoinGroupResponse, err error) {
	if m.state != memberJoining || m.stay.Err() != nil {
		return
	}
	if err != nil {
		m.failed(err)
		return
	}
	switch answer.Err {
	case sarama.ErrNoError:
		m.setID(answer.MemberId)
		m.place.generation = answer.GenerationId
		m.beatAs(answer.MemberId, answer.GenerationId)
		m.sync(answer)
	case sarama.ErrMemberIdRequired:
		m.setID(answer.MemberId)
		m.sendJoin(req)
	default:
		m.rejected(answer.Err)
	}
}

// failed deals with a join or sync that was not answered.
func (m *saramaMember) failed(err error) {
	if retriable(err) {
		m.forgetUnproven()
		m.later(m.groupError(err))
		return
	}
	m.refused(m.groupError(err))
}

// rejected deals with a join or sync that was answered with an error.
func (m *saramaMember) rejected(e sarama.KError) {
	err := m.groupError(kerror(e))
	m.moved(e)
	switch {
	case e == sarama.ErrUnknownMemberId:
		m.setID("")
		m.lost(err)
		m.later(err)
	case e == sarama.ErrRebalanceInProgress, e == sarama.ErrIllegalGeneration:
		m.later(err)
	case retriableCode(e):
		m.forgetUnproven()
		m.later(err)
	case m.doubted(err):
		m.later(err)
	default:
		m.refused(err)
	}
}

// sync gets this member's share, having sent everybody's as the leader.
func (m *saramaMember) sync(joined *sarama.JoinGroupResponse) {
	req := &sarama.SyncGroupRequest{
		Version: 4, GroupId: m.cfg.Group, GenerationId: m.place.generation,
		MemberId: m.place.id, GroupInstanceId: m.instance(),
	}
	if m.d.cfg.Version.IsAtLeast(sarama.V2_5_0_0) {
		protocolType := groupProtocolType
		req.Version, req.ProtocolType, req.ProtocolName = 5, &protocolType, &joined.GroupProtocol
	}
	if joined.LeaderId == joined.MemberId {
		if err := m.plan(req, joined.Members); err != nil {
			m.later(m.groupError(fmt.Errorf("planning: %w", err)))
			return
		}
	}
	m.state = memberSyncing
	m.wg.Go(func() { // ends with the answer or stay
		var answer *sarama.SyncGroupResponse
		var sent time.Time
		err := m.ask(m.stay, m.joins, func(b *sarama.Broker) (err error) {
			sent = m.d.clock.Now()
			answer, err = b.SyncGroup(req)
			return err
		})
		m.mail.Put(func() { m.synced(answer, sent, err) })
	})
}

// plan adds the shares of all members to a leader's sync.
func (m *saramaMember) plan(req *sarama.SyncGroupRequest, raw []sarama.GroupMember) error {
	ctx, cancel := context.WithTimeout(m.stay, m.cfg.RebalanceTimeout)
	defer cancel()
	shares, err := m.cfg.Plan(ctx, decodeMembers(raw))
	if err != nil {
		return err
	}
	for _, member := range raw {
		if err := req.AddGroupAssignmentMember(member.MemberId, encodeShare(shares[member.MemberId])); err != nil {
			return err
		}
	}
	return nil
}

func (m *saramaMember) synced(answer *sarama.SyncGroupResponse, sent time.Time, err error) {
	if m.state != memberSyncing || m.stay.Err() != nil {
		return
	}
	if err != nil {
		m.failed(err)
		return
	}
	if answer.Err == sarama.ErrRebalanceInProgress { // this generation is missed
		m.join()
		return
	}
	if answer.Err != sarama.ErrNoError {
		m.rejected(answer.Err)
		return
	}
	share, err := decodeShare(answer)
	if err != nil {
		m.refused(m.groupError(fmt.Errorf("assignment: %w", errors.Join(ErrCorrupt, err))))
		return
	}
	m.adopt(share, sent)
}

// adopt hands the assignment to the owner.
func (m *saramaMember) adopt(share Share, sent time.Time) {
	m.retry.reset()
	m.told, m.anew = false, false
	m.state = memberStable
	a := Assignment{Share: share, MemberID: m.place.id, Generation: m.place.generation, Rejoined: m.place.adopt()}
	m.mu.Lock()
	m.holds, m.fresh = true, m.d.clock.Now().Add(eagerIntervals*m.cfg.HeartbeatInterval)
	m.mu.Unlock()
	m.extend(sent)
	m.cfg.Assigned(a)
	if m.again {
		m.join()
	}
}
