package kafkatest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var transactorCases = []testCase{
	{"what is committed is read, position and marks move over the marker", testTxnCommit},
	{"what is aborted is hidden, and may be written again", testTxnAbort},
	{"records of an open transaction wait, and so do those behind it", testTxnOpen},
	{"partitions of two topics end together", testTxnTwoTopics},
	{"order is the order of Produce", testTxnOrder},
	{"an empty transaction leaves nothing", testTxnEmpty},
	{"after an end nothing is open", testTxnEndTwice},
	{"transactions in a row leave no doubt", testTxnMany},
	{"a record too large fails alone, the transaction must be aborted", testTxnTooLarge},
	{"an unknown topic must be aborted", testTxnUnknownTopic},
	{"nothing is written outside a transaction", testTxnOutside},
	{"close fails what comes later", testTxnClose},
}

// transactor is a Transactor under test with the fate of its records.
type transactor struct {
	kafka.Transactor
	id  string
	out *outbox
}

// newTransactor returns a transactor of a transactional id that is not
// initialised. It is closed with the test.
func newTransactor(t *testing.T, d kafka.Driver, cfg kafka.TransactorConfig) *transactor {
	t.Helper()
	x, err := d.NewTransactor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("close transactor: %v", err)
		}
	})
	return &transactor{Transactor: x, id: cfg.ID, out: &outbox{p: x, signal: make(chan struct{}, 1)}}
}

// writer returns an initialised transactor of an id of its own.
func writer(t *testing.T, e Env) *transactor {
	t.Helper()
	x := newTransactor(t, e.Driver, kafka.TransactorConfig{ID: e.name("txn")})
	x.init(t, false)
	return x
}

func (x *transactor) init(t *testing.T, own bool) {
	t.Helper()
	if err := x.Init(ctx(t), own); err != nil {
		t.Fatalf("init (own %t): %v", own, err)
	}
}

func (x *transactor) end(t *testing.T, commit bool) {
	t.Helper()
	if err := x.End(ctx(t), commit); err != nil {
		t.Fatalf("end (commit %t): %v", commit, err)
	}
	if x.InDoubt() {
		t.Fatal("in doubt although everything was answered")
	}
}

// write writes within the open transaction and waits for the answers.
func (x *transactor) write(t *testing.T, tp kafka.TopicPartition, records ...kafka.Record) []int64 {
	t.Helper()
	return x.out.must(t, x.out.produce(tp, records...))
}

// commit writes in a transaction of its own.
func (x *transactor) commit(t *testing.T, tp kafka.TopicPartition, records ...kafka.Record) {
	t.Helper()
	x.Begin()
	x.write(t, tp, records...)
	x.end(t, true)
}

// read follows a partition from its beginning.
func read(t *testing.T, e Env, isolation kafka.Isolation, tp kafka.TopicPartition) *inbox {
	t.Helper()
	return follow(newFetcher(t, e.Second, kafka.FetcherConfig{Isolation: isolation}), tp, 0)
}

// waitMarks waits until a reader stands at a position with a last stable
// offset.
func waitMarks(t *testing.T, in *inbox, what string, position, stable int64) {
	t.Helper()
	in.waitBatch(t, what, func(b kafka.Batch) bool { return b.Position == position && b.LastStable == stable })
}

// A marker takes an offset: who waits for its position to reach the high
// watermark must get there.
func testTxnCommit(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	in := read(t, e, kafka.ReadCommitted, tp)
	x := writer(t, e)
	x.Begin()
	x.write(t, tp, numbered(0, 3)...)
	x.write(t, tp, numbered(3, 2)...)
	x.end(t, true)
	wantNumbered(t, in.waitRecords(t, 5), 0, 5)
	b := in.waitBatch(t, "the position after the marker", func(b kafka.Batch) bool { return b.Position == 6 })
	if b.HighWatermark != 6 || b.LastStable != 6 || !b.AtEnd(true) {
		t.Fatalf("batch at the end %+v", b)
	}
}

// An aborted epoch is written again as it is: readers of committed records
// see it once.
func testTxnAbort(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	committed, all := read(t, e, kafka.ReadCommitted, tp), read(t, e, kafka.ReadUncommitted, tp)
	x := writer(t, e)
	x.Begin()
	x.write(t, tp, numbered(0, 3)...)
	x.end(t, false)
	committed.waitBatch(t, "the position after the abort", func(b kafka.Batch) bool { return b.Position == 4 && b.AtEnd(true) })
	x.commit(t, tp, numbered(0, 3)...)
	rs := committed.waitRecords(t, 3)
	wantNumbered(t, rs, 0, 3)
	if rs[0].Offset != 4 {
		t.Fatalf("first committed offset %d, want 4", rs[0].Offset)
	}
	all.wait(t, "all records", func() bool { return len(all.records) >= 6 })
	wantNumbered(t, all.records[:3], 0, 3)
	wantNumbered(t, all.records[3:], 0, 3)
}

