package kafkatest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

var transactorOffsetsCases = []testCase{
	{"records and offsets are committed together", testTxnOffsetsCommit},
	{"offsets alone are a transaction", testTxnOffsetsAlone},
	{"an abort drops offsets", testTxnOffsetsAbort},
	{"pending offsets are waited for, or the old ones answered", testTxnOffsetsPending},
	{"pending offsets hold back their own partitions only", testTxnOffsetsOthers},
	{"a stale generation is refused and can be aborted", testTxnOffsetsStale},
	{"an unknown member is refused and can be aborted", testTxnOffsetsUnknown},
	{"an instance id of another member is refused", testTxnOffsetsInstance},
	{"metadata too large fails its partition", testTxnOffsetsMetadata},
}

// offset is a position in a partition of the group's topic.
func (g *group) offset(p int32, next int64, mark string) kafka.CommittedOffset {
	return kafka.CommittedOffset{TopicPartition: g.partition(p), Offset: next, LeaderEpoch: -1, Metadata: mark}
}

// committer is in whose name the member commits.
func (m *member) committer(a kafka.Assignment) kafka.Committer {
	return kafka.Committer{Group: m.g.name, MemberID: a.MemberID, Generation: a.Generation}
}

// offsets makes offsets part of the open transaction.
func (x *transactor) offsets(t *testing.T, by kafka.Committer, offsets ...kafka.CommittedOffset) {
	t.Helper()
	if err := x.Offsets(ctx(t), by, offsets); err != nil {
		t.Fatal(err)
	}
	for _, o := range offsets {
		if o.Err != nil {
			t.Fatalf("%s: %v", o.TopicPartition, o.Err)
		}
	}
}

// wantCommitted fails unless a group's stable offset is as it should be.
func wantCommitted(t *testing.T, m *member, tp kafka.TopicPartition, offset int64, mark string) {
	t.Helper()
	if o := committed(t, m, true, tp)[tp]; o.Offset != offset || o.Metadata != mark {
		t.Fatalf("%s is committed at %d with %q, want %d with %q", tp, o.Offset, o.Metadata, offset, mark)
	}
}

// This is what exactly once rests on. Offsets come without records too: a
// claim writes nothing else.
func testTxnOffsetsCommit(t *testing.T, e Env) {
	g := newGroup(t, e, 2)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 2)
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := writer(t, e)
	for i := range 3 {
		x.Begin()
		x.out.produce(tp, numbered(i, 1)...)
		x.offsets(t, m.committer(a), g.offset(0, int64(i+1), "mark"), g.offset(1, int64(i+7), ""))
		x.end(t, true)
		wantCommitted(t, m, g.partition(0), int64(i+1), "mark")
		wantCommitted(t, m, g.partition(1), int64(i+7), "")
	}
	in := read(t, e, kafka.ReadCommitted, tp)
	in.wait(t, "three records", func() bool { return len(in.records) >= 3 })
}

// A task without outputs commits offsets only. The last of several in one
// transaction counts.
func testTxnOffsetsAlone(t *testing.T, e Env) {
	g := newGroup(t, e, 1)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 1)
	x := writer(t, e)
	x.Begin()
	x.offsets(t, m.committer(a), g.offset(0, 3, "first"))
	x.offsets(t, m.committer(a), g.offset(0, 5, "last"))
	x.end(t, true)
	wantCommitted(t, m, g.partition(0), 5, "last")
}

// The old offsets stand, with their marks.
func testTxnOffsetsAbort(t *testing.T, e Env) {
	g := newGroup(t, e, 1)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 1)
	x := writer(t, e)
	x.Begin()
	x.offsets(t, m.committer(a), g.offset(0, 3, "old"))
	x.end(t, true)
	x.Begin()
	x.offsets(t, m.committer(a), g.offset(0, 9, "new"))
	x.end(t, false)
	wantCommitted(t, m, g.partition(0), 3, "old")
}

// A new owner reads the old mark at once, to learn whom it waits for, and the
// offsets themselves only when they are decided.
func testTxnOffsetsPending(t *testing.T, e Env) {
	g := newGroup(t, e, 2)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 2)
	commit(t, m, a, g.offset(0, 3, "old"))
	x := writer(t, e)
	x.Begin()
	x.offsets(t, m.committer(a), g.offset(0, 9, "new"))
	if o := committed(t, m, false, g.partition(0))[g.partition(0)]; o.Offset != 3 || o.Metadata != "old" {
		t.Fatalf("committed while pending: %+v", o)
	}
	answer := stableLater(t, e.Driver, m, g.partition(0))
	e.Advance(200 * time.Millisecond)
	select {
	case o := <-answer:
		t.Fatalf("answered %+v while an offset is pending", o)
	default:
	}
	x.end(t, true)
	if o := <-answer; o.Err != nil || o.Offset != 9 || o.Metadata != "new" {
		t.Fatalf("stable: %+v", o)
	}
}

