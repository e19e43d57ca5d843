package tester

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rekastream/reka/kafka"
)

const (
	defaultSession   = 10 * time.Second
	defaultHeartbeat = time.Second
	defaultRebalance = time.Minute
)

// group is the coordinator's side of a consumer group, as a broker keeps it.
// All of it is guarded by world.mu.
//
// A group is empty, or prepares a rebalance (waits for members to join), or
// completes one (waits for the leader's plan), or is stable. Members that
// live send heartbeats as it were all the time, so nothing but silence (a
// crash, a pause, a closed member) lets a session expire, however far the
// clock is moved.
type group struct {
	w          *world
	name       string
	state      groupState
	generation int32
	protocol   string
	leader     string
	members    []*groupMember // in the order in which they came
	offsets    map[kafka.TopicPartition]storedOffset
	undecided  map[*coordination]map[kafka.TopicPartition]storedOffset // of transactions without a marker here
	unstable   []*waiter                                               // wait for pending offsets
	out        []message                                               // for members, oldest first; the pump hands them over
	deadline   *timer                                                  // of the rebalance being prepared
}

type groupState string

const (
	empty      groupState = "Empty"
	preparing  groupState = "PreparingRebalance"
	completing groupState = "CompletingRebalance"
	stable     groupState = "Stable"
)

// groupMember is a member as its coordinator knows it.
type groupMember struct {
	id, instance string
	m            *member // who answers under this id
	sub          kafka.Subscription
	owned        int32 // generation in which the owned partitions were adopted
	share        kafka.Share
	joined       bool   // waits for the join to complete
	syncing      bool   // waits for the plan
	notified     bool   // was told of the rebalance being prepared
	expiry       *timer // runs while the member is silent
}

// message is an answer or a notice on its way to a member.
type message struct {
	to *member
	do func() // on the member's goroutine
}

// joinAnswer is what a completed join tells a member.
type joinAnswer struct {
	id         string
	generation int32
	leader     bool
	members    []kafka.GroupMember
}

// group returns a group, creating it empty. mu is held.
func (w *world) group(name string) *group {
	g := w.groups[name]
	if g == nil {
		g = &group{w: w, name: name, state: empty, offsets: map[kafka.TopicPartition]storedOffset{},
			undecided: map[*coordination]map[kafka.TopicPartition]storedOffset{}}
		w.groups[name] = g
	}
	return g
}

// sortedGroups returns all groups by name. mu is held.
func (w *world) sortedGroups() []*group {
	if len(w.groups) < 2 {
		return slices.Collect(maps.Values(w.groups))
	}
	names := slices.Sorted(maps.Keys(w.groups))
	out := make([]*group, len(names))
	for i, n := range names {
		out[i] = w.groups[n]
	}
	return out
}

// step does the group's next step, if one is due. mu is held.
func (g *group) step() bool {
	for i, msg := range g.out {
		if !msg.to.inc.paused {
			g.out = slices.Delete(g.out, i, i+1)
			msg.to.box.Put(msg.do) // a closed mailbox refuses it: nobody is there any more
			return true
		}
	}
	if g.state != preparing {
		return false
	}
	if m := g.unnotified(); m != nil {
		m.notified = true
		g.send(m.m, m.m.onRebalance)
		return true
	}
	if g.allJoined() {
		g.complete()
		return true
	}
	return false
}

// pending reports whether step would do something. mu is held.
func (g *group) pending() bool {
	for _, msg := range g.out {
		if !msg.to.inc.paused {
			return true
		}
	}
	return g.state == preparing && (g.unnotified() != nil || g.allJoined())
}

func (g *group) unnotified() *groupMember {
	for _, m := range g.members {
		if !m.joined && !m.notified && !m.m.silent() {
			return m
		}
	}
	return nil
}

func (g *group) allJoined() bool {
	return !slices.ContainsFunc(g.members, func(m *groupMember) bool { return !m.joined })
}

