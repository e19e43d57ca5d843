package kafkatest

import (
	"bytes"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var fetchCases = []testCase{
	{"the first answer comes for an empty partition too", testFetchEmptyFirst},
	{"records from a position on, with positions and marks", testFetchPosition},
	{"what is written later arrives", testFetchLater},
	{"a record larger than the budget is delivered", testFetchBig},
	{"unreleased bytes stop a partition, release goes on", testFetchBudget},
	{"a slow partition does not stop others", testFetchSlowPartition},
	{"the total budget stops all, release goes on", testFetchTotal},
	{"the position moves over control records", testFetchControl},
	{"the position moves over compacted records", testFetchCompacted},
	{"a moved log start is told", testFetchLogStart},
	{"records stay valid after release", testFetchRecordsKept},
}

// A replica that follows an empty log must learn that it is at its end:
// without a first answer it would wait for ever.
func testFetchEmptyFirst(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	in := follow(f, tp, 0)
	b := in.waitBatch(t, "a first answer", func(kafka.Batch) bool { return true })
	if b.Err != nil || b.Position != 0 || b.HighWatermark != 0 || b.LastStable != 0 || b.LogStart != 0 || !b.AtEnd(true) || !b.AtEnd(false) {
		t.Fatalf("first answer %+v", b)
	}
	if b.TopicPartition != tp {
		t.Fatalf("batch of %s, want %s", b.TopicPartition, tp)
	}
	// Also at the end of a log that is not empty.
	write(t, e, tp, numbered(0, 3)...)
	again := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 3)
	b = again.waitBatch(t, "a first answer at the end", func(kafka.Batch) bool { return true })
	if b.Position != 3 || b.HighWatermark != 3 || !b.AtEnd(true) {
		t.Fatalf("first answer at the end %+v", b)
	}
}

// No record below the position asked for, although brokers return whole
// batches; the position after is the next offset.
func testFetchPosition(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 10)...)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	in := follow(f, tp, 4)
	rs := in.waitRecords(t, 6)
	wantNumbered(t, rs, 4, 6)
	if rs[0].Offset != 4 {
		t.Fatalf("first offset %d, want 4", rs[0].Offset)
	}
	b := in.waitBatch(t, "position 10", func(b kafka.Batch) bool { return b.Position == 10 })
	if b.HighWatermark != 10 || b.LastStable != 10 || b.LogStart != 0 || !b.AtEnd(true) {
		t.Fatalf("batch at the end %+v", b)
	}
}

// Following goes on at the end of the log.
func testFetchLater(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	for i := range 5 {
		write(t, e, tp, numbered(i*3, 3)...)
		wantNumbered(t, in.waitRecords(t, i*3+3), 0, i*3+3)
	}
}

// A single batch may exceed every budget, or it could never be read.
func testFetchBig(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	big := bytes.Repeat([]byte("0123456789"), 90_000)
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{Compression: kafka.NoCompression})
	o.must(t, o.produce(tp, numbered(0, 1)...))
	o.must(t, o.produce(tp, kafka.Record{Key: []byte("big"), Value: big}))
	o.must(t, o.produce(tp, numbered(2, 1)...))
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{PartitionBytes: 10_000, TotalBytes: 20_000}), tp, 0)
	rs := in.waitRecords(t, 3)
	if !bytes.Equal(rs[1].Value, big) {
		t.Fatal("the big value changed")
	}
}

// writeBlocks writes n batches of one 10,000-byte record each: records
// numbered by key, incompressible to nothing.
func writeBlocks(t *testing.T, e Env, tp kafka.TopicPartition, n int) {
	t.Helper()
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{Compression: kafka.NoCompression, BatchBytes: 5_000})
	for _, r := range numbered(0, n) {
		r.Headers = []kafka.Header{{Key: "pad", Value: bytes.Repeat([]byte{1}, 10_000)}}
		o.produce(tp, r)
	}
	o.wait(t)
}

// More is fetched only while the unreleased bytes of a partition are below
// its budget; with the release it goes on where it stood.
func testFetchBudget(t *testing.T, e Env) {
	const budget = 50_000
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	writeBlocks(t, e, tp, 40)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{PartitionBytes: budget})
	in := newInbox()
	in.hold = true
	f.Follow(kafka.Follow{TopicPartition: tp, Deliver: in.deliver})
	in.wait(t, "the budget used up", func() bool { return heldBytes(in) >= budget })
	in.mu.Lock()
	held := in.held[:len(in.held)-1]
	before := 0
	for _, b := range held {
		before += b.Bytes
	}
	got := len(in.records)
	in.mu.Unlock()
	if before >= budget || got >= 40 {
		t.Fatalf("%d records delivered; %d bytes were unreleased before the last batch, budget %d", got, before, budget)
	}
	in.setHold(false)
	wantNumbered(t, in.waitRecords(t, 40), 0, 40)
}

// heldBytes is called with mu held.
func heldBytes(in *inbox) int {
	n := 0
	for _, b := range in.held {
		n += b.Bytes
	}
	return n
}

