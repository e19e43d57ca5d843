package processor

import (
	"context"
	"encoding/binary"
	"slices"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/assign"
	"github.com/rekastream/reka/kafka"
)

// declared is what this member can run. Members that keep other state are
// told apart: a table has every record only if nobody processes without it.
func (s *session) declared() []assign.Subgraph {
	out := make([]assign.Subgraph, 0, len(s.p.graph.parts))
	for _, p := range s.p.graph.parts {
		d := assign.Subgraph{Name: p.spec.Subgraph, Topics: p.spec.Copartitioned()}
		for _, st := range p.spec.Stores {
			if st.Changelog != "" {
				d.Keeps = append(d.Keeps, st.Changelog)
			}
		}
		out = append(out, d)
	}
	return out
}

func (s *session) fingerprint() (f assign.Fingerprint) {
	binary.BigEndian.PutUint64(f[:], s.print)
	return f
}

func (s *session) subscribe() kafka.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = true
	return assign.Subscription(assign.MemberData{
		ProcessID: s.process, Fingerprint: s.fingerprint(), Nonce: s.nonce, Lanes: 1, Subgraphs: s.declared(),
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
		s.p.log.Warn("part of the group cannot run", zap.String("group", s.p.graph.group), zap.Error(err))
	}
	out := r.Encode(s.fingerprint(), 0)
	if out.Bytes > assign.GroupBytes {
		s.p.log.Warn("the group's metadata may be too large for its broker (message.max.bytes); fewer members or shorter names make it smaller",
			zap.String("group", s.p.graph.group), zap.Int("members", len(group)), zap.Int("bytes", out.Bytes))
	}
	return out.Shares, nil
}

// counts are the partition counts to plan with. Where topics of an own subgraph
// differ, some of them have grown while the group runs: the lowest count is
// the one that all have. One that is missing counts as it was: the broker that
// was asked may be behind. What becomes of it is for each member to decide
// when it looks.
func (s *session) counts(ctx context.Context, declared []string) (map[string]int32, error) {
	topics, err := s.p.client.Driver().Admin().Topics(ctx, slices.Concat(declared, s.p.graph.needed())...)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int32, len(topics))
	for name, t := range topics {
		counts[name] = t.Partitions
	}
	for _, p := range s.p.graph.parts {
		s.level(p, counts)
	}
	return counts, nil
}

// level makes the counts of a part's topics equal.
func (s *session) level(p *part, counts map[string]int32) {
	own := p.spec.Copartitioned()
	names := slices.Clone(own)
	for _, in := range p.internalTopics() {
		names = append(names, in.name)
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
}
