package kafkatest

import (
	"errors"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var writersCases = []testCase{
	{"nobody has a transaction open", testWritersNone},
	{"the writer of an open transaction is told, with its start", testWritersOpen},
	{"all writers of a partition are told, of each its own", testWritersSeveral},
	{"a dead writer is told until its id is taken over", testWritersDead},
	{"the writers of what does not exist is an error", testWritersUnknown},
	{"who has offsets of a group pending is told", testGroupWriters},
	{"a group with a dead writer has its offsets pending until the id is taken over", testGroupWritersDead},
}

// writersOf asks for the writers of one partition.
func writersOf(t *testing.T, e Env, tp kafka.TopicPartition) []kafka.Writer {
	t.Helper()
	got, err := e.Second.Admin().Writers(ctx(t), tp)
	if err != nil {
		t.Fatal(err)
	}
	for other := range got {
		if other != tp {
			t.Fatalf("asked for %s, answer has %s", tp, other)
		}
	}
	return got[tp]
}

// wantNoWriters waits until nobody has a transaction open in a partition:
// its marker is written after its end.
func wantNoWriters(t *testing.T, e Env, tp kafka.TopicPartition) {
	t.Helper()
	eventually(t, tp.String()+" has no open transaction", nil, func() bool { return len(writersOf(t, e, tp)) == 0 })
}

// Neither an empty log, nor a producer without transactions, nor a
// transaction that has ended holds anybody up.
func testWritersNone(t *testing.T, e Env) {
	topic := e.topic(t, 2)
	empty, plain := kafka.TopicPartition{Topic: topic}, kafka.TopicPartition{Topic: topic, Partition: 1}
	write(t, e, plain, numbered(0, 3)...)
	got, err := e.Driver.Admin().Writers(ctx(t), empty, plain)
	if err != nil || len(got) != 0 {
		t.Fatalf("writers %v, %v, want none", got, err)
	}
	for _, commit := range []bool{true, false} {
		x := writer(t, e)
		x.Begin()
		x.write(t, plain, numbered(0, 1)...)
		x.end(t, commit)
		wantNoWriters(t, e, plain)
	}
}

// Who waits for the last stable offset learns for whom it waits. Begin alone
// is nothing that a broker knows of.
func testWritersOpen(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 2), Partition: 1}
	write(t, e, tp, numbered(0, 2)...)
	id := e.name("txn")
	x := newTransactor(t, e.Driver, kafka.TransactorConfig{ID: id})
	x.init(t, false)
	for range 2 {
		x.Begin()
		if got := writersOf(t, e, tp); len(got) != 0 {
			t.Fatalf("writers %+v before the first record", got)
		}
		start := x.write(t, tp, numbered(0, 2)...)[0]
		x.write(t, tp, numbered(2, 2)...)
		got := writersOf(t, e, tp)
		if len(got) != 1 || got[0].TransactionalID != id || got[0].Start != start || got[0].ProducerID < 0 || got[0].ProducerEpoch < 0 {
			t.Fatalf("writers %+v, want %s from %d", got, id, start)
		}
		x.end(t, true)
		wantNoWriters(t, e, tp)
	}
}

func testWritersSeveral(t *testing.T, e Env) {
	topic := e.topic(t, 3)
	tps := []kafka.TopicPartition{{Topic: topic}, {Topic: topic, Partition: 1}, {Topic: topic, Partition: 2}}
	ids := []string{e.name("txn"), e.name("txn")}
	var xs []*transactor
	for i, id := range ids {
		x := newTransactor(t, e.Driver, kafka.TransactorConfig{ID: id})
		x.init(t, false)
		x.Begin()
		x.write(t, tps[0], numbered(i, 1)...) // both
		x.write(t, tps[1+i], numbered(0, 1)...)
		xs = append(xs, x)
	}
	got, err := e.Driver.Admin().Writers(ctx(t), tps...)
	if err != nil {
		t.Fatal(err)
	}
	if ws := got[tps[0]]; len(ws) != 2 || ws[0].TransactionalID != ids[0] || ws[0].Start != 0 || ws[1].TransactionalID != ids[1] || ws[1].Start != 1 {
		t.Fatalf("writers of %s: %+v, want %v", tps[0], ws, ids)
	}
	if a, b := got[tps[0]][0], got[tps[0]][1]; a.ProducerID == b.ProducerID {
		t.Fatalf("two writers with producer id %d", a.ProducerID)
	}
	for i, id := range ids {
		if ws := got[tps[1+i]]; len(ws) != 1 || ws[0].TransactionalID != id {
			t.Fatalf("writers of %s: %+v, want %s", tps[1+i], ws, id)
		}
	}
	xs[0].end(t, true)
	eventually(t, "one writer left", nil, func() bool { return len(writersOf(t, e, tps[0])) == 1 })
	if ws := writersOf(t, e, tps[0]); ws[0].TransactionalID != ids[1] {
		t.Fatalf("writers %+v, want %s", ws, ids[1])
	}
	xs[1].end(t, false)
	wantNoWriters(t, e, tps[0])
}