// A task does not wait for another one's writer.
func testTxnOffsetsOthers(t *testing.T, e Env) {
	e.need(t, PendingByPartition)
	g := newGroup(t, e, 2)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 2)
	commit(t, m, a, g.offset(1, 4, "other"))
	x := writer(t, e)
	x.Begin()
	x.offsets(t, m.committer(a), g.offset(0, 9, "new"))
	wantCommitted(t, m, g.partition(1), 4, "other")
	x.end(t, true)
	wantCommitted(t, m, g.partition(0), 9, "new")
}

// stableLater asks for a stable offset in a goroutine, which ends with the
// answer and is waited for by whoever takes it.
func stableLater(t *testing.T, d kafka.Driver, m *member, tp kafka.TopicPartition) <-chan kafka.CommittedOffset {
	t.Helper()
	answer := make(chan kafka.CommittedOffset, 1) // one answer
	c := ctx(t)
	work.Go(d.Work(), func() {
		got, err := m.Committed(c, []kafka.TopicPartition{tp}, true)
		if err != nil {
			answer <- kafka.CommittedOffset{Err: err}
			return
		}
		answer <- got[0]
	})
	return answer
}

// A generation that has passed may have lost its partitions: neither its
// offsets nor its records may count.
func testTxnOffsetsStale(t *testing.T, e Env) {
	g := newGroup(t, e, 2)
	m := g.join(t, e.Driver, "a")
	old := m.waitShare(t, 2)
	g.join(t, e.Second, "b").waitShare(t, 1)
	fresh := m.waitShare(t, 1)
	refused(t, m, m.committer(old), m.committer(fresh), kafka.ErrIllegalGeneration)
}

// So for a member that was expelled.
func testTxnOffsetsUnknown(t *testing.T, e Env) {
	g := newGroup(t, e, 1)
	m := g.join(t, e.Driver, "a")
	good := m.committer(m.waitShare(t, 1))
	bad := good
	bad.MemberID = "nobody"
	refused(t, m, bad, good, kafka.ErrUnknownMember)
}

// And for a process whose instance id another one has taken over.
func testTxnOffsetsInstance(t *testing.T, e Env) {
	g := newGroup(t, e, 1)
	m := g.join(t, e.Driver, "a", static("one"))
	good := m.committer(m.waitShare(t, 1))
	good.InstanceID = "one"
	bad := good
	bad.MemberID = "former"
	refused(t, m, bad, good, kafka.ErrFencedInstance)
}

// refused tries to commit in the name of bad, aborts, and repeats all in the
// name of good.
func refused(t *testing.T, m *member, bad, good kafka.Committer, want error) {
	t.Helper()
	g, e := m.g, m.g.e
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := writer(t, e)
	x.Begin()
	x.write(t, tp, numbered(0, 1)...)
	err := x.Offsets(ctx(t), bad, []kafka.CommittedOffset{g.offset(0, 9, "bad")})
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
	if err := x.End(ctx(t), true); !errors.Is(err, kafka.ErrAbortable) {
		t.Fatalf("commit: %v, want ErrAbortable", err)
	}
	x.end(t, false)
	wantCommitted(t, m, g.partition(0), -1, "")
	x.Begin()
	x.write(t, tp, numbered(1, 1)...)
	x.offsets(t, good, g.offset(0, 2, "good"))
	x.end(t, true)
	wantCommitted(t, m, g.partition(0), 2, "good")
	wantNumbered(t, read(t, e, kafka.ReadCommitted, tp).waitRecords(t, 1), 1, 1)
}

// The broker would commit the rest: a transaction with a part of its offsets.
func testTxnOffsetsMetadata(t *testing.T, e Env) {
	e.need(t, MetadataLimit)
	g := newGroup(t, e, 2)
	m := g.join(t, e.Driver, "a")
	a := m.waitShare(t, 2)
	x := writer(t, e)
	x.Begin()
	offsets := []kafka.CommittedOffset{g.offset(0, 1, strings.Repeat("x", 5000)), g.offset(1, 1, strings.Repeat("x", 4000))}
	if err := x.Offsets(ctx(t), m.committer(a), offsets); !errors.Is(err, kafka.ErrAbortable) {
		t.Fatalf("error %v, want ErrAbortable", err)
	}
	if offsets[0].Err == nil || offsets[1].Err != nil {
		t.Fatalf("errors %v and %v, want one for the first partition only", offsets[0].Err, offsets[1].Err)
	}
	if err := x.End(ctx(t), true); !errors.Is(err, kafka.ErrAbortable) {
		t.Fatalf("commit: %v, want ErrAbortable", err)
	}
	x.end(t, false)
	wantCommitted(t, m, g.partition(0), -1, "")
	wantCommitted(t, m, g.partition(1), -1, "")
}
