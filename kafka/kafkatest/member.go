package kafkatest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
)

var memberCases = []testCase{
	{"one member gets what the plan gives it", testMemberOne},
	{"user data goes both ways", testMemberUserData},
	{"members join and share in one generation", testMemberJoin},
	{"a leaving member's share goes to the others at once", testMemberLeave},
	{"a member left out of the plan gets an empty share", testMemberLeftOut},
	{"a failed plan is made again", testMemberPlanError},
	{"the plan sees what members own", testMemberOwned},
	{"rejoin asks everybody again", testMemberRejoin},
	{"a silent member is dropped after its session timeout", testMemberExpires},
	{"the lease stands from the first assignment", testMemberLease},
	{"members of another kind are refused", testMemberInconsistent},
	{"a group is described as it is", testMemberDescribed},
}

// The simplest group: one member, which leads itself.
func testMemberOne(t *testing.T, e Env) {
	g := newGroup(t, e, 3)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 3)
	wantSpread(t, 3, a)
	if a.MemberID == "" || a.Generation < 1 || a.Rejoined {
		t.Fatalf("first assignment %+v", a)
	}
	if _, lost := m.counts(); lost != 0 {
		t.Fatalf("Lost was called %d times", lost)
	}
}

// The leader sees what each member joined with; each member gets what the
// leader answered to it.
func testMemberUserData(t *testing.T, e Env) {
	g := newGroup(t, e, 2)
	a := g.join(t, e.Driver, "a\x00\xff")
	a.waitShare(t, 2)
	b := g.join(t, e.Second, "b")
	b.waitShare(t, 1)
	got := a.waitShare(t, 1)
	if string(got.UserData) != "for a\x00\xff" {
		t.Fatalf("user data %q", got.UserData)
	}
	for _, m := range g.lastPlan() {
		if len(m.Topics) != 1 || m.Topics[0] != g.topic {
			t.Fatalf("the plan saw topics %v", m.Topics)
		}
		if s := string(m.UserData); s != "a\x00\xff" && s != "b" {
			t.Fatalf("the plan saw user data %q", s)
		}
	}
}

// Members that join take part in a new generation of all; those that were
// there keep their ids and miss nothing.
func testMemberJoin(t *testing.T, e Env) {
	g := newGroup(t, e, 6)
	a := g.join(t, e.Driver, "a")
	first := a.waitShare(t, 6)
	b := g.join(t, e.Second, "b")
	two := a.waitAfter(t, first.Generation, 3)
	wantSpread(t, 6, two, b.waitShare(t, 3))
	if two.MemberID != first.MemberID || !two.Rejoined {
		t.Fatalf("second assignment %+v after %+v: want the same member id, rejoined", two, first)
	}
	c := g.join(t, e.Second, "c")
	three := a.waitAfter(t, two.Generation, 2)
	wantSpread(t, 6, three, b.waitAfter(t, two.Generation, 2), c.waitShare(t, 2))
	if !three.Rejoined {
		t.Fatalf("third assignment %+v, want rejoined", three)
	}
}

// Leaving is told to the group, so that nobody waits for a session timeout.
func testMemberLeave(t *testing.T, e Env) {
	g := newGroup(t, e, 4)
	a := g.join(t, e.Driver, "a")
	a.waitShare(t, 4)
	b := g.join(t, e.Second, "b")
	b.waitShare(t, 2)
	two := a.waitShare(t, 2)
	began := time.Now()
	if err := b.Leave(ctx(t)); err != nil {
		t.Fatal(err)
	}
	a.waitAfter(t, two.Generation, 4)
	if took := time.Since(began); took >= e.Session {
		t.Fatalf("took %s, as long as a session timeout", took)
	}
	tp := kafka.TopicPartition{Topic: g.topic}
	if err := b.Commit(ctx(t), two.MemberID, two.Generation, []kafka.CommittedOffset{{TopicPartition: tp, Offset: 1}}); err == nil {
		t.Fatal("a commit passed after Leave")
	}
	if err := a.Leave(ctx(t)); err != nil {
		t.Fatal(err)
	}
}

// Every member hears of every generation, also those that get nothing.
func testMemberLeftOut(t *testing.T, e Env) {
	g := newGroup(t, e, 2)
	g.setPlan(func(context.Context, []kafka.GroupMember) (map[string]kafka.Share, error) {
		return map[string]kafka.Share{}, nil
	})
	m := g.join(t, e.Driver, "a")
	if a := m.waitShare(t, 0); a.Generation < 1 || len(a.UserData) != 0 {
		t.Fatalf("assignment %+v", a)
	}
}

// A plan may fail for a while (metadata cannot be had, say); the group stays
// and gets its assignment later.
func testMemberPlanError(t *testing.T, e Env) {
	g := newGroup(t, e, 2)
	good := g.spread(2)
	calls := make(chan struct{}, 100) // more than there will be calls
	g.setPlan(func(c context.Context, ms []kafka.GroupMember) (map[string]kafka.Share, error) {
		calls <- struct{}{}
		if len(calls) < 3 {
			return nil, errors.New("planned failure")
		}
		return good(c, ms)
	})
	m := g.join(t, e.Driver, "a")
	for n := 1; n < 3; n++ {
		eventually(t, "another plan", nil, func() bool { return len(calls) >= n })
		e.Advance(2 * time.Second) // the pause between joins
	}
	wantSpread(t, 2, m.waitShare(t, 2))
}