// This is how a new owner finds whom to fence.
func testWritersDead(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	first, second := two(t, e)
	first.Begin()
	first.write(t, tp, numbered(0, 1)...)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	got := writersOf(t, e, tp)
	if len(got) != 1 || got[0].TransactionalID == "" {
		t.Fatalf("writers %+v, want the dead one", got)
	}
	second.init(t, false)
	wantNoWriters(t, e, tp)
	if in := read(t, e, kafka.ReadCommitted, tp); in.count() != 0 {
		t.Fatal("what the dead writer wrote is read")
	}
}

// A missing topic or partition is an error, not an empty answer.
func testWritersUnknown(t *testing.T, e Env) {
	name := e.topic(t, 1)
	for _, tp := range []kafka.TopicPartition{{Topic: e.name("missing")}, {Topic: name, Partition: 7}} {
		_, err := e.Driver.Admin().Writers(ctx(t), kafka.TopicPartition{Topic: name}, tp)
		if !errors.Is(err, kafka.ErrUnknownTopic) {
			t.Fatalf("%s: %v, want ErrUnknownTopic", tp, err)
		}
	}
}

// pendingOf reports whether an id is among those with offsets pending.
func pendingOf(t *testing.T, e Env, group, id string) bool {
	t.Helper()
	ws, err := e.Second.Admin().GroupWriters(ctx(t), group)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ws {
		if w.TransactionalID == id {
			return true
		}
	}
	return false
}

// groupWriter returns a group's only member, which is joining, and a writer for
// its offsets.
func groupWriter(t *testing.T, e Env) (*group, *member, *transactor) {
	t.Helper()
	e.need(t, OffsetsTopic)
	g := newGroup(t, e, 1)
	return g, g.join(t, e.Driver, "a"), writer(t, e)
}

// Who waits for stable offsets learns for whom it waits.
func testGroupWriters(t *testing.T, e Env) {
	g, m, x := groupWriter(t, e)
	by, id := m.committer(m.waitShare(t, 1)), x.id
	for _, commit := range []bool{true, false} {
		x.Begin()
		if pendingOf(t, e, g.name, id) {
			t.Fatal("told before the first offset")
		}
		x.offsets(t, by, g.offset(0, 3, ""))
		if !pendingOf(t, e, g.name, id) {
			t.Fatalf("%s has offsets pending and is not told", id)
		}
		x.end(t, commit)
		eventually(t, "nothing pending", nil, func() bool { return !pendingOf(t, e, g.name, id) })
	}
}

func testGroupWritersDead(t *testing.T, e Env) {
	g, m, x := groupWriter(t, e)
	by, id := m.committer(m.waitShare(t, 1)), x.id
	x.Begin()
	x.offsets(t, by, g.offset(0, 3, ""))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if !pendingOf(t, e, g.name, id) {
		t.Fatalf("%s has offsets pending and is not told", id)
	}
	newTransactor(t, e.Second, kafka.TransactorConfig{ID: id}).init(t, false)
	eventually(t, "nothing pending", nil, func() bool { return !pendingOf(t, e, g.name, id) })
	wantCommitted(t, m, g.partition(0), -1, "")
}
