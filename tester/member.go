package tester

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// member is a kafka.Member. Its goroutine runs from Start to Close, or until
// its process dies or its membership ends for good; it makes the requests
// and calls the callbacks. Close waits for it.
type member struct {
	inc *incarnation
	cfg kafka.MemberConfig
	box *work.Mailbox[func()]

	// Owned by run.
	id        string // "" before the first join and after a loss
	former    string // the last one that was lost
	adopted   int32  // generation of the last assignment, -1 if there is none
	adoptedID string
	joining   bool // a join or sync is on its way
	again     bool // Rejoin came meanwhile
	over      bool // left, or ended for good

	// Guarded by world.mu.
	started     bool
	closed      bool // no longer heard of
	pausedAt    time.Time
	hasAssigned bool
	expelled    bool   // its session is over, whether it knows or not
	memberID    string // id, for others
	ctx         context.Context
	cancel      context.CancelFunc
	done        chan struct{} // closed when run has ended
}

// Start implements kafka.Member.
func (m *member) Start() {
	w := m.inc.w
	w.mu.Lock()
	if m.started || m.closed || m.inc.dead {
		w.mu.Unlock()
		return
	}
	m.started = true
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.done = make(chan struct{})
	w.mu.Unlock()
	work.Go(&m.inc.work, m.run)
	m.box.Put(m.join)
}

func (m *member) run() {
	defer close(m.done)
	defer m.cancel()
	for {
		todo, ok := m.box.Take()
		if !ok {
			return
		}
		for _, f := range todo {
			if m.alive() && !m.over {
				f()
			}
		}
	}
}

func (m *member) alive() bool {
	w := m.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	return !m.closed && !m.inc.dead
}

// request makes a group request under the world's lock.
func (m *member) request(ctx context.Context, op Op, effect func(*group) error) error {
	return m.inc.call(ctx, Call{Op: op, Partition: -1, Group: m.cfg.Group}, func(half bool) error {
		if half {
			return nil
		}
		w := m.inc.w
		w.mu.Lock()
		defer w.mu.Unlock()
		return effect(w.group(m.cfg.Group))
	})
}

// join asks Subscribe and sends a JoinGroup request.
func (m *member) join() {
	m.joining, m.again = true, false
	sub := m.cfg.Subscribe()
	sub.Topics, sub.Owned, sub.UserData = slices.Clone(sub.Topics), slices.Clone(sub.Owned), slices.Clone(sub.UserData)
	err := m.request(m.ctx, OpJoin, func(g *group) error { return g.join(m, m.id, sub, m.adopted) })
	m.failed(err)
}

// failed deals with the error of a join or sync.
func (m *member) failed(err error) {
	switch {
	case err == nil, errors.Is(err, kafka.ErrClosed), m.ctx.Err() != nil:
	case errors.Is(err, kafka.ErrRebalanceInProgress), errors.Is(err, kafka.ErrIllegalGeneration):
		m.join()
	case errors.Is(err, kafka.ErrUnknownMember), kafka.Permanent(err):
		m.onLost(err)
	default:
		m.retry()
	}
}

// retry joins again after a pause.
func (m *member) retry() {
	m.inc.Clock().AfterFunc(m.cfg.HeartbeatInterval, func() { m.box.Put(m.join) })
}

// onRebalance: a heartbeat was answered by a rebalance in progress.
func (m *member) onRebalance() {
	w := m.inc.w
	w.mu.Lock()
	g := w.group(m.cfg.Group)
	gm := g.find(m.id)
	stale := g.state != preparing || gm == nil || gm.joined
	w.mu.Unlock()
	if !stale {
		m.join()
	}
}

// onJoin: the join is complete.
func (m *member) onJoin(a joinAnswer) {
	m.setID(a.id)
	var plan map[string]kafka.Share
	if a.leader {
		var err error
		if plan, err = m.cfg.Plan(m.ctx, a.members); err != nil {
			if m.ctx.Err() == nil && m.alive() {
				m.retry()
			}
			return
		}
		if plan == nil {
			plan = map[string]kafka.Share{}
		}
	}
	err := m.request(m.ctx, OpSync, func(g *group) error { return g.sync(m, a.id, a.generation, plan) })
	m.failed(err)
}

// onSync: the assignment is here.
func (m *member) onSync(a kafka.Assignment) {
	if a.MemberID != m.id {
		return
	}
	a.Rejoined = m.adoptedID == a.MemberID && (a.Generation == m.adopted || a.Generation == m.adopted+1)
	w := m.inc.w
	w.mu.Lock()
	m.hasAssigned, m.expelled = true, false // what Assigned sets off asks for the lease
	w.mu.Unlock()
	m.cfg.Assigned(a)
	m.adopted, m.adoptedID = a.Generation, a.MemberID
	m.joining = false
	if m.again {
		m.join()
	}
}

