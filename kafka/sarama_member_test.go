package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

func TestAdoptTellsWhetherAGenerationWasMissed(t *testing.T) {
	type step struct {
		id         string
		generation int32
		lose       bool // before
		want       bool
	}
	for name, steps := range map[string][]step{
		"the first assignment":             {{"a", 1, false, false}},
		"each generation":                  {{"a", 1, false, false}, {"a", 2, false, true}, {"a", 3, false, true}},
		"the same generation again":        {{"a", 4, false, false}, {"a", 4, false, true}},
		"a sync answered with a rebalance": {{"a", 1, false, false}, {"a", 3, false, false}, {"a", 4, false, true}},
		"a new member id":                  {{"a", 1, false, false}, {"b", 2, false, false}},
		"lost, then back with the same id": {{"a", 1, false, false}, {"a", 2, true, false}, {"a", 3, false, true}},
		"a generation that started over":   {{"a", 9, false, false}, {"a", 1, false, false}},
	} {
		p := membership{generation: -1}
		for i, s := range steps {
			if s.lose && !p.lose() {
				t.Errorf("%s: there was nothing to lose", name)
			}
			p.id, p.generation = s.id, s.generation
			if got := p.adopt(); got != s.want {
				t.Errorf("%s: step %d: rejoined %t", name, i, got)
			}
		}
	}
}

func testMember(t *testing.T, cfg MemberConfig) *saramaMember {
	t.Helper()
	d, err := newSaramaDriver([]string{"127.0.0.1:1"}, nil, zap.NewNop()) // nobody listens there
	if err != nil {
		t.Fatal(err)
	}
	cfg.Group, cfg.Protocol = "g", "p"
	cfg.Subscribe = func() Subscription { return Subscription{} }
	cfg.Plan = func(context.Context, []GroupMember) (map[string]Share, error) { return nil, nil }
	if cfg.Assigned == nil {
		cfg.Assigned = func(Assignment) {}
	}
	if cfg.Lost == nil {
		cfg.Lost = func(error) {}
	}
	m, err := d.NewMember(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return m.(*saramaMember)
}

// onRun runs f as the member's run would and waits for it.
func onRun(t *testing.T, m *saramaMember, f func()) {
	t.Helper()
	done := make(chan struct{})
	m.mail.Put(func() { f(); close(done) })
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("run is stuck")
	}
}

func TestLeaseStandsFromTheSendingOfWhatWasAnswered(t *testing.T) {
	m := testMember(t, MemberConfig{SessionTimeout: time.Hour})
	if !m.Lease().IsZero() {
		t.Fatal("a lease before the first assignment")
	}
	sent := time.Now()
	onRun(t, m, func() {
		m.setID("a")
		m.place.generation = 1
		m.beatAs("a", 1)
		m.adopt(Share{}, sent)
	})
	if got := m.Lease(); !got.Equal(sent.Add(time.Hour)) {
		t.Fatalf("lease until %v, want %v", got, sent.Add(time.Hour))
	}
	m.extendFor(heartbeat{"a", 1}, sent.Add(time.Minute))
	m.extendFor(heartbeat{"a", 1}, sent)
	m.extendFor(heartbeat{"old", 1}, sent.Add(time.Hour))
	if got := m.Lease(); !got.Equal(sent.Add(time.Hour + time.Minute)) {
		t.Fatalf("lease until %v", got)
	}
	onRun(t, m, func() { m.lost(ErrUnknownMember) })
	if !m.Lease().IsZero() {
		t.Fatal("a lease after the loss")
	}
}

func TestLostIsToldOnceATenure(t *testing.T) {
	lost := 0
	m := testMember(t, MemberConfig{Lost: func(error) { lost++ }})
	onRun(t, m, func() {
		m.lost(ErrUnknownMember)
		m.setID("a")
		m.place.generation = 1
		m.adopt(Share{}, time.Now())
		m.beaten(heartbeat{"a", 1}, kerror(sarama.ErrUnknownMemberId))
		m.beaten(heartbeat{"a", 1}, kerror(sarama.ErrUnknownMemberId))
		m.rejected(sarama.ErrUnknownMemberId)
	})
	if lost != 1 {
		t.Fatalf("told %d times", lost)
	}
}

func TestHeartbeatAnswersCountOnlyForWhatTheyNamed(t *testing.T) {
	lost := 0
	m := testMember(t, MemberConfig{Lost: func(error) { lost++ }})
	onRun(t, m, func() {
		m.setID("a")
		m.place.generation = 2
		m.adopt(Share{}, time.Now())
		m.beaten(heartbeat{"old", 2}, kerror(sarama.ErrUnknownMemberId))
		m.beaten(heartbeat{"a", 1}, kerror(sarama.ErrIllegalGeneration))
		m.beaten(heartbeat{"a", 1}, kerror(sarama.ErrRebalanceInProgress))
		if m.state != memberStable || lost != 0 {
			t.Errorf("state %d, lost %d after answers to old heartbeats", m.state, lost)
		}
		m.state = memberJoining
		m.beaten(heartbeat{"a", 2}, kerror(sarama.ErrIllegalGeneration))
		if m.state != memberJoining || lost != 0 {
			t.Errorf("state %d, lost %d while a join is out", m.state, lost)
		}
		m.state = memberStable
		m.beaten(heartbeat{"a", 2}, kerror(sarama.ErrIllegalGeneration))
		if lost != 1 || m.place.id != "a" {
			t.Errorf("lost %d, id %q: an illegal generation ends the tenure and keeps the id", lost, m.place.id)
		}
	})
}

