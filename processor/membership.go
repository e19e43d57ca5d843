package processor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/assign"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
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

// declared is what this member can run. Members that keep other state are
// told apart: a table has every record only if nobody processes without it.
func (s *session) declared() []assign.Subgraph {
	g := &s.p.graph.spec
	d := assign.Subgraph{Name: subgraph, Topics: g.Copartitioned()}
	for _, st := range g.Stores {
		if st.Changelog != "" {
			d.Keeps = append(d.Keeps, st.Changelog)
		}
	}
	return []assign.Subgraph{d}
}

func (s *session) fingerprint() (f assign.Fingerprint) {
	binary.BigEndian.PutUint64(f[:], s.env.Fingerprint)
	return f
}

func (s *session) subscribe() kafka.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = true
	return assign.Subscription(assign.MemberData{
		ProcessID: s.env.ProcessID, Fingerprint: s.fingerprint(), Nonce: s.nonce, Lanes: 1, Subgraphs: s.declared(),
	}, s.claims)
}

// plan runs on the leader: who gets which task.
func (s *session) plan(ctx context.Context, group []kafka.GroupMember) (map[string]kafka.Share, error) {
	members := assign.MembersOf(group)
	counts, err := s.counts(ctx, assign.DeclaredTopics(members))
	if err != nil {
		return nil, err
	}
	r, err := assign.Plan(assign.Input{Members: members, Partitions: counts})
	if err != nil {
		return nil, err
	}
	if err := r.Err(); err != nil {
		s.p.log.Warn("part of the group cannot run", zap.String("group", s.p.graph.spec.Group), zap.Error(err))
	}
	out := r.Encode(s.fingerprint(), 0)
	if out.Bytes > assign.GroupBytes {
		s.p.log.Warn("the group's metadata may be too large for its broker (message.max.bytes); fewer members or shorter names make it smaller",
			zap.String("group", s.p.graph.spec.Group), zap.Int("members", len(group)), zap.Int("bytes", out.Bytes))
	}
	return out.Shares, nil
}

// counts are the partition counts to plan with. Where topics of the own graph
// differ, some of them have grown while the group runs: the lowest count is
// the one that all have. One that is missing counts as it was: the broker that
// was asked may be behind. What becomes of it is for each member to decide
// when it looks.
func (s *session) counts(ctx context.Context, declared []string) (map[string]int32, error) {
	own := s.p.graph.spec.Copartitioned()
	names := slices.Clone(own)
	for _, in := range internalTopics(&s.p.graph.spec) {
		names = append(names, in.name)
	}
	topics, err := s.p.client.Driver().Admin().Topics(ctx, slices.Concat(declared, names)...)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int32, len(topics))
	for name, t := range topics {
		counts[name] = t.Partitions
	}
	var least int32
	for _, name := range names {
		if _, ok := counts[name]; !ok {
			counts[name] = s.spec.topics[name].Partitions
			s.box.Put(message{kind: msgLook})
		}
		if n := counts[name]; least == 0 || n < least {
			least = n
		}
	}
	for _, name := range own {
		if counts[name] > least {
			counts[name] = least
			s.box.Put(message{kind: msgLook})
		}
	}
	return counts, nil
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
	s.joined = true
	if s.isForeign(&data) {
		return
	}
	refused := s.accepts(own, &data)
	s.assigned = true
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
	s.mu.Lock()
	s.share = data
	s.mu.Unlock()
	s.lane.Adopt(task.Identity{Member: s.member, MemberID: a.MemberID, InstanceID: s.instance, Generation: a.Generation})
	if refused != nil && !s.stopping {
		s.fail(refused) // what stays is drained in the new generation
	}
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
	s.awaitRelease()
	s.await(len(data.Awaiting) > 0)
	s.maybeRejoin()
}

// isForeign reports whether an assignment was made for another program: a
// static member that comes back, changed, within its session gets the former
// one's, and no rebalance. It joins again before anything runs. A leader that
// cannot read what this member says would answer the same again: then it is
// not asked a second time.
func (s *session) isForeign(d *assign.ShareData) bool {
	if d.For == s.fingerprint() || s.introduced || s.stopping {
		return false
	}
	s.introduced = true
	s.p.log.Info("the assignment was made for another graph, which ran under this member's identity; joining again",
		zap.String("group", s.p.graph.spec.Group))
	s.joinAgain()
	return true
}