func (g *group) send(to *member, do func()) {
	g.out = append(g.out, message{to, do})
	g.w.changed()
}

// find returns a member, nil if it is unknown.
func (g *group) find(id string) *groupMember {
	for _, m := range g.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

// static returns the member with an instance id, nil if there is none.
func (g *group) static(instance string) *groupMember {
	if instance == "" {
		return nil
	}
	for _, m := range g.members {
		if m.instance == instance {
			return m
		}
	}
	return nil
}

// check is what the coordinator checks of every request of a member.
func (g *group) check(id, instance string) (*groupMember, error) {
	if s := g.static(instance); s != nil && s.id != id {
		return nil, kafka.ErrFencedInstance
	}
	m := g.find(id)
	if m == nil {
		return nil, kafka.ErrUnknownMember
	}
	return m, nil
}

// join is a JoinGroup request. Its answer comes later.
func (g *group) join(m *member, id string, sub kafka.Subscription, owned int32) error {
	if len(g.members) > 0 && g.protocol != m.cfg.Protocol {
		return kafka.ErrInconsistentGroup
	}
	g.protocol = m.cfg.Protocol
	if id == "" {
		return g.joinNew(m, sub)
	}
	gm, err := g.check(id, m.cfg.InstanceID)
	if err != nil {
		return err
	}
	same := gm.sameAs(sub, owned)
	switch {
	case g.state == completing && same, g.state == stable && same && g.leader != id:
		g.answerJoin(gm)
		return nil
	case g.state != preparing:
		g.prepare()
	}
	gm.sub, gm.owned, gm.joined = sub, owned, true
	return nil
}

// sameAs reports whether a member joins with the bytes it joined with before.
func (m *groupMember) sameAs(sub kafka.Subscription, owned int32) bool {
	return m.owned == owned && string(m.sub.UserData) == string(sub.UserData) &&
		slices.Equal(m.sub.Topics, sub.Topics) && slices.Equal(m.sub.Owned, sub.Owned)
}

func (g *group) joinNew(m *member, sub kafka.Subscription) error {
	id := fmt.Sprintf("%s-%d", m.inc.name, g.w.nextID())
	old := g.static(m.cfg.InstanceID)
	if old == nil {
		for _, ghost := range slices.Clone(g.members) {
			if ghost.m == m { // of a join whose answer was lost
				g.drop(ghost, nil)
			}
		}
		gm := &groupMember{id: id, instance: m.cfg.InstanceID, m: m, sub: sub, owned: -1}
		if g.state != preparing {
			g.prepare()
		}
		gm.joined = true
		g.members = append(g.members, gm)
		return nil
	}
	// A static member is back, or somebody else has its instance id.
	if was := old.m; was != m && !was.inc.dead {
		g.send(was, func() { was.onLost(kafka.ErrFencedInstance) })
	}
	old.quiet(g.w, false)
	if g.leader == old.id {
		g.leader = id
	}
	old.id, old.m, old.sub, old.owned, old.notified = id, m, sub, -1, false
	if g.state == stable { // nobody else notices, whatever the bytes say
		g.send(m, func() { m.onJoin(joinAnswer{id: id, generation: g.generation}) })
		return nil
	}
	if g.state != preparing {
		g.prepare()
	}
	old.joined = true
	return nil
}

// prepare starts a rebalance: everybody joins again.
func (g *group) prepare() {
	g.state = preparing
	limit := time.Duration(0)
	for _, m := range g.members {
		m.joined, m.notified, m.syncing = false, false, false
		limit = max(limit, m.m.cfg.RebalanceTimeout)
	}
	g.endDeadline()
	if len(g.members) > 0 {
		g.deadline = g.w.arm(nil, limit, false, func() {
			g.w.mu.Lock()
			defer g.w.mu.Unlock()
			if g.state == preparing {
				g.complete()
			}
		})
	}
	g.w.changed()
}

func (g *group) endDeadline() {
	if g.deadline != nil {
		g.w.clock.stop(g.deadline)
		g.deadline = nil
	}
}

// complete ends the join: who has not joined by now is out, but for static
// members, whose sessions decide about them.
func (g *group) complete() {
	g.endDeadline()
	for _, m := range slices.Clone(g.members) {
		if !m.joined && m.instance == "" {
			g.drop(m, kafka.ErrUnknownMember)
		}
	}
	g.generation++
	if len(g.members) == 0 {
		g.state, g.leader = empty, ""
		return
	}
	if l := g.find(g.leader); l == nil || !l.joined {
		g.leader = ""
	}
	for _, m := range g.members {
		if g.leader == "" && m.joined {
			g.leader = m.id
		}
	}
	if g.leader == "" { // static members only, none of which is back
		g.prepare()
		return
	}
	g.state = completing
	for _, m := range g.members {
		if m.joined {
			m.joined = false
			g.answerJoin(m)
		}
	}
}

func (g *group) answerJoin(gm *groupMember) {
	a := joinAnswer{id: gm.id, generation: g.generation}
	if gm.id == g.leader && g.state == completing {
		a.leader = true
		for _, m := range g.members {
			a.members = append(a.members, m.describe())
		}
	}
	m := gm.m
	g.send(m, func() { m.onJoin(a) })
}

func (m *groupMember) describe() kafka.GroupMember {
	return kafka.GroupMember{ID: m.id, InstanceID: m.instance, Subscription: m.sub, Generation: m.owned}
}

// sync is a SyncGroup request; the leader's has the plan. Its answer comes
// later.
func (g *group) sync(m *member, id string, generation int32, plan map[string]kafka.Share) error {
	gm, err := g.check(id, m.cfg.InstanceID)
	switch {
	case err != nil:
		return err
	case generation != g.generation:
		return kafka.ErrIllegalGeneration
	case g.state == preparing:
		return kafka.ErrRebalanceInProgress
	}
	gm.syncing = true
	if g.state == completing && id == g.leader && plan != nil {
		for _, x := range g.members {
			x.share = plan[x.id]
		}
		g.state = stable
	}
	if g.state == stable {
		for _, x := range g.members {
			if x.syncing {
				x.syncing = false
				g.answerSync(x)
			}
		}
	}
	return nil
}

func (g *group) answerSync(gm *groupMember) {
	m, a := gm.m, kafka.Assignment{Share: gm.share, MemberID: gm.id, Generation: g.generation}
	a.Partitions = slices.Clone(a.Partitions)
	g.send(m, func() { m.onSync(a) })
}

// leave is a LeaveGroup request.
func (g *group) leave(id string) error {
	gm := g.find(id)
	if gm == nil {
		return kafka.ErrUnknownMember
	}
	g.remove(gm, nil)
	return nil
}

// remove takes a member out and starts a rebalance. A cause is told to the
// member, as the answer to its next heartbeat.
func (g *group) remove(gm *groupMember, cause error) {
	g.drop(gm, cause)
	if g.state == stable || g.state == completing {
		g.prepare()
	}
	g.w.changed()
}

// drop takes a member out.
func (g *group) drop(gm *groupMember, cause error) {
	gm.quiet(g.w, false)
	g.members = slices.DeleteFunc(g.members, func(m *groupMember) bool { return m == gm })
	if cause != nil {
		m, id := gm.m, gm.id
		m.expelled = true // its last heartbeat is a session timeout ago
		g.send(m, func() { m.onExpelled(id, cause) })
	}
}

// quiet starts or ends the time after which a silent member is dropped.
func (m *groupMember) quiet(w *world, on bool) {
	if m.expiry != nil {
		w.clock.stop(m.expiry)
		m.expiry = nil
	}
	if !on {
		return
	}
	g := w.group(m.m.cfg.Group)
	m.expiry = w.arm(nil, m.m.cfg.SessionTimeout, false, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if g.find(m.id) == m {
			g.remove(m, kafka.ErrUnknownMember)
		}
	})
}