func TestFencedInstanceEndsTheMember(t *testing.T) {
	var lost []error
	m := testMember(t, MemberConfig{InstanceID: "i", Lost: func(err error) { lost = append(lost, err) }})
	onRun(t, m, func() {
		m.setID("a")
		m.place.generation = 1
		m.adopt(Share{}, time.Now())
		m.beaten(heartbeat{"a", 1}, kerror(sarama.ErrFencedInstancedId))
	})
	m.Rejoin()
	onRun(t, m, func() {
		if m.state != memberEnded || len(lost) != 1 || !Permanent(lost[0]) {
			t.Errorf("state %d, lost %v", m.state, lost)
		}
	})
}

// An id that no assignment came with yet proves nothing when it is fenced: a
// coordinator that has just taken over knows the identity by an older one. The
// member joins anew, once; then it believes it.
func TestFencedIdWithoutAnAssignmentIsNoProof(t *testing.T) {
	fenced := kerror(sarama.ErrFencedInstancedId)
	for name, c := range map[string]struct {
		state  memberState
		answer func(*saramaMember) // FENCED_INSTANCE_ID to the member's newest request
	}{
		"to a join":      {memberJoining, func(m *saramaMember) { m.rejected(sarama.ErrFencedInstancedId) }},
		"to a sync":      {memberSyncing, func(m *saramaMember) { m.rejected(sarama.ErrFencedInstancedId) }},
		"to a heartbeat": {memberPausing, func(m *saramaMember) { m.beaten(heartbeat{m.place.id, m.place.generation}, fenced) }},
	} {
		t.Run(name, func(t *testing.T) {
			var lost []error
			m := testMember(t, MemberConfig{InstanceID: "i", Lost: func(err error) { lost = append(lost, err) }})
			onRun(t, m, func() {
				m.setID("a")
				m.place.generation = 1
				m.adopt(Share{}, time.Now())
				m.rejected(sarama.ErrUnknownMemberId)
				m.setID("b")
				m.state, m.place.generation = c.state, 2
				c.answer(m)
				if m.state != memberPausing || m.place.id != "" || len(lost) != 1 {
					t.Errorf("state %d, id %q, lost %v after the first time", m.state, m.place.id, lost)
				}
				m.setID("c")
				m.state, m.place.generation = c.state, 3
				c.answer(m)
				if m.state != memberEnded || len(lost) != 2 || !Permanent(lost[1]) {
					t.Errorf("state %d, lost %v after the second time", m.state, lost)
				}
			})
		})
	}
}

// While a join is out its own answer says what a heartbeat's would.
func TestFencedHeartbeatOfAnUnprovenIdWaitsForTheJoin(t *testing.T) {
	m := testMember(t, MemberConfig{InstanceID: "i"})
	onRun(t, m, func() {
		m.setID("b")
		m.state, m.place.generation = memberJoining, 2
		m.beaten(heartbeat{"b", 2}, kerror(sarama.ErrFencedInstancedId))
		if m.state != memberJoining || m.place.id != "b" {
			t.Errorf("state %d, id %q", m.state, m.place.id)
		}
	})
}

// What a coordinator that is gone gave out the next one may not know.
func TestUnprovenIdIsForgottenWhenTheCoordinatorMoves(t *testing.T) {
	for _, c := range []struct {
		instance string
		adopted  bool
		want     string
	}{{"i", false, ""}, {"i", true, "b"}, {"", false, "b"}} {
		for name, fail := range map[string]func(*saramaMember){
			"moved": func(m *saramaMember) { m.rejected(sarama.ErrNotCoordinatorForConsumer) },
			"away":  func(m *saramaMember) { m.failed(sarama.ErrNotConnected) },
		} {
			m := testMember(t, MemberConfig{InstanceID: c.instance})
			onRun(t, m, func() {
				m.setID("b")
				m.place.generation = 1
				if c.adopted {
					m.adopt(Share{}, time.Now())
				}
				m.state = memberSyncing
				fail(m)
				if m.state != memberPausing || m.place.id != c.want {
					t.Errorf("%s, %+v: state %d, id %q", name, c, m.state, m.place.id)
				}
			})
		}
	}
}

func TestRejoinDuringAJoinLeadsToAnother(t *testing.T) {
	m := testMember(t, MemberConfig{})
	onRun(t, m, func() { m.setID("a"); m.state = memberJoining })
	m.Rejoin()
	onRun(t, m, func() {
		m.state = memberSyncing
		m.place.generation = 1
		m.adopt(Share{}, time.Now())
		if m.state != memberJoining {
			t.Errorf("state %d after the join that Rejoin came into", m.state)
		}
	})
}

func TestLeaveEndsWithItsContextWhileTheBrokerIsAway(t *testing.T) {
	m := testMember(t, MemberConfig{})
	m.Start()
	onRun(t, m, func() { m.setID("a") })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := m.Leave(ctx); err == nil || ctx.Err() == nil {
		t.Fatalf("error %v", err)
	}
	err := m.Commit(t.Context(), "a", 1, []CommittedOffset{{}})
	if err == nil {
		t.Fatal("a commit after leaving")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}
