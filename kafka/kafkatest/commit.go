package kafkatest

import (
	"errors"
	"strings"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var commitCases = []testCase{
	{"what is committed comes back with its metadata", testCommitRoundTrip},
	{"what was never committed is told apart", testCommittedNone},
	{"committed offsets outlive the group's members", testCommitOutlives},
	{"a stale generation is refused", testCommitStale},
	{"an unknown member is refused", testCommitUnknownMember},
	{"metadata too large fails its partition alone", testCommitMetadata},
}

func commit(t *testing.T, m *member, a kafka.Assignment, offsets ...kafka.CommittedOffset) {
	t.Helper()
	if err := m.Commit(ctx(t), a.MemberID, a.Generation, offsets); err != nil {
		t.Fatal(err)
	}
	for _, o := range offsets {
		if o.Err != nil {
			t.Fatalf("%s: %v", o.TopicPartition, o.Err)
		}
	}
}

func committed(t *testing.T, m *member, stable bool, tps ...kafka.TopicPartition) map[kafka.TopicPartition]kafka.CommittedOffset {
	t.Helper()
	got, err := m.Committed(ctx(t), tps, stable)
	if err != nil {
		t.Fatal(err)
	}
	out := map[kafka.TopicPartition]kafka.CommittedOffset{}
	for _, o := range got {
		if o.Err != nil {
			t.Fatalf("%s: %v", o.TopicPartition, o.Err)
		}
		out[o.TopicPartition] = o
	}
	if len(out) != len(tps) {
		t.Fatalf("%d answers for %d partitions", len(got), len(tps))
	}
	return out
}

func (g *group) partition(p int32) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: g.topic, Partition: p}
}

// The mark of an owner travels in the metadata, byte for byte.
func testCommitRoundTrip(t *testing.T, e Env) {
	g := newGroup(t, e, 3)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 3)
	mark := strings.Repeat("m", 190)
	commit(t, m, a,
		kafka.CommittedOffset{TopicPartition: g.partition(0), Offset: 5, LeaderEpoch: 0, Metadata: mark},
		kafka.CommittedOffset{TopicPartition: g.partition(1), Offset: 0, LeaderEpoch: -1})
	commit(t, m, a, kafka.CommittedOffset{TopicPartition: g.partition(1), Offset: 7, LeaderEpoch: -1, Metadata: "é"})
	for _, stable := range []bool{false, true} {
		got := committed(t, m, stable, g.partition(0), g.partition(1))
		if o := got[g.partition(0)]; o.Offset != 5 || o.Metadata != mark {
			t.Fatalf("stable %t: %+v", stable, o)
		}
		if o := got[g.partition(1)]; o.Offset != 7 || o.Metadata != "é" || o.LeaderEpoch != -1 {
			t.Fatalf("stable %t: %+v", stable, o)
		}
	}
}

// "Never committed" is -1, not offset 0: a new group starts by its own rule.
func testCommittedNone(t *testing.T, e Env) {
	g := newGroup(t, e, 2)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 2)
	commit(t, m, a, kafka.CommittedOffset{TopicPartition: g.partition(0), Offset: 0, LeaderEpoch: -1})
	got := committed(t, m, true, g.partition(0), g.partition(1))
	if got[g.partition(0)].Offset != 0 || got[g.partition(1)].Offset != -1 {
		t.Fatalf("committed %+v, want 0 and -1", got)
	}
}

// Offsets are the group's, not the member's.
func testCommitOutlives(t *testing.T, e Env) {
	g := newGroup(t, e, 1)
	m := g.join(t, e.Driver, "a")
	commit(t, m, m.waitShare(t, 1), kafka.CommittedOffset{TopicPartition: g.partition(0), Offset: 42, LeaderEpoch: -1, Metadata: "x"})
	if err := m.Leave(ctx(t)); err != nil {
		t.Fatal(err)
	}
	next := g.join(t, e.Second, "b")
	next.waitShare(t, 1)
	if o := committed(t, next, true, g.partition(0))[g.partition(0)]; o.Offset != 42 || o.Metadata != "x" {
		t.Fatalf("committed %+v", o)
	}
}

// A member that missed a generation may have lost its partitions: its commit
// must not touch the new owner's offsets.
func testCommitStale(t *testing.T, e Env) {
	g := newGroup(t, e, 2)
	a := g.join(t, e.Driver, "a")
	old := a.waitShare(t, 2)
	commit(t, a, old, kafka.CommittedOffset{TopicPartition: g.partition(0), Offset: 3, LeaderEpoch: -1})
	b := g.join(t, e.Second, "b")
	b.waitShare(t, 1)
	fresh := a.waitShare(t, 1)
	err := a.Commit(ctx(t), old.MemberID, old.Generation, []kafka.CommittedOffset{{TopicPartition: g.partition(0), Offset: 9, LeaderEpoch: -1}})
	if !errors.Is(err, kafka.ErrIllegalGeneration) {
		t.Fatalf("error %v, want ErrIllegalGeneration", err)
	}
	if o := committed(t, a, true, g.partition(0))[g.partition(0)]; o.Offset != 3 {
		t.Fatalf("a refused commit changed the offset to %d", o.Offset)
	}
	commit(t, a, fresh, kafka.CommittedOffset{TopicPartition: g.partition(0), Offset: 4, LeaderEpoch: -1})
}

// Neither does a member that the group does not know.
func testCommitUnknownMember(t *testing.T, e Env) {
	g := newGroup(t, e, 1)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 1)
	err := m.Commit(ctx(t), "nobody", a.Generation, []kafka.CommittedOffset{{TopicPartition: g.partition(0), Offset: 9, LeaderEpoch: -1}})
	if !errors.Is(err, kafka.ErrUnknownMember) {
		t.Fatalf("error %v, want ErrUnknownMember", err)
	}
	if o := committed(t, m, true, g.partition(0))[g.partition(0)]; o.Offset != -1 {
		t.Fatalf("a refused commit left offset %d", o.Offset)
	}
}

// The broker judges each partition: the answer must too.
func testCommitMetadata(t *testing.T, e Env) {
	e.need(t, MetadataLimit)
	g := newGroup(t, e, 2)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 2)
	offsets := []kafka.CommittedOffset{
		{TopicPartition: g.partition(0), Offset: 1, LeaderEpoch: -1, Metadata: strings.Repeat("x", 5000)},
		{TopicPartition: g.partition(1), Offset: 1, LeaderEpoch: -1},
	}
	if err := m.Commit(ctx(t), a.MemberID, a.Generation, offsets); err != nil {
		t.Fatal(err)
	}
	if offsets[0].Err == nil || offsets[1].Err != nil {
		t.Fatalf("errors %v and %v, want one for the first partition only", offsets[0].Err, offsets[1].Err)
	}
	got := committed(t, m, true, g.partition(0), g.partition(1))
	if got[g.partition(0)].Offset != -1 || got[g.partition(1)].Offset != 1 {
		t.Fatalf("committed %+v", got)
	}
}