// accepts returns why this member cannot run what it got, or nil.
func (s *session) accepts(own []assign.Task, d *assign.ShareData) error {
	s.watch.planned = 0
	if len(d.Refused) > 0 { // a graph is one subgraph
		err := d.Refused[0].Err
		narrow, ok := errors.AsType[*assign.NarrowError](err)
		if !ok {
			return fmt.Errorf("the group refused this member: %w", err)
		}
		s.p.log.Warn("other members run a wider graph; this one waits", zap.String("group", s.p.graph.spec.Group), zap.Error(narrow))
		return nil
	}
	s.watch.planned = d.Routes.Count(subgraph)
	most := s.watch.planned
	for _, t := range own {
		most = max(most, t.Partition+1)
	}
	if most <= s.spec.partitions {
		return nil
	}
	// The leader knows of partitions that this member has not seen yet.
	now := map[string]kafka.Topic{}
	for name, t := range s.spec.topics {
		now[name] = t
	}
	for _, name := range externalTopics(&s.p.graph.spec, internalTopics(&s.p.graph.spec)) {
		now[name] = kafka.Topic{Partitions: most}
	}
	if err := s.p.fixed(now); err != nil {
		return err
	}
	s.spec.partitions = most
	return nil
}

// await joins again if what this member waits for does not come: its holder
// was killed between two rounds and came back without it, and nobody else
// knows that it is without an owner. Holders have as long as their callbacks
// may take, and then the time to join.
func (s *session) await(waits bool) {
	stopTimer(&s.awaiting)
	if waits {
		s.awaiting = s.env.Clock.AfterFunc(s.p.cfg.rebalance+s.p.cfg.session, func() { s.box.Put(message{kind: msgAwaited}) })
	}
}

// stillAwaiting is called when what is awaited has had its time.
func (s *session) stillAwaiting() {
	s.awaiting = nil
	if !s.assigned || s.stopping {
		return
	}
	s.p.log.Warn("partitions that this member waits for have no owner; joining again", zap.String("group", s.p.graph.spec.Group))
	s.joinAgain()
}

// releaseGather is how long a member that gives up several partitions waits
// for the rest of them before it joins again with those that are written.
const releaseGather = 300 * time.Millisecond

// awaitRelease arms the timers of what is being released: others wait for it.
func (s *session) awaitRelease() {
	s.gathered = false
	stopTimer(&s.gather)
	stopTimer(&s.overdue)
	var first time.Time
	for _, sl := range s.slots {
		if sl.closing && !sl.written && (first.IsZero() || sl.since.Before(first)) {
			first = sl.since
		}
	}
	if !s.rejoin || first.IsZero() {
		return
	}
	s.gather = s.env.Clock.AfterFunc(releaseGather, func() { s.box.Put(message{kind: msgGathered}) })
	left := s.p.cfg.rebalance - s.env.Clock.Now().Sub(first)
	s.overdue = s.env.Clock.AfterFunc(max(left, 0), func() { s.box.Put(message{kind: msgOverdue}) })
}

func stopTimer(t *kafka.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// dropOverdue gives up on tasks that were to be released and are held by a
// callback that does not return: others wait for their partitions.
func (s *session) dropOverdue() {
	now := s.env.Clock.Now()
	for p, sl := range s.slots {
		if !sl.closing || sl.written || now.Sub(sl.since) < s.p.cfg.rebalance {
			continue
		}
		wanted := sl.wanted
		s.close(sl, true)
		sl.wanted, sl.written, s.released = wanted, true, true // a dropped task writes nothing more
		s.p.log.Warn("a callback takes longer than the rebalance timeout; its partition is given up",
			zap.String("group", s.p.graph.spec.Group), zap.Int32("partition", p))
	}
	s.awaitRelease()
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
	for _, sl := range s.slots {
		s.close(sl, true)
	}
	s.assigned, s.rejoin = false, false
	s.awaitRelease()
	s.await(false)
	switch {
	case errors.Is(err, kafka.ErrFencedInstance):
		s.fail(s.twin(err))
	case kafka.Permanent(err) || errors.Is(err, kafka.ErrClosed):
		s.fail(fmt.Errorf("group membership: %w", err))
	default:
		s.p.log.Warn("no longer a member of the group; joining again", zap.String("group", s.p.graph.spec.Group), zap.Error(err))
	}
}

// twin says that another process runs as this one: with a copy of its state
// directory, or on the same one from another machine. It is a *storage.Error,
// since the directory is what to look at. The other process goes on.
func (s *session) twin(err error) error {
	return &storage.Error{Place: s.p.cfg.storage.String(), Err: fmt.Errorf(
		"another process runs with the identity %s that is kept here (is that a copy, or mounted twice?): %w", s.env.ProcessID, err)}
}

// maybeRejoin joins again once what others wait for is written: all of it, or
// what there is after a while, so that no partition waits for the callback of
// another one.
func (s *session) maybeRejoin() {
	if !s.rejoin || s.stopping {
		return
	}
	for _, sl := range s.slots {
		if sl.closing && !sl.written && !(s.gathered && s.released) {
			return
		}
	}
	s.rejoin, s.released = false, false
	s.joinAgain()
}

// joinAgain asks for a rebalance. The nonce makes the member's bytes differ
// from those of its last join: the broker would not start one otherwise.
func (s *session) joinAgain() {
	s.mu.Lock()
	s.nonce++
	s.mu.Unlock()
	s.publish()
	s.member.Rejoin()
}
