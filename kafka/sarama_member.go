package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/work"
)

// saramaMember is a Member over sarama's group requests: the classic
// protocol, type "consumer", with subscriptions and assignments in the
// standard encoding.
//
// One goroutine, run, owns the membership and makes all callbacks. A join or
// a sync, which brokers park, runs in a goroutine of its own and reports to
// run's mailbox; so does beat, which sends heartbeats. Each of the three
// kinds of requests (join and sync; heartbeat; offsets and leave) has a
// connection of its own.
//
//	created ──Start──▶ joining ──▶ syncing ──Assigned──▶ stable
//	                    ▲  ▲ │        │ │                  │
//	                    │  │ └──▶ pausing ◀┘               │
//	                    │  └────────┘ │ missed the generation
//	                    └─────────────┴── rebalance, Rejoin, lost
//
//	any ──fenced, not authorized, Leave, Close──▶ ended
//
// Invariants:
//
//   - At most one join or sync is out. What is asked for meanwhile (Rejoin)
//     leads to another join after it.
//   - Heartbeats name the newest generation that a join was answered with,
//     from that answer on, also while a join is parked: the group may take
//     long, and the session must not end meanwhile.
//   - What a heartbeat is answered counts only for the member id and
//     generation that it named. ILLEGAL_GENERATION means nothing while a join
//     is out: the group may have moved on with this very member.
//   - Lost is called at most once between two assignments, and before the
//     next one. It can come while a join is out.
//   - That another process has the identity is believed when an id is fenced
//     that an assignment came with. An id that none came with may be unknown
//     to a new coordinator, which knows the identity by an older id of this
//     very member: see unproven.
type saramaMember struct {
	d    *saramaDriver
	cfg  MemberConfig
	mail *work.Mailbox[func()] // what run does next

	joins, beats, offsets *conns

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	stay   context.Context // ends with Leave too: of joins, plans and heartbeats
	depart context.CancelCauseFunc
	ended  chan struct{}  // closed when run has ended
	wg     sync.WaitGroup // joins, syncs and beat; run waits for them
	start  sync.Once

	// Owned by run.
	state memberState
	place membership
	again bool // join once more when this join is through
	anew  bool // an unproven id was fenced since the last assignment
	taken bool // another process has the identity
	retry *backoff
	pause Timer
	watch Timer
	told  bool // Lost was called for joins that are refused, since the last one that was not

	mu      sync.Mutex
	id      string    // the newest member id, for Leave
	beating heartbeat // what to send, no member id: nothing
	lease   time.Time // see Member.Lease
	until   time.Time // when the session counts as lost, not before lease
	holds   bool      // an assignment
	fresh   time.Time // until when the assignment is new
}

type memberState int8

const (
	memberCreated memberState = iota
	memberJoining
	memberSyncing
	memberStable
	memberPausing
	memberEnded
)

// membership is what a member knows of its place in the group.
type membership struct {
	id         string // "" until the group gave one
	generation int32  // that was joined last

	holds     bool // an assignment, and it is not lost
	adoptedID string
	adopted   int32 // the generation of that assignment
}

// adopt takes the assignment of the generation joined last. It reports
// whether no generation was missed since the one before. (A static member
// that changes nothing gets the assignment of the same generation again.)
func (p *membership) adopt() (rejoined bool) {
	missed := p.generation - p.adopted
	rejoined = p.holds && p.id == p.adoptedID && (missed == 0 || missed == 1)
	p.holds, p.adoptedID, p.adopted = true, p.id, p.generation
	return rejoined
}

// unproven reports whether no assignment came with the id yet. Until then the
// group's log need not have it.
func (p *membership) unproven() bool { return p.id != "" && p.id != p.adoptedID }

// lose gives up the assignment. It reports whether there was one.
func (p *membership) lose() bool {
	held := p.holds
	p.holds = false
	return held
}

// owned is the generation that the owned partitions are of.
func (p *membership) owned() int32 {
	if !p.holds {
		return -1
	}
	return p.adopted
}

func newSaramaMember(d *saramaDriver, cfg MemberConfig) (Member, error) {
	cfg.SessionTimeout = cmp.Or(cfg.SessionTimeout, 10*time.Second)
	cfg.HeartbeatInterval = cmp.Or(cfg.HeartbeatInterval, time.Second)
	cfg.RebalanceTimeout = cmp.Or(cfg.RebalanceTimeout, time.Minute)
	if err := checkMember(cfg); err != nil {
		return nil, fmt.Errorf("group %q: %w", cfg.Group, err)
	}
	m := &saramaMember{
		d: d, cfg: cfg, mail: work.NewMailbox[func()](nil), ended: make(chan struct{}),
		joins: d.newConns("join").patient(cfg.RebalanceTimeout), beats: d.newConns("heartbeat"), offsets: d.newConns("offsets"),
		retry: newBackoff("joining group "+cfg.Group, d.clock, d.log), place: membership{generation: -1},
	}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.stay, m.depart = context.WithCancelCause(m.ctx)
	go m.run() // ends with Close, which waits for it
	return m, nil
}

