package processor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/assign"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// protocol is the assignor's name in the group protocol.
const protocol = "reka"

// memberConfig ties the session to its member. The callbacks run on the
// member's goroutine.
func (s *session) memberConfig(instance string) kafka.MemberConfig {
	c := s.p.cfg
	return kafka.MemberConfig{
		Group: s.p.graph.group, InstanceID: instance, Protocol: protocol,
		SessionTimeout: c.session, HeartbeatInterval: c.heartbeat, RebalanceTimeout: c.rebalance,
		Subscribe: s.subscribe, Plan: s.plan,
		Assigned: func(a kafka.Assignment) { s.box.Put(message{kind: msgAssigned, assign: a}) },
		Lost:     func(err error) { s.box.Put(message{kind: msgLost, err: err}) },
	}
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
	want := make(map[assign.Task]bool, len(own))
	for _, t := range own {
		if s.named(t.Subgraph) != nil {
			want[t] = true
		}
	}
	releasing := map[assign.Task]bool{}
	for _, t := range data.Releasing {
		releasing[t] = true
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
	var fresh []assign.Task
	for id := range want {
		switch sl := s.slots[id]; {
		case sl == nil:
			fresh = append(fresh, id)
		case sl.closing:
			sl.wanted = true
		}
	}
	slices.SortFunc(fresh, s.compareTasks)
	s.tellAssigned(fresh)
	s.take(fresh)
	s.rejoin = data.Rejoin || len(releasing) > 0
	s.awaitRelease()
	s.await(len(data.Awaiting) > 0)
	s.maybeRejoin()
}

// tellAssigned tells the observer of new tasks, those of each subgraph together.
func (s *session) tellAssigned(fresh []assign.Task) {
	f := s.p.cfg.observer.Assigned
	if f == nil {
		return
	}
	for _, sg := range s.subgraphs {
		var partitions []int32
		for _, t := range fresh {
			if t.Subgraph == sg.spec.Subgraph {
				partitions = append(partitions, t.Partition)
			}
		}
		if len(partitions) > 0 {
			f(partitions)
		}
	}
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
		zap.String("group", s.p.graph.group))
	s.joinAgain()
	return true
}

// accepts returns why this member cannot run what it got, or nil.
func (s *session) accepts(own []assign.Task, d *assign.ShareData) error {
	for _, sg := range s.subgraphs {
		sg.planned = 0
	}
	waits := map[string]bool{}
	for _, r := range d.Refused {
		narrow, ok := errors.AsType[*assign.NarrowError](r.Err)
		if !ok {
			return fmt.Errorf("the group refused this member: %w", r.Err)
		}
		waits[r.Subgraph] = true
		s.p.log.Warn("other members run a wider graph; this one waits", zap.String("group", s.p.graph.group), zap.Error(narrow))
	}
	for _, sg := range s.subgraphs {
		if waits[sg.spec.Subgraph] {
			continue
		}
		if err := s.acceptsOf(sg, own, d); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) acceptsOf(sg *subgraph, own []assign.Task, d *assign.ShareData) error {
	sg.planned = d.Routes.Count(sg.spec.Subgraph)
	most := sg.planned
	for _, t := range own {
		if t.Subgraph == sg.spec.Subgraph {
			most = max(most, t.Partition+1)
		}
	}
	if most <= sg.partitions {
		return nil
	}
	// The leader knows of partitions that this member has not seen yet.
	now := maps.Clone(s.spec.topics)
	internal := sg.internal()
	for _, name := range sg.spec.Copartitioned() {
		if !internal[name] {
			now[name] = kafka.Topic{Partitions: most}
		}
	}
	if err := sg.fixed(now); err != nil {
		return err
	}
	sg.partitions = most
	s.tellCounts()
	return nil
}

// await joins again if what this member waits for does not come: its holder
// was killed between two rounds and came back without it, and nobody else
// knows that it is without an owner. Holders have as long as their callbacks
// may take, and then the time to join.
func (s *session) await(waits bool) {
	stopTimer(&s.awaiting)
	if waits {
		s.awaiting = s.clock.AfterFunc(s.p.cfg.rebalance+s.p.cfg.session, func() { s.box.Put(message{kind: msgAwaited}) })
	}
}

// stillAwaiting is called when what is awaited has had its time.
func (s *session) stillAwaiting() {
	s.awaiting = nil
	if !s.assigned || s.stopping {
		return
	}
	s.p.log.Warn("partitions that this member waits for have no owner; joining again", zap.String("group", s.p.graph.group))
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
	s.gather = s.clock.AfterFunc(releaseGather, func() { s.box.Put(message{kind: msgGathered}) })
	left := s.p.cfg.rebalance - s.clock.Now().Sub(first)
	s.overdue = s.clock.AfterFunc(max(left, 0), func() { s.box.Put(message{kind: msgOverdue}) })
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
	now := s.clock.Now()
	for _, sl := range s.slots {
		if !sl.closing || sl.written || now.Sub(sl.since) < s.p.cfg.rebalance {
			continue
		}
		wanted := sl.wanted
		s.close(sl, true)
		sl.wanted, sl.written, s.released = wanted, true, true // a dropped task writes nothing more
		s.p.log.Warn("a callback takes longer than the rebalance timeout; its partition is given up", sl.fields()...)
	}
	s.awaitRelease()
	s.maybeRejoin()
}

// giveUp closes what is not ours any more. A member that missed a generation
// does not know who owned its tasks meanwhile: it starts all of them anew, and
// takeovers too, which know only what was committed when they began.
func (s *session) giveUp(want, releasing map[assign.Task]bool, unbroken bool) {
	for id, sl := range s.slots {
		switch {
		case !unbroken:
			s.close(sl, true)
		case want[id]:
		case sl.task == nil:
			s.close(sl, true)
		default:
			s.close(sl, !releasing[id])
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
		s.p.log.Warn("no longer a member of the group; joining again", zap.String("group", s.p.graph.group), zap.Error(err))
	}
}

// twin says that another process runs as this one: with a copy of its state
// directory, or on the same one from another machine. It is a *storage.Error,
// since the directory is what to look at. The other process goes on.
func (s *session) twin(err error) error {
	return &storage.Error{Place: s.p.cfg.storage.String(), Err: fmt.Errorf(
		"another process runs with the identity %s that is kept here (is that a copy, or mounted twice?): %w", s.process, err)}
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
