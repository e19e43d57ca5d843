package kafkatest

import (
	"errors"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var staticCases = []testCase{
	{"a restart keeps the assignment and disturbs nobody", testStaticRestart},
	{"changed metadata of a restart needs a rejoin", testStaticChanged},
	{"an instance id taken over fences the old holder", testStaticFenced},
	{"leave works for a static member", testStaticLeave},
	{"a static member that stays away is dropped", testStaticExpires},
}

// A process that is back within its session timeout gets its partitions at
// once, under a new member id in the same generation.
func testStaticRestart(t *testing.T, e Env) {
	g := newGroup(t, e, 4)
	a := g.join(t, e.Driver, "a", static("one"))
	a.waitShare(t, 4)
	b := g.join(t, e.Second, "b", static("two"))
	before := b.waitShare(t, 2)
	a.waitShare(t, 2)
	n, _ := a.counts()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again := g.join(t, e.Second, "b", static("two"))
	after := again.waitShare(t, 2)
	if after.Generation != before.Generation || after.MemberID == before.MemberID {
		t.Fatalf("assignment %+v after %+v: want the same generation, another member id", after, before)
	}
	if after.Rejoined {
		t.Fatal("a new process cannot have adopted the generation before")
	}
	for i, tp := range after.Partitions {
		if tp != before.Partitions[i] {
			t.Fatalf("partitions %v, want %v", after.Partitions, before.Partitions)
		}
	}
	if got, lost := a.counts(); got != n || lost != 0 {
		t.Fatalf("the other member saw %d assignments, want %d", got, n)
	}
	commit(t, again, after, kafka.CommittedOffset{TopicPartition: after.Partitions[0], Offset: 1})
}

// The group answers a returning static member with the old assignment even
// if it joins with other bytes, so who changed must ask for a rebalance.
func testStaticChanged(t *testing.T, e Env) {
	g := newGroup(t, e, 4)
	a := g.join(t, e.Driver, "a", static("one"))
	a.waitShare(t, 4)
	b := g.join(t, e.Second, "b", static("two"))
	before := b.waitShare(t, 2)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again := g.join(t, e.Second, "changed", static("two"))
	old := again.waitShare(t, 2)
	if old.Generation == before.Generation && string(old.UserData) != "for b" {
		t.Fatalf("user data %q of the old generation, want that of the old assignment", old.UserData)
	}
	again.setUserData("changed-1")
	again.Rejoin()
	x := again.wait(t, "an assignment made for the new user data", func(a kafka.Assignment) bool {
		return string(a.UserData) == "for changed-1" && len(a.Partitions) == 2
	})
	wantSpread(t, 4, x, a.waitAfter(t, x.Generation-1, 2))
	if x.Generation == before.Generation {
		t.Fatalf("another assignment in generation %d", x.Generation)
	}
}

// Two processes with one instance id (a copied directory): the older one
// must end and not fight.
func testStaticFenced(t *testing.T, e Env) {
	g := newGroup(t, e, 2)
	a := g.join(t, e.Driver, "a", static("one"))
	first := a.waitShare(t, 2)
	b := g.join(t, e.Second, "a", static("one"))
	b.waitShare(t, 2)
	if err := a.waitLost(t); !errors.Is(err, kafka.ErrFencedInstance) {
		t.Fatalf("error %v, want ErrFencedInstance", err)
	}
	tp := kafka.TopicPartition{Topic: g.topic}
	err := a.Commit(ctx(t), first.MemberID, first.Generation, []kafka.CommittedOffset{{TopicPartition: tp, Offset: 1}})
	if !errors.Is(err, kafka.ErrFencedInstance) {
		t.Fatalf("commit of the fenced member: %v, want ErrFencedInstance", err)
	}
	if _, lost := b.counts(); lost != 0 {
		t.Fatal("the new holder was lost")
	}
}

// An explicit leave ends static membership too; otherwise a planned stop
// would be waited for.
func testStaticLeave(t *testing.T, e Env) {
	g := newGroup(t, e, 4)
	a := g.join(t, e.Driver, "a", static("one"))
	a.waitShare(t, 4)
	b := g.join(t, e.Second, "b", static("two"))
	gen := b.waitShare(t, 2).Generation
	a.waitShare(t, 2)
	if err := b.Leave(ctx(t)); err != nil {
		t.Fatal(err)
	}
	a.waitAfter(t, gen, 4)
}

// Static membership is for restarts: who stays away longer loses its share.
func testStaticExpires(t *testing.T, e Env) {
	g := newGroup(t, e, 4)
	a := g.join(t, e.Driver, "a", static("one"))
	a.waitShare(t, 4)
	b := g.join(t, e.Second, "b", static("two"))
	gen := b.waitShare(t, 2).Generation
	a.waitShare(t, 2)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	e.Advance(e.Session + e.Session/3)
	a.waitAfter(t, gen, 4)
}
