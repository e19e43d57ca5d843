package processor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/assign"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

const (
	// protocol is the assignor's name in the group protocol.
	protocol = "reka"
	// subgraph is the name of a graph's only part.
	subgraph = "main"
)

// memberConfig ties the session to its member. The callbacks run on the
// member's goroutine.
func (s *session) memberConfig(instance string) kafka.MemberConfig {
	c := s.p.cfg
	return kafka.MemberConfig{
		Group: s.p.graph.spec.Group, InstanceID: instance, Protocol: protocol,
		SessionTimeout: c.session, HeartbeatInterval: c.heartbeat, RebalanceTimeout: c.rebalance,
		Subscribe: s.subscribe, Plan: s.plan,
		Assigned: func(a kafka.Assignment) { s.box.Put(message{kind: msgAssigned, assign: a}) },
		Lost:     func(err error) { s.box.Put(message{kind: msgLost, err: err}) },
	}
}

func (s *session) declared() []assign.Subgraph {
	return []assign.Subgraph{{Name: subgraph, Topics: s.p.graph.spec.Copartitioned()}}
}

func (s *session) fingerprint() (f assign.Fingerprint) {
	binary.BigEndian.PutUint64(f[:], s.env.Fingerprint)
	return f
}

func (s *session) subscribe() kafka.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return assign.Subscription(assign.MemberData{
		ProcessID: s.env.ProcessID, Fingerprint: s.fingerprint(), Nonce: s.nonce, Lanes: 1, Subgraphs: s.declared(),
	}, s.claims)
}

// plan runs on the leader: who gets which task.
func (s *session) plan(ctx context.Context, group []kafka.GroupMember) (map[string]kafka.Share, error) {
	members := assign.MembersOf(group)
	topics, err := s.p.client.Driver().Admin().Topics(ctx, assign.DeclaredTopics(members)...)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int32, len(topics))
	for name, t := range topics {
		counts[name] = t.Partitions
	}
	r, err := assign.Plan(assign.Input{Members: members, Partitions: counts})
	if err != nil {
		return nil, err
	}
	if err := r.Err(); err != nil {
		s.p.log.Warn("part of the group cannot run", zap.String("group", s.p.graph.spec.Group), zap.Error(err))
	}
	return r.Encode(s.fingerprint(), 0).Shares, nil
}

// adopt takes an assignment in: what is gone is given up, what is new is
// taken over, what stays goes on. While the session stops nothing is taken
// over, but what is being drained commits in the new generation.
func (s *session) adopt(a kafka.Assignment) {
	own, data, err := assign.ReadShare(a.Share, s.declared())
	if err != nil {
		s.fail(fmt.Errorf("assignment: %w", err))
		return
	}
	for _, r := range data.Refused {
		if narrow, ok := errors.AsType[*assign.NarrowError](r.Err); ok {
			s.p.log.Warn("other members run a wider graph; this one waits", zap.String("group", s.p.graph.spec.Group), zap.Error(narrow))
			continue
		}
		s.fail(fmt.Errorf("the group refused this member: %w", r.Err))
		return
	}
	s.assigned, s.joined = true, true
	want := make(map[int32]bool, len(own))
	for _, t := range own {
		want[t.Partition] = true
	}
	releasing := map[int32]bool{}
	for _, t := range data.Releasing {
		releasing[t.Partition] = true
	}
	// Given up first: nothing of a lost tenure may be committed in the name of
	// the new generation.
	s.giveUp(want, releasing, a.Rejoined)
	s.lane.Adopt(task.Identity{Member: s.member, MemberID: a.MemberID, Generation: a.Generation})
	if s.stopping {
		return
	}
	var fresh []int32
	for p := range want {
		switch sl := s.slots[p]; {
		case sl == nil:
			fresh = append(fresh, p)
		case sl.closing:
			sl.wanted = true
		}
	}
	slices.Sort(fresh)
	if f := s.p.cfg.observer.Assigned; f != nil && len(fresh) > 0 {
		f(fresh)
	}
	s.take(fresh)
	s.rejoin = data.Rejoin || len(releasing) > 0
	if s.rejoin && s.overdue == nil {
		s.overdue = s.env.Clock.AfterFunc(s.p.cfg.rebalance, func() { s.box.Put(message{kind: msgOverdue}) })
	}
	s.maybeRejoin()
}

// dropOverdue gives up on tasks that were to be released and are held by a
// callback that does not return: others wait for their partitions.
func (s *session) dropOverdue() {
	s.overdue = nil
	for p, sl := range s.slots {
		if !sl.closing || sl.written {
			continue
		}
		wanted := sl.wanted
		s.close(sl, true)
		sl.wanted, sl.written = wanted, true // a dropped task writes nothing more
		s.p.log.Warn("a callback takes longer than the rebalance timeout; its partition is given up",
			zap.String("group", s.p.graph.spec.Group), zap.Int32("partition", p))
	}
	s.maybeRejoin()
}

// giveUp closes what is not ours any more. A member that missed a generation
// does not know who owned its tasks meanwhile: it starts all of them anew, and
// takeovers too, which know only what was committed when they began.
func (s *session) giveUp(want, releasing map[int32]bool, unbroken bool) {
	for p, sl := range s.slots {
		switch {
		case !unbroken:
			s.close(sl, true)
		case want[p]:
		case sl.task == nil:
			s.close(sl, true)
		default:
			s.close(sl, !releasing[p])
		}
	}
}

// lost ends the tenure of everything: nothing may be written any more.
func (s *session) lost(err error) {
	if kafka.Permanent(err) || errors.Is(err, kafka.ErrClosed) {
		s.fail(fmt.Errorf("group membership: %w", err))
	} else {
		s.p.log.Warn("no longer a member of the group; joining again", zap.String("group", s.p.graph.spec.Group), zap.Error(err))
	}
	for _, sl := range s.slots {
		s.close(sl, true)
	}
	s.assigned, s.rejoin = false, false
}

// maybeRejoin joins again once everything that others wait for is written.
func (s *session) maybeRejoin() {
	if !s.rejoin || s.stopping {
		return
	}
	for _, sl := range s.slots {
		if sl.closing && !sl.written {
			return
		}
	}
	s.rejoin = false
	if s.overdue != nil {
		s.overdue.Stop()
		s.overdue = nil
	}
	s.mu.Lock()
	s.nonce++
	s.mu.Unlock()
	s.publish()
	s.member.Rejoin()
}