// Owned partitions and the generation of that claim reach the leader: a
// cooperative assignor needs both to move a partition in two steps.
func testMemberOwned(t *testing.T, e Env) {
	g := newGroup(t, e, 4)
	a := g.join(t, e.Driver, "a")
	first := a.waitShare(t, 4)
	b := g.join(t, e.Second, "b")
	b.waitShare(t, 2)
	saw := g.lastPlan()
	if len(saw) != 2 {
		t.Fatalf("the plan saw %d members", len(saw))
	}
	for id, m := range saw {
		if id == first.MemberID {
			if len(m.Owned) != 4 || m.Generation != first.Generation {
				t.Fatalf("the first member owns %v of generation %d, want 4 of %d", m.Owned, m.Generation, first.Generation)
			}
		} else if len(m.Owned) != 0 || m.Generation != -1 {
			t.Fatalf("the new member owns %v of generation %d", m.Owned, m.Generation)
		}
	}
}

// Rejoin with changed bytes starts a rebalance from any member, leader or
// not, and Subscribe is asked again.
func testMemberRejoin(t *testing.T, e Env) {
	g := newGroup(t, e, 4)
	a := g.join(t, e.Driver, "a")
	a.waitShare(t, 4)
	b := g.join(t, e.Second, "b")
	gen := b.waitShare(t, 2).Generation
	a.waitShare(t, 2)
	for i, m := range []*member{a, b, a} {
		m.setUserData(string(rune('p' + i)))
		m.Rejoin()
		x, y := a.waitAfter(t, gen, 2), b.waitAfter(t, gen, 2)
		wantSpread(t, 4, x, y)
		if !x.Rejoined || !y.Rejoined {
			t.Fatalf("assignments %+v and %+v: want rejoined", x, y)
		}
		gen = x.Generation
		found := false
		for _, s := range g.lastPlan() {
			found = found || string(s.UserData) == string(rune('p'+i))
		}
		if !found {
			t.Fatalf("round %d: the plan did not see the new user data", i)
		}
	}
}

// Who dies without a word loses its share after the session timeout, and not
// before it.
func testMemberExpires(t *testing.T, e Env) {
	g := newGroup(t, e, 4)
	a := g.join(t, e.Driver, "a")
	a.waitShare(t, 4)
	b := g.join(t, e.Second, "b")
	b.waitShare(t, 2)
	two := a.waitShare(t, 2)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	e.Advance(e.Session / 3)
	if n, _ := a.counts(); n != 2 {
		t.Fatalf("%d assignments, want 2: the session was cut short", n)
	}
	e.Advance(e.Session)
	a.waitAfter(t, two.Generation, 4)
}

// Nobody may write without a lease; a live member's lease is never over.
func testMemberLease(t *testing.T, e Env) {
	g := newGroup(t, e, 1)
	m, err := e.Driver.NewMember(kafka.MemberConfig{Group: g.name, Protocol: "kafkatest",
		Subscribe: func() kafka.Subscription { return kafka.Subscription{} }, Plan: g.doPlan,
		Assigned: func(kafka.Assignment) {}, Lost: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	if l := m.Lease(); !l.IsZero() {
		t.Fatalf("lease %s before the member joined", l)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	live := g.join(t, e.Driver, "a")
	live.waitShare(t, 1)
	now := e.Driver.Clock().Now()
	if l := live.Lease(); !l.After(now) || l.After(now.Add(e.Session+time.Second)) {
		t.Fatalf("lease %s at %s, session timeout %s", l, now, e.Session)
	}
	e.Advance(2 * e.Session)
	if l, now := live.Lease(), e.Driver.Clock().Now(); !l.After(now) {
		t.Fatalf("lease %s is over at %s although the member lives", l, now)
	}
	if _, lost := live.counts(); lost != 0 {
		t.Fatal("a live member was lost")
	}
}

// Another assignor in the same group cannot work; waiting does not change
// it, so the member ends with a typed error.
func testMemberInconsistent(t *testing.T, e Env) {
	g := newGroup(t, e, 1)
	g.join(t, e.Driver, "a").waitShare(t, 1)
	other := g.join(t, e.Second, "b", func(c *kafka.MemberConfig) { c.Protocol = "something-else" })
	if err := other.waitLost(t); !errors.Is(err, kafka.ErrInconsistentGroup) {
		t.Fatalf("error %v, want ErrInconsistentGroup", err)
	}
}

// Tools see members, what they joined with and what they got.
func testMemberDescribed(t *testing.T, e Env) {
	g := newGroup(t, e, 4)
	a := g.join(t, e.Driver, "a", static("one"))
	a.waitShare(t, 4)
	b := g.join(t, e.Second, "b")
	x, y := a.waitShare(t, 2), b.waitShare(t, 2)
	var d kafka.Group
	eventually(t, "the group is stable", nil, func() bool {
		var err error
		if d, err = e.Driver.Admin().Group(ctx(t), g.name); err != nil {
			t.Fatal(err)
		}
		return d.State == "Stable"
	})
	if d.Name != g.name || d.Protocol != "kafkatest" || len(d.Members) != 2 {
		t.Fatalf("group %+v", d)
	}
	for _, m := range d.Members {
		want, instance, data := x, "one", "a"
		if m.ID == y.MemberID {
			want, instance, data = y, "", "b"
		}
		if m.ID != want.MemberID || m.InstanceID != instance || string(m.UserData) != data || len(m.Topics) != 1 {
			t.Fatalf("member %+v, want id %s, instance %q, user data %q", m, want.MemberID, instance, data)
		}
		s := d.Shares[m.ID]
		if len(s.Partitions) != 2 || string(s.UserData) != "for "+data {
			t.Fatalf("share of %s: %+v", m.ID, s)
		}
	}
}