// The last stable offset is what a reader of committed records waits at; what
// others write meanwhile lies behind it.
func testTxnOpen(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 2)...)
	committed, all := read(t, e, kafka.ReadCommitted, tp), read(t, e, kafka.ReadUncommitted, tp)
	x := writer(t, e)
	x.Begin()
	x.write(t, tp, numbered(2, 2)...)
	write(t, e, tp, numbered(4, 1)...)
	wantNumbered(t, all.waitRecords(t, 5), 0, 5)
	fresh := read(t, e, kafka.ReadCommitted, tp)
	b := fresh.waitBatch(t, "a position at the last stable offset", func(b kafka.Batch) bool { return b.Position == 2 })
	if b.LastStable != 2 || !b.AtEnd(true) || b.AtEnd(false) {
		t.Fatalf("batch at the last stable offset %+v", b)
	}
	if n := committed.count(); n != 2 {
		t.Fatalf("%d records read while a transaction is open, want 2", n)
	}
	got, err := e.Second.Admin().Offsets(ctx(t), kafka.LastStable, tp)
	if err != nil || got[tp] != 2 {
		t.Fatalf("last stable offset %d, %v, want 2", got[tp], err)
	}
	x.end(t, true)
	wantNumbered(t, committed.waitRecords(t, 5), 0, 5)
	waitMarks(t, committed, "the end", 6, 6)
}

// One transaction covers any partitions; one that was written to before it is
// part of it again.
func testTxnTwoTopics(t *testing.T, e Env) {
	a, b := e.topic(t, 2), e.topic(t, 1)
	tps := []kafka.TopicPartition{{Topic: a}, {Topic: a, Partition: 1}, {Topic: b}}
	var ins []*inbox
	for _, tp := range tps {
		ins = append(ins, read(t, e, kafka.ReadCommitted, tp))
	}
	x := writer(t, e)
	for i, commit := range []bool{true, false, true} {
		x.Begin()
		for _, tp := range tps {
			x.out.produce(tp, numbered(i*2, 2)...)
		}
		if !commit {
			x.out.wait(t) // an abort gives up what is queued
		}
		x.end(t, commit)
	}
	for _, in := range ins {
		rs := in.waitRecords(t, 4)
		wantNumbered(t, rs[:2], 0, 2)
		wantNumbered(t, rs[2:], 4, 2)
		waitMarks(t, in, "the end", 9, 9)
	}
}

// End waits for all that was produced; nobody else has to.
func testTxnOrder(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := newTransactor(t, e.Driver, kafka.TransactorConfig{ID: e.name("txn"), Compression: kafka.Zstd, BatchBytes: 2000})
	x.init(t, false)
	x.Begin()
	for i := range 200 {
		x.out.produce(tp, numbered(i*5, 5)...)
	}
	x.end(t, true)
	for _, s := range x.out.sent {
		if s.covered != 5 {
			t.Fatal("End returned before all records had their fate")
		}
	}
	x.out.wait(t)
	wantNumbered(t, read(t, e, kafka.ReadCommitted, tp).waitRecords(t, 1000), 0, 1000)
}

// What wrote nothing sends nothing: no marker, no error from a coordinator
// that knows of no transaction.
func testTxnEmpty(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := writer(t, e)
	for _, commit := range []bool{true, false, true} {
		x.Begin()
		x.end(t, commit)
	}
	x.commit(t, tp, numbered(0, 1)...)
	x.Begin()
	x.end(t, false)
	in := read(t, e, kafka.ReadUncommitted, tp)
	wantNumbered(t, in.waitRecords(t, 1), 0, 1)
	waitMarks(t, in, "one record and one marker", 2, 2)
}

// There is nothing left to abort; but whoever commits what is not open would
// take it for committed.
func testTxnEndTwice(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := writer(t, e)
	for i, commit := range []bool{true, false} {
		x.Begin()
		x.write(t, tp, numbered(i, 1)...)
		x.end(t, commit)
		x.end(t, false)
		if err := x.End(ctx(t), true); !errors.Is(err, kafka.ErrAbortable) {
			t.Fatalf("commit without a transaction: %v, want ErrAbortable", err)
		}
	}
	x.commit(t, tp, numbered(1, 1)...)
	in := read(t, e, kafka.ReadCommitted, tp)
	rs := in.waitRecords(t, 2)
	if string(rs[0].Key) != "k0" || string(rs[1].Key) != "k1" || rs[1].Offset != 4 {
		t.Fatalf("records %+v", rs)
	}
	waitMarks(t, in, "three markers", 6, 6)
}