// One partition whose receiver is slow must not delay any other: a long
// callback in one task would stop all.
func testFetchSlowPartition(t *testing.T, e Env) {
	topic := e.topic(t, 2)
	slow, fast := kafka.TopicPartition{Topic: topic}, kafka.TopicPartition{Topic: topic, Partition: 1}
	writeBlocks(t, e, slow, 20)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{PartitionBytes: 30_000})
	stuck := newInbox()
	stuck.hold = true
	f.Follow(kafka.Follow{TopicPartition: slow, Deliver: stuck.deliver})
	stuck.wait(t, "the slow partition's budget used up", func() bool { return heldBytes(stuck) >= 30_000 })
	in := follow(f, fast, 0)
	for i := range 10 {
		write(t, e, fast, numbered(i, 1)...)
		in.waitRecords(t, i+1)
	}
	if n := stuck.count(); n >= 20 {
		t.Fatalf("the slow partition got %d records beyond its budget", n)
	}
	stuck.setHold(false)
	wantNumbered(t, stuck.waitRecords(t, 20), 0, 20)
}

// The total bounds memory over any number of partitions; nothing is lost
// when it was reached.
func testFetchTotal(t *testing.T, e Env) {
	topic := e.topic(t, 4)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{TotalBytes: 60_000, PartitionBytes: 40_000})
	ins := make([]*inbox, 4)
	for p := range ins {
		tp := kafka.TopicPartition{Topic: topic, Partition: int32(p)}
		writeBlocks(t, e, tp, 20)
		ins[p] = newInbox()
		ins[p].hold = true
	}
	for p, in := range ins {
		f.Follow(kafka.Follow{TopicPartition: kafka.TopicPartition{Topic: topic, Partition: int32(p)}, Deliver: in.deliver})
	}
	all := func() (n int) {
		for _, in := range ins {
			in.mu.Lock()
			n += heldBytes(in)
			in.mu.Unlock()
		}
		return n
	}
	eventually(t, "the total budget used up", nil, func() bool { return all() >= 60_000 })
	// Somebody else reads it all: time enough for what should not come.
	other := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	for p := range ins {
		follow(other, kafka.TopicPartition{Topic: topic, Partition: int32(p)}, 0).waitRecords(t, 20)
	}
	if n := all(); n >= 4*40_000 {
		t.Fatalf("%d bytes are unreleased: what the partitions' budgets allow, and not the total of 60,000", n)
	}
	for _, in := range ins {
		in.setHold(false)
	}
	for _, in := range ins {
		wantNumbered(t, in.waitRecords(t, 20), 0, 20)
	}
}

// A log that ends in control records has no last record at its end: only the
// position tells that everything was read.
func testFetchControl(t *testing.T, e Env) {
	if e.Control == nil {
		t.Skip("the environment cannot write control records")
	}
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 3)...)
	e.Control(t, tp)
	end, err := e.Driver.Admin().Offsets(ctx(t), kafka.HighWatermark, tp)
	if err != nil {
		t.Fatal(err)
	}
	if end[tp] < 4 {
		t.Fatalf("high watermark %d: no control record was written", end[tp])
	}
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	b := in.waitBatch(t, "position behind the control record", func(b kafka.Batch) bool { return b.Position == end[tp] })
	if !b.AtEnd(true) {
		t.Fatalf("batch %+v is not at the end", b)
	}
	for _, r := range in.records {
		if len(r.Key) > 0 && r.Key[0] != 'k' {
			t.Fatalf("a control record was delivered at offset %d", r.Offset)
		}
	}
}

// Compaction leaves gaps. Reading starts in one and ends behind one.
func testFetchCompacted(t *testing.T, e Env) {
	if e.Compact == nil {
		t.Skip("the environment cannot run the log cleaner")
	}
	tp := kafka.TopicPartition{Topic: e.topic(t, 1, "cleanup.policy", "compact", "segment.ms", "100", "min.cleanable.dirty.ratio", "0.01")}
	for range 5 {
		write(t, e, tp, numbered(0, 4)...)
	}
	e.Compact(t, tp.Topic)
	start, err := e.Driver.Admin().Offsets(ctx(t), kafka.LogStart, tp)
	if err != nil {
		t.Fatal(err)
	}
	if _, lacks := e.Lacks[StableLogStart]; !lacks && start[tp] != 0 {
		t.Fatalf("compaction moved the log start to %d", start[tp])
	}
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, max(2, start[tp]))
	in.waitBatch(t, "the end of a compacted log", func(b kafka.Batch) bool { return b.Position == 20 && b.AtEnd(true) })
	last := map[string]int64{}
	for _, r := range in.records {
		last[string(r.Key)] = r.Offset
	}
	if len(last) != 4 {
		t.Fatalf("keys after compaction: %v, want four", last)
	}
}

// Log start is one of the marks of a batch, and a change of it is told
// although no record comes: a checkpoint is judged by it.
func testFetchLogStart(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 10)...)
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	in.waitRecords(t, 10)
	if err := e.Second.Admin().DeleteRecords(ctx(t), map[kafka.TopicPartition]int64{tp: 5}); err != nil {
		t.Fatal(err)
	}
	in.waitBatch(t, "log start 5", func(b kafka.Batch) bool { return b.LogStart == 5 && b.Position == 10 })
}

// Release concerns the budget only: rows that are kept must not change.
func testFetchRecordsKept(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 100)...)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{PartitionBytes: 1000})
	kept := follow(f, tp, 0).waitRecords(t, 100)
	again := follow(f, tp, 0)
	again.waitRecords(t, 100)
	wantNumbered(t, kept, 0, 100)
}
