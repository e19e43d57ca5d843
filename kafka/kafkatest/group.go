package kafkatest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
)

// group is a consumer group under test: its members, and the plan that all of
// them share.
type group struct {
	e     Env
	name  string
	topic string

	mu    sync.Mutex
	plan  func(context.Context, []kafka.GroupMember) (map[string]kafka.Share, error)
	plans [][]kafka.GroupMember // what each plan was made for
}

func newGroup(t *testing.T, e Env, partitions int32) *group {
	t.Helper()
	g := &group{e: e, name: e.name("group"), topic: e.topic(t, partitions)}
	g.plan = g.spread(partitions)
	return g
}

// spread returns a plan that gives the partitions in turn to the members by
// id, and answers each one's user data.
func (g *group) spread(partitions int32) func(context.Context, []kafka.GroupMember) (map[string]kafka.Share, error) {
	return func(_ context.Context, members []kafka.GroupMember) (map[string]kafka.Share, error) {
		ids := make([]string, 0, len(members))
		shares := map[string]kafka.Share{}
		for _, m := range members {
			ids = append(ids, m.ID)
			shares[m.ID] = kafka.Share{UserData: []byte("for " + string(m.UserData))}
		}
		slices.Sort(ids)
		for p := range partitions {
			id := ids[int(p)%len(ids)]
			s := shares[id]
			s.Partitions = append(s.Partitions, kafka.TopicPartition{Topic: g.topic, Partition: p})
			shares[id] = s
		}
		return shares, nil
	}
}

// setPlan replaces the plan.
func (g *group) setPlan(p func(context.Context, []kafka.GroupMember) (map[string]kafka.Share, error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.plan = p
}

// lastPlan returns what the last plan was made for, by member id.
func (g *group) lastPlan() map[string]kafka.GroupMember {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string]kafka.GroupMember{}
	if n := len(g.plans); n > 0 {
		for _, m := range g.plans[n-1] {
			out[m.ID] = m
		}
	}
	return out
}

func (g *group) doPlan(c context.Context, members []kafka.GroupMember) (map[string]kafka.Share, error) {
	g.mu.Lock()
	g.plans = append(g.plans, slices.Clone(members))
	plan := g.plan
	g.mu.Unlock()
	return plan(c, members)
}

// member is one member with what happened to it.
type member struct {
	kafka.Member
	g      *group
	signal chan struct{}

	mu       sync.Mutex
	userData string
	assigned []kafka.Assignment
	lost     []error
	inside   int // callbacks running now
	wrong    string
}

// join starts a member over d. It is closed with the test.
func (g *group) join(t *testing.T, d kafka.Driver, userData string, change ...func(*kafka.MemberConfig)) *member {
	t.Helper()
	m := &member{g: g, signal: make(chan struct{}, 1), userData: userData}
	cfg := kafka.MemberConfig{
		Group:             g.name,
		Protocol:          "kafkatest",
		SessionTimeout:    g.e.Session,
		HeartbeatInterval: 100 * time.Millisecond,
		RebalanceTimeout:  g.e.Session,
		Subscribe:         m.subscribe,
		Plan: func(c context.Context, ms []kafka.GroupMember) (map[string]kafka.Share, error) {
			defer m.enter()()
			return g.doPlan(c, ms)
		},
		Assigned: m.onAssigned,
		Lost:     m.onLost,
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if m.Member, err = d.NewMember(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close member: %v", err)
		}
	})
	m.Start()
	return m
}

// enter checks that callbacks come from one goroutine: none while another
// one runs.
func (m *member) enter() (leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inside++; m.inside > 1 {
		m.wrong = "two callbacks of one member at a time"
	}
	return func() {
		m.mu.Lock()
		m.inside--
		m.mu.Unlock()
	}
}

func (m *member) subscribe() kafka.Subscription {
	defer m.enter()()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := kafka.Subscription{Topics: []string{m.g.topic}, UserData: []byte(m.userData)}
	if n := len(m.assigned); n > 0 && len(m.lost) == 0 {
		s.Owned = m.assigned[n-1].Partitions
	}
	return s
}

func (m *member) onAssigned(a kafka.Assignment) {
	defer m.enter()()
	m.mu.Lock()
	m.assigned = append(m.assigned, a)
	m.mu.Unlock()
	notify(m.signal)
}

func (m *member) onLost(err error) {
	defer m.enter()()
	m.mu.Lock()
	m.lost = append(m.lost, err)
	m.mu.Unlock()
	notify(m.signal)
}

// wait waits for an assignment that ok accepts to be the newest one.
func (m *member) wait(t *testing.T, what string, ok func(kafka.Assignment) bool) kafka.Assignment {
	t.Helper()
	var last kafka.Assignment
	eventually(t, what, m.signal, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.wrong != "" {
			t.Fatal(m.wrong)
		}
		if len(m.assigned) == 0 {
			return false
		}
		last = m.assigned[len(m.assigned)-1]
		return ok(last)
	})
	return last
}

// waitShare waits until the member has n partitions.
func (m *member) waitShare(t *testing.T, n int) kafka.Assignment {
	t.Helper()
	return m.wait(t, fmt.Sprintf("an assignment of %d partitions", n), func(a kafka.Assignment) bool { return len(a.Partitions) == n })
}

// waitAfter waits until the member has n partitions in a generation after
// gen.
func (m *member) waitAfter(t *testing.T, gen int32, n int) kafka.Assignment {
	t.Helper()
	return m.wait(t, fmt.Sprintf("an assignment of %d partitions after generation %d", n, gen),
		func(a kafka.Assignment) bool { return a.Generation > gen && len(a.Partitions) == n })
}

// waitLost waits for a call of Lost and returns the first error.
func (m *member) waitLost(t *testing.T) error {
	t.Helper()
	eventually(t, "Lost is called", m.signal, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.lost) > 0
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost[0]
}

// counts returns how many assignments and losses there were.
func (m *member) counts() (assigned, lost int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.assigned), len(m.lost)
}

// setUserData changes what the member joins with.
func (m *member) setUserData(s string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.userData = s
}

// wantSpread fails unless the assignments are of one generation and cover all
// partitions of the topic once.
func wantSpread(t *testing.T, partitions int, as ...kafka.Assignment) {
	t.Helper()
	owners := map[kafka.TopicPartition]string{}
	for _, a := range as {
		if a.Generation != as[0].Generation {
			t.Fatalf("generations %d and %d", as[0].Generation, a.Generation)
		}
		for _, tp := range a.Partitions {
			if o, ok := owners[tp]; ok {
				t.Fatalf("%s belongs to %s and %s", tp, o, a.MemberID)
			}
			owners[tp] = a.MemberID
		}
	}
	if len(owners) != partitions {
		t.Fatalf("%d partitions assigned, want %d: %v", len(owners), partitions, slices.Collect(maps.Keys(owners)))
	}
}

// static makes a member static.
func static(id string) func(*kafka.MemberConfig) {
	return func(c *kafka.MemberConfig) { c.InstanceID = id }
}
