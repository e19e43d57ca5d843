package kafkatest

import (
	"sync/atomic"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var followCases = []testCase{
	{"nothing is delivered after Unfollow", testUnfollow},
	{"following again replaces the old terms", testFollowReplaces},
	{"unreleased batches survive Unfollow", testUnfollowHeld},
	{"many partitions at once", testFollowMany},
	{"two fetchers do not share positions", testFollowTwo},
	{"close ends deliveries", testFetcherClose},
}

// When Unfollow has returned the task is handed over: a batch that came later
// would be processed by nobody, or twice.
func testUnfollow(t *testing.T, e Env) {
	topic := e.topic(t, 2)
	gone, stays := kafka.TopicPartition{Topic: topic}, kafka.TopicPartition{Topic: topic, Partition: 1}
	write(t, e, gone, numbered(0, 5)...)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	a, b := follow(f, gone, 0), follow(f, stays, 0)
	a.waitRecords(t, 5)
	f.Unfollow(gone)
	write(t, e, gone, numbered(5, 5)...)
	write(t, e, stays, numbered(0, 5)...)
	b.waitRecords(t, 5) // a round trip later than the write to gone
	if n := a.count(); n != 5 {
		t.Fatalf("%d records, 5 of them before Unfollow", n)
	}
	again := follow(f, gone, 5)
	wantNumbered(t, again.waitRecords(t, 5), 5, 5)
	f.Unfollow(gone, stays, kafka.TopicPartition{Topic: "never-followed"})
}

// A second Follow is a seek: what the first one asked for is not delivered
// any more, to nobody.
func testFollowReplaces(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 50)...)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	for i := range 20 {
		var replaced atomic.Bool
		var late atomic.Int64
		f.Follow(kafka.Follow{TopicPartition: tp, Position: 0, Deliver: func(b *kafka.Batch) {
			if replaced.Load() {
				late.Add(1)
			}
			go b.Release() // ends at once
		}})
		in := newInbox()
		f.Follow(kafka.Follow{TopicPartition: tp, Position: 40, Deliver: in.deliver})
		replaced.Store(true)
		if rs := in.waitRecords(t, 10); rs[0].Offset != 40 {
			t.Fatalf("round %d: first offset %d, want 40", i, rs[0].Offset)
		}
		if late.Load() != 0 {
			t.Fatalf("round %d: delivered under terms that were replaced", i)
		}
	}
}

// A batch belongs to its receiver until it is released, also when the
// partition is not followed any more; its bytes do not stop a new follower of
// the partition.
func testUnfollowHeld(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	writeBlocks(t, e, tp, 10)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{PartitionBytes: 20_000, TotalBytes: 60_000})
	in := newInbox()
	in.hold = true
	f.Follow(kafka.Follow{TopicPartition: tp, Deliver: in.deliver})
	in.wait(t, "the budget used up", func() bool { return heldBytes(in) >= 20_000 })
	f.Unfollow(tp)
	in.mu.Lock()
	first := in.held[0]
	in.mu.Unlock()
	again := follow(f, tp, 0)
	wantNumbered(t, again.waitRecords(t, 10), 0, 10)
	wantKeys := numbered(0, len(first.Records))
	for i, r := range first.Records {
		if string(r.Key) != string(wantKeys[i].Key) {
			t.Fatalf("a held batch changed: %s", r.Key)
		}
	}
	in.setHold(false)
}

// Budgets and answers are kept apart however many partitions there are.
func testFollowMany(t *testing.T, e Env) {
	const partitions = 50
	topic := e.topic(t, partitions)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	ins := make([]*inbox, partitions)
	for p := range ins {
		ins[p] = follow(f, kafka.TopicPartition{Topic: topic, Partition: int32(p)}, 0)
	}
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{})
	for p := range ins {
		o.produce(kafka.TopicPartition{Topic: topic, Partition: int32(p)}, numbered(p*100, 10)...)
	}
	o.wait(t)
	for p, in := range ins {
		wantNumbered(t, in.waitRecords(t, 10), p*100, 10)
	}
}

// Positions are the follower's, not the log's.
func testFollowTwo(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 10)...)
	a := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	b := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 7)
	c := follow(newFetcher(t, e.Second, kafka.FetcherConfig{Isolation: kafka.ReadUncommitted}), tp, 2)
	wantNumbered(t, a.waitRecords(t, 10), 0, 10)
	wantNumbered(t, b.waitRecords(t, 3), 7, 3)
	wantNumbered(t, c.waitRecords(t, 8), 2, 8)
}

// Close waits: afterwards Deliver is not running and does not start.
func testFetcherClose(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 5)...)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	in := follow(f, tp, 0)
	in.waitRecords(t, 5)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, e, tp, numbered(5, 5)...)
	other := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	other.waitRecords(t, 10)
	if n := in.count(); n != 5 {
		t.Fatalf("%d records, 5 of them before Close", n)
	}
	f.Follow(kafka.Follow{TopicPartition: tp, Deliver: func(*kafka.Batch) { t.Error("delivered after Close") }})
	if err := f.Close(); err != nil {
		t.Fatalf("second close: %v", err)
	}
}
