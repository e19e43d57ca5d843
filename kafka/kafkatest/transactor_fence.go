package kafkatest

import (
	"errors"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
)

var transactorFenceCases = []testCase{
	{"a second owner aborts the first one's transaction and fences it", testFenceSecond},
	{"a fenced owner cannot renew its epoch", testFenceRenew},
	{"an owner renews its epoch and keeps the id", testFenceOwn},
	{"a renewal aborts the own open transaction", testFenceOwnOpen},
	{"the transaction of a dead writer holds readers until its id is taken over", testFenceDead},
	{"a transaction that takes too long is aborted, its owner recovers", testFenceTimeout},
}

// two returns two transactors of two processes with one transactional id. The
// first one is initialised.
func two(t *testing.T, e Env) (first, second *transactor) {
	t.Helper()
	id := e.name("txn")
	first = newTransactor(t, e.Driver, kafka.TransactorConfig{ID: id})
	first.init(t, false)
	return first, newTransactor(t, e.Second, kafka.TransactorConfig{ID: id})
}

// wantFenced fails unless err says that somebody else has the id.
func wantFenced(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, kafka.ErrFenced) {
		t.Fatalf("%s: %v, want ErrFenced", what, err)
	}
}

// A zombie's writes are refused, whatever it does next.
func testFenceSecond(t *testing.T, e Env) {
	g := newGroup(t, e, 1)
	m := g.join(t, e.Driver, "a")
	by := m.committer(m.waitShare(t, 1))
	tp := kafka.TopicPartition{Topic: e.topic(t, 2)}
	other := kafka.TopicPartition{Topic: tp.Topic, Partition: 1}
	first, second := two(t, e)
	first.Begin()
	first.write(t, tp, numbered(0, 1)...)
	second.init(t, false)
	second.commit(t, tp, numbered(1, 1)...)
	for _, to := range []kafka.TopicPartition{tp, other} {
		s := first.out.produce(to, numbered(9, 1)...)
		first.out.wait(t)
		if s.runs[0].Err == nil {
			t.Fatalf("%s: a fenced writer wrote", to)
		}
	}
	wantFenced(t, "offsets", first.Offsets(ctx(t), by, []kafka.CommittedOffset{g.offset(0, 9, "")}))
	wantFenced(t, "commit", first.End(ctx(t), true))
	in := read(t, e, kafka.ReadCommitted, tp)
	wantNumbered(t, in.waitRecords(t, 1), 1, 1)
	waitMarks(t, in, "two records and two markers", 4, 4)
	wantCommitted(t, m, g.partition(0), -1, "")
	second.commit(t, other, numbered(0, 1)...)
	wantNumbered(t, read(t, e, kafka.ReadCommitted, other).waitRecords(t, 1), 0, 1)
}

// By renewal a process learns whether it was fenced or only too slow.
func testFenceRenew(t *testing.T, e Env) {
	e.need(t, InitFencing)
	first, second := two(t, e)
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	first.commit(t, tp, numbered(0, 1)...)
	second.init(t, false)
	wantFenced(t, "renewal", first.Init(ctx(t), true))
	second.commit(t, tp, numbered(1, 1)...)
	wantFenced(t, "renewal", first.Init(ctx(t), true))
	second.init(t, true)
	first.init(t, false) // but it may take the id back
	wantFenced(t, "renewal", second.Init(ctx(t), true))
	first.commit(t, tp, numbered(2, 1)...)
	in := read(t, e, kafka.ReadCommitted, tp)
	in.wait(t, "three records", func() bool { return len(in.records) >= 3 })
}

// The renewal is what comes after a transaction in doubt.
func testFenceOwn(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := writer(t, e)
	x.init(t, true) // never used
	for i := range 3 {
		x.commit(t, tp, numbered(i, 1)...)
		x.init(t, true)
		x.init(t, true)
	}
	in := read(t, e, kafka.ReadCommitted, tp)
	in.wait(t, "three records", func() bool { return len(in.records) >= 3 })
	if n := in.count(); n != 3 {
		t.Fatalf("%d records, want 3", n)
	}
}

// Nothing of the old epoch can be committed afterwards.
func testFenceOwnOpen(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := writer(t, e)
	x.Begin()
	x.write(t, tp, numbered(0, 1)...)
	x.init(t, true)
	x.commit(t, tp, numbered(1, 1)...)
	in := read(t, e, kafka.ReadCommitted, tp)
	wantNumbered(t, in.waitRecords(t, 1), 1, 1)
	waitMarks(t, in, "two records and two markers", 4, 4)
}

// Closing ends no transaction, as a crash does not. Taking the id over ends
// it, and lets go of readers and of those who wait for stable offsets.
func testFenceDead(t *testing.T, e Env) {
	g := newGroup(t, e, 1)
	m := g.join(t, e.Second, "a")
	by := m.committer(m.waitShare(t, 1))
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	first, second := two(t, e)
	first.Begin()
	first.offsets(t, by, g.offset(0, 1, "old"))
	first.end(t, true)
	first.Begin()
	first.write(t, tp, numbered(0, 1)...)
	first.offsets(t, by, g.offset(0, 2, "dead"))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	in := read(t, e, kafka.ReadCommitted, tp)
	waitMarks(t, in, "the last stable offset before the open transaction", 0, 0)
	if o := committed(t, m, false, g.partition(0))[g.partition(0)]; o.Offset != 1 || o.Metadata != "old" {
		t.Fatalf("committed while pending: %+v", o)
	}
	answer := stableLater(t, e.Second, m, g.partition(0))
	e.Advance(200 * time.Millisecond)
	select {
	case o := <-answer:
		t.Fatalf("answered %+v while an offset is pending", o)
	default:
	}
	second.init(t, false)
	if o := <-answer; o.Err != nil || o.Offset != 1 || o.Metadata != "old" {
		t.Fatalf("stable: %+v", o)
	}
	waitMarks(t, in, "the end", 2, 2)
	if n := in.count(); n != 0 {
		t.Fatalf("%d records of the dead writer were read", n)
	}
}

// The broker looks for transactions that take too long now and then only.
func testFenceTimeout(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := newTransactor(t, e.Driver, kafka.TransactorConfig{ID: e.name("txn"), Timeout: time.Second})
	x.init(t, false)
	x.Begin()
	x.write(t, tp, numbered(0, 1)...)
	in := read(t, e, kafka.ReadCommitted, tp)
	waitMarks(t, in, "the last stable offset before the open transaction", 0, 0)
	for range 60 {
		e.Advance(500 * time.Millisecond)
		in.mu.Lock()
		done := in.next == 2
		in.mu.Unlock()
		if done {
			break
		}
	}
	waitMarks(t, in, "the abort", 2, 2)
	wantFenced(t, "commit", x.End(ctx(t), true))
	x.init(t, true)
	x.commit(t, tp, numbered(1, 1)...)
	wantNumbered(t, in.waitRecords(t, 1), 1, 1)
}