func checkMember(cfg MemberConfig) error {
	switch {
	case cfg.Group == "" || cfg.Protocol == "":
		return errors.New("a member needs Group and Protocol")
	case cfg.Subscribe == nil || cfg.Plan == nil || cfg.Assigned == nil || cfg.Lost == nil:
		return errors.New("a member needs Subscribe, Plan, Assigned and Lost")
	case cfg.HeartbeatInterval < time.Millisecond || cfg.RebalanceTimeout < time.Millisecond:
		return errors.New("HeartbeatInterval and RebalanceTimeout must be at least a millisecond")
	case cfg.SessionTimeout <= cfg.HeartbeatInterval:
		return fmt.Errorf("SessionTimeout %s must be longer than HeartbeatInterval %s", cfg.SessionTimeout, cfg.HeartbeatInterval)
	}
	return nil
}

func (m *saramaMember) Start() {
	m.start.Do(func() {
		m.mail.Put(func() {
			if m.state == memberCreated && m.stay.Err() == nil {
				m.wg.Go(m.beat) // ends with Leave or Close
				m.join()
			}
		})
	})
}

func (m *saramaMember) Rejoin() {
	m.mail.Put(func() {
		switch m.state {
		case memberStable:
			m.join()
		case memberJoining, memberSyncing:
			m.again = true
		}
	})
}

func (m *saramaMember) Lease() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.holds {
		return time.Time{}
	}
	return m.lease
}

func (m *saramaMember) Close() error {
	m.cancel(ErrClosed)
	m.mail.Close()
	<-m.ended
	m.d.release(m)
	return nil
}

func (m *saramaMember) run() {
	defer close(m.ended)
	for {
		todo, ok := m.mail.Take()
		if !ok {
			break
		}
		for _, do := range todo {
			if m.ctx.Err() == nil {
				do()
			}
		}
	}
	m.end()
	m.joins.close()
	m.beats.close()
	m.offsets.close()
	m.wg.Wait()
}

// end makes run do nothing more, and beat send nothing more.
func (m *saramaMember) end() {
	m.state = memberEnded
	for _, t := range []Timer{m.pause, m.watch} {
		if t != nil {
			t.Stop()
		}
	}
	m.silence()
}

// silence ends the heartbeats, and the lease with them.
func (m *saramaMember) silence() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beating, m.holds, m.lease, m.until = heartbeat{}, false, time.Time{}, time.Time{}
}

// later joins again after a pause.
func (m *saramaMember) later(err error) {
	m.state = memberPausing
	m.pause = m.d.clock.AfterFunc(m.retry.failed(err), func() {
		m.mail.Put(func() {
			if m.state == memberPausing {
				m.join()
			}
		})
	})
}

// lost reports the end of a tenure: once, and only if there was one.
func (m *saramaMember) lost(err error) {
	m.silence()
	if m.place.lose() {
		m.cfg.Lost(err)
	}
}

// refused deals with an error that joining again may not cure. Some end the
// member; with others it goes on trying, having said so once.
func (m *saramaMember) refused(err error) {
	held := m.place.lose()
	if errors.Is(err, ErrFencedInstance) || errors.Is(err, ErrNotAuthorized) || errors.Is(err, ErrAuthentication) {
		m.taken = errors.Is(err, ErrFencedInstance)
		m.end()
		m.cfg.Lost(err)
		return
	}
	m.silence()
	if held || !m.told {
		m.told = true
		m.cfg.Lost(err)
	}
	m.later(err)
}

// forgetUnproven makes a static member whose coordinator may have moved join
// without the id that the new one may not know. The group finds it by its
// identity, so that no ghost stays behind. (A dynamic member asks for its id:
// it would be one.)
func (m *saramaMember) forgetUnproven() {
	if m.cfg.InstanceID != "" && m.place.unproven() {
		m.setID("")
		m.silence()
	}
}

// doubted answers a fenced id that is unproven: it is given up, and the member
// joins anew by its identity. It does so once between two assignments: two
// processes with one identity would fence each other for ever.
func (m *saramaMember) doubted(err error) bool {
	if m.anew || !m.place.unproven() || !errors.Is(err, ErrFencedInstance) {
		return false
	}
	m.anew = true
	m.setID("")
	m.lost(err)
	m.d.log.Info("the group knows this member by an older id; joining anew", zap.String("group", m.cfg.Group), zap.String("instance", m.cfg.InstanceID))
	return true
}

// setID notes a member id.
func (m *saramaMember) setID(id string) {
	m.place.id = id
	m.mu.Lock()
	defer m.mu.Unlock()
	m.id = id
}

func (m *saramaMember) groupError(err error) error {
	return fmt.Errorf("group %q: %w", m.cfg.Group, err)
}

// instance is the instance id as requests carry it.
func (m *saramaMember) instance() *string {
	if m.cfg.InstanceID == "" {
		return nil
	}
	return &m.cfg.InstanceID
}

// ask sends one request to the coordinator, whose look-up is repeated after
// an error that may mean that another one has the group.
func (m *saramaMember) ask(ctx context.Context, c *conns, f func(*sarama.Broker) error) error {
	addr, err := m.d.coordinator(ctx, sarama.CoordinatorGroup, m.cfg.Group)
	if err != nil {
		return err
	}
	if err = c.do(ctx, addr, f); err != nil {
		m.d.forgetCoordinator(sarama.CoordinatorGroup, m.cfg.Group)
	}
	return err
}

// moved notes an answer that tells of another coordinator.
func (m *saramaMember) moved(e sarama.KError) {
	if e == sarama.ErrNotCoordinatorForConsumer || e == sarama.ErrConsumerCoordinatorNotAvailable {
		m.d.forgetCoordinator(sarama.CoordinatorGroup, m.cfg.Group)
	}
}