// The next transaction may begin at once, although the one before is still
// being ended on the brokers.
func testTxnMany(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := writer(t, e)
	for i := range 30 {
		x.commit(t, tp, numbered(i, 1)...)
	}
	in := read(t, e, kafka.ReadCommitted, tp)
	in.wait(t, "30 records", func() bool { return len(in.records) >= 30 })
	for i, r := range in.records {
		if r.Offset != int64(2*i) || string(r.Value) != string(numbered(i, 1)[0].Value) {
			t.Fatalf("record %d is %s at offset %d", i, r.Value, r.Offset)
		}
	}
}

// A run that the broker refuses is told apart from what concerns all; a part
// of a transaction is never committed.
func testTxnTooLarge(t *testing.T, e Env) {
	e.need(t, MessageLimit)
	tp := kafka.TopicPartition{Topic: e.topic(t, 1, "max.message.bytes", "20000")}
	x := newTransactor(t, e.Driver, kafka.TransactorConfig{ID: e.name("txn"), Compression: kafka.NoCompression})
	x.init(t, false)
	x.Begin()
	rs := numbered(0, 10)
	rs[4].Value = bytes.Repeat([]byte("x"), 40_000)
	s := x.out.produce(tp, rs...)
	x.out.wait(t)
	for _, r := range s.runs {
		if r.From == 4 && (r.To != 5 || !errors.Is(r.Err, kafka.ErrTooLarge)) {
			t.Fatalf("run of the large record %+v, want it alone with ErrTooLarge", r)
		}
		if r.From < 4 && r.To > 4 {
			t.Fatalf("run [%d,%d) holds the large record: %v", r.From, r.To, r.Err)
		}
	}
	if err := x.End(ctx(t), true); !errors.Is(err, kafka.ErrAbortable) {
		t.Fatalf("commit: %v, want ErrAbortable", err)
	}
	x.end(t, false)
	x.commit(t, tp, numbered(0, 4)...)
	wantNumbered(t, read(t, e, kafka.ReadCommitted, tp).waitRecords(t, 4), 0, 4)
}

// A topic that is gone fails what was produced to it, and the transaction
// with it; the id stays usable.
func testTxnUnknownTopic(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := writer(t, e)
	x.Begin()
	x.write(t, tp, numbered(0, 1)...)
	s := x.out.produce(kafka.TopicPartition{Topic: e.name("nowhere")}, numbered(0, 1)...)
	x.out.wait(t)
	if err := s.runs[0].Err; !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Fatalf("error %v, want ErrUnknownTopic", err)
	}
	if err := x.End(ctx(t), true); !errors.Is(err, kafka.ErrAbortable) {
		t.Fatalf("commit: %v, want ErrAbortable", err)
	}
	x.end(t, false)
	x.commit(t, tp, numbered(0, 1)...)
	wantNumbered(t, read(t, e, kafka.ReadCommitted, tp).waitRecords(t, 1), 0, 1)
}

// A record that is produced when no transaction is open would be nobody's.
func testTxnOutside(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := writer(t, e)
	s := x.out.produce(tp, numbered(0, 1)...)
	x.out.wait(t)
	if s.runs[0].Err == nil {
		t.Fatal("written before Begin")
	}
	x.commit(t, tp, numbered(0, 1)...)
	late := x.out.produce(tp, numbered(1, 1)...)
	x.out.wait(t)
	if late.runs[0].Err == nil {
		t.Fatal("written after End")
	}
	in := read(t, e, kafka.ReadUncommitted, tp)
	wantNumbered(t, in.waitRecords(t, 1), 0, 1)
	waitMarks(t, in, "one record and one marker", 2, 2)
}

// Nothing hangs on a transactor that is gone, and its transaction stays open:
// only the id's next owner, or time, ends it.
func testTxnClose(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	x := writer(t, e)
	x.Begin()
	x.write(t, tp, numbered(0, 1)...)
	for range 2 {
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := x.out.produce(tp, numbered(1, 1)...)
	x.out.wait(t)
	if err := s.runs[0].Err; !errors.Is(err, kafka.ErrClosed) {
		t.Fatalf("produce after close: %v, want ErrClosed", err)
	}
	for what, err := range map[string]error{"end": x.End(ctx(t), true), "init": x.Init(ctx(t), true)} {
		if !errors.Is(err, kafka.ErrClosed) {
			t.Fatalf("%s after close: %v, want ErrClosed", what, err)
		}
	}
	got, err := e.Second.Admin().Offsets(ctx(t), kafka.LastStable, tp)
	if err != nil || got[tp] != 0 {
		t.Fatalf("last stable offset %d, %v, want 0", got[tp], err)
	}
}
