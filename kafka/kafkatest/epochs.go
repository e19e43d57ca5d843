package kafkatest

import (
	"errors"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var epochCases = []testCase{
	{"the leader's epoch ends at the end of the log", testEpochCurrent},
	{"an epoch that never was is not known", testEpochNewer},
	{"an epoch of what does not exist is an error", testEpochUnknown},
	{"after an election the old epoch ends where the new one begins", testEpochElected},
	{"an epoch in which nothing was written is known", testEpochEmpty},
	{"no batch has records of two epochs", testEpochBatches},
	{"a log that was cut and grew again tells where it was cut", testEpochTruncated},
}

// ends is an epoch and where it ends.
type ends struct {
	epoch int32
	at    int64
}

// wantEpochEnd fails unless a leader answers as it should.
func wantEpochEnd(t *testing.T, e Env, tp kafka.TopicPartition, asked int32, want ends) {
	t.Helper()
	gotEpoch, gotEnd, err := e.Driver.Admin().EpochEnd(ctx(t), tp, asked)
	if err != nil || gotEpoch != want.epoch || gotEnd != want.at {
		t.Fatalf("%s: end of epoch %d: epoch %d ends at %d (%v), want epoch %d at %d", tp, asked, gotEpoch, gotEnd, err, want.epoch, want.at)
	}
}

// epochAt reads the leader epoch of the record before a position.
func epochAt(t *testing.T, e Env, tp kafka.TopicPartition, position int64) int32 {
	t.Helper()
	in := follow(newFetcher(t, e.Second, kafka.FetcherConfig{}), tp, position-1)
	b := in.waitBatch(t, "the batch of a record", func(b kafka.Batch) bool { return b.Position >= position })
	if b.LeaderEpoch < 0 {
		t.Fatalf("%s: batch up to %d without a leader epoch", tp, b.Position)
	}
	return b.LeaderEpoch
}

// What a checkpoint notes with its position is found again.
func testEpochCurrent(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 2), Partition: 1}
	write(t, e, tp, numbered(0, 5)...)
	epoch := epochAt(t, e, tp, 3)
	wantEpochEnd(t, e, tp, epoch, ends{epoch, 5})
	write(t, e, tp, numbered(5, 2)...)
	wantEpochEnd(t, e, tp, epoch, ends{epoch, 7})
	wantEpochEnd(t, e, tp, kafka.NewestEpoch, ends{epoch, 7})
}

// Nothing can be said about it: the topic may be another one.
func testEpochNewer(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 5)...)
	wantEpochEnd(t, e, tp, epochAt(t, e, tp, 5)+1, ends{-1, -1})
	wantEpochEnd(t, e, tp, 1_000_000, ends{-1, -1})
}

func testEpochUnknown(t *testing.T, e Env) {
	name := e.topic(t, 1)
	for _, tp := range []kafka.TopicPartition{{Topic: e.name("missing")}, {Topic: name, Partition: 7}} {
		epoch, end, err := e.Driver.Admin().EpochEnd(ctx(t), tp, 0)
		if !errors.Is(err, kafka.ErrUnknownTopic) || epoch != -1 || end != -1 {
			t.Fatalf("%s: %d, %d, %v, want ErrUnknownTopic", tp, epoch, end, err)
		}
	}
}

// Positions of both epochs are in the log.
func testEpochElected(t *testing.T, e Env) {
	if e.Elect == nil {
		t.Skip("the environment cannot elect leaders")
	}
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 5)...)
	old := epochAt(t, e, tp, 5)
	e.Elect(t, tp)
	write(t, e, tp, numbered(5, 3)...)
	young := epochAt(t, e, tp, 8)
	if young <= old {
		t.Fatalf("epoch %d after an election, %d before", young, old)
	}
	wantEpochEnd(t, e, tp, old, ends{old, 5})
	wantEpochEnd(t, e, tp, young, ends{young, 8})
}

// A leader that took nothing in yet has an epoch all the same, and knows the
// ones before.
func testEpochEmpty(t *testing.T, e Env) {
	if e.Elect == nil {
		t.Skip("the environment cannot elect leaders")
	}
	e.need(t, EmptyEpochs)
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 5)...)
	old := epochAt(t, e, tp, 5)
	e.Elect(t, tp)
	e.Elect(t, tp) // no request has failed, so only asking tells of it
	wantEpochEnd(t, e, tp, kafka.NewestEpoch, ends{old + 2, 5})
	wantEpochEnd(t, e, tp, old, ends{old, 5})
	wantEpochEnd(t, e, tp, old+1, ends{old, 5}) // which nothing is left of
}

// The epoch of a batch is that of each of its records.
func testEpochBatches(t *testing.T, e Env) {
	if e.Elect == nil {
		t.Skip("the environment cannot elect leaders")
	}
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	for i := range 3 {
		if i > 0 {
			e.Elect(t, tp)
		}
		write(t, e, tp, numbered(4*i, 4)...)
	}
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	wantNumbered(t, in.waitRecords(t, 12), 0, 12)
	in.mu.Lock()
	defer in.mu.Unlock()
	from, last, epochs := int64(0), int32(-1), 0
	for _, b := range in.batches {
		if b.Position == from {
			continue
		}
		if from/4 != (b.Position-1)/4 {
			t.Fatalf("a batch from %d to %d has records of two epochs", from, b.Position)
		}
		if b.LeaderEpoch < last {
			t.Fatalf("epoch %d behind epoch %d", b.LeaderEpoch, last)
		}
		if b.LeaderEpoch > last {
			epochs++
		}
		from, last = b.Position, b.LeaderEpoch
	}
	if epochs != 3 {
		t.Fatalf("%d epochs, want 3", epochs)
	}
}

// A position that was in what was lost is told from the same number in what
// came instead.
func testEpochTruncated(t *testing.T, e Env) {
	if e.Truncate == nil {
		t.Skip("the environment cannot lose records")
	}
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 10)...)
	old := epochAt(t, e, tp, 10)
	e.Truncate(t, tp, 4, numbered(20, 10)...)
	wantEpochEnd(t, e, tp, old, ends{old, 4})
	young := epochAt(t, e, tp, 10)
	wantEpochEnd(t, e, tp, young, ends{young, 14})
	rs := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0).waitRecords(t, 14)
	wantNumbered(t, rs[:4], 0, 4)
	wantNumbered(t, rs[4:], 20, 10)
	if young <= old {
		t.Fatalf("epoch %d after the log was cut, %d before", young, old)
	}
	e.Truncate(t, tp, 2) // both are gone
	wantEpochEnd(t, e, tp, old, ends{old, 2})
	wantEpochEnd(t, e, tp, young, ends{old, 2})
}