// onExpelled: a heartbeat under id was refused, or the first join, which was
// to tell the id. What is told of an id that was given up concerns nobody.
func (m *member) onExpelled(id string, cause error) {
	if id == m.id || m.id == "" && m.joining && id != m.former {
		m.onLost(cause)
	}
}

// onLost: the member is none of the group any more.
func (m *member) onLost(cause error) {
	if m.id != "" {
		m.former = m.id
	}
	m.setID("")
	m.adopted, m.adoptedID = -1, ""
	if kafka.Permanent(cause) {
		m.over = true
	}
	m.cfg.Lost(groupError("member of", m.cfg.Group, cause))
	if !m.over {
		m.join()
	}
}

func (m *member) setID(id string) {
	w := m.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	m.id, m.memberID = id, id
	if id == "" {
		m.hasAssigned = false
	}
}

// Rejoin implements kafka.Member.
func (m *member) Rejoin() {
	m.box.Put(func() {
		if m.joining {
			m.again = true
			return
		}
		m.join()
	})
}

// Lease implements kafka.Member.
func (m *member) Lease() time.Time {
	w := m.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !m.hasAssigned || m.expelled:
		return time.Time{}
	case !m.pausedAt.IsZero():
		return m.pausedAt.Add(m.cfg.SessionTimeout)
	}
	return w.clock.now.Add(m.cfg.SessionTimeout)
}

// Commit implements kafka.Member.
func (m *member) Commit(ctx context.Context, memberID string, generation int32, offsets []kafka.CommittedOffset) error {
	err := m.request(ctx, OpCommit, func(g *group) error { return g.commit(m, memberID, generation, offsets) })
	if err != nil {
		return groupError("commit of", m.cfg.Group, err)
	}
	return nil
}

// Committed implements kafka.Member.
func (m *member) Committed(ctx context.Context, tps []kafka.TopicPartition, stable bool) ([]kafka.CommittedOffset, error) {
	var out []kafka.CommittedOffset
	ask := func(g *group) error {
		if stable && g.isUnstable(tps) {
			return errUnstable
		}
		out = g.committed(tps)
		return nil
	}
	err := m.request(ctx, OpCommitted, ask)
	for errors.Is(err, errUnstable) {
		if err = m.awaitStable(ctx, tps); err == nil {
			err = m.request(ctx, OpCommitted, ask)
		}
	}
	if err != nil {
		return nil, groupError("committed offsets of", m.cfg.Group, err)
	}
	return out, nil
}

// Leave implements kafka.Member.
func (m *member) Leave(ctx context.Context) error {
	err := m.request(ctx, OpLeave, func(g *group) error {
		m.closed, m.hasAssigned = true, false
		if m.memberID == "" {
			for _, gm := range g.members { // a first join is on its way
				if gm.m == m {
					return g.leave(gm.id)
				}
			}
			return nil
		}
		return g.leave(m.memberID)
	})
	if err != nil && !errors.Is(err, kafka.ErrUnknownMember) && !errors.Is(err, kafka.ErrFencedInstance) {
		return groupError("leave", m.cfg.Group, err)
	}
	m.end()
	return nil
}

// Close implements kafka.Member.
func (m *member) Close() error {
	w := m.inc.w
	w.mu.Lock()
	m.silence()
	m.closed = true
	if g := w.groups[m.cfg.Group]; g != nil {
		g.settled() // who waits for stable offsets learns of the end
	}
	if i := slices.Index(m.inc.members, m); i >= 0 {
		m.inc.members = slices.Delete(slices.Clone(m.inc.members), i, i+1)
	}
	done := m.done
	w.mu.Unlock()
	m.end()
	if done != nil {
		<-done
	}
	return nil
}

// end lets the member's goroutine end.
func (m *member) end() {
	w := m.inc.w
	w.mu.Lock()
	cancel := m.cancel
	w.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	m.box.Close()
}

// silent reports whether the coordinator hears nothing of the member. mu is
// held.
func (m *member) silent() bool { return m.closed || m.inc.dead || m.inc.paused }

// silence starts the end of the member's session. mu is held.
func (m *member) silence() {
	w := m.inc.w
	g := w.groups[m.cfg.Group]
	if g == nil || m.closed {
		return
	}
	m.pausedAt = w.clock.now
	for _, gm := range g.members {
		if gm.m == m {
			gm.quiet(w, true)
		}
	}
}

// speak takes the silence back. mu is held.
func (m *member) speak() {
	w := m.inc.w
	m.pausedAt = time.Time{}
	if g := w.groups[m.cfg.Group]; g != nil {
		for _, gm := range g.members {
			if gm.m == m {
				gm.quiet(w, false)
			}
		}
	}
}
