package kafkatest

import (
	"errors"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var fetchErrorCases = []testCase{
	{"a log that was cut below the position and grew again ends the following", testFetchCut},
	{"a log that was cut behind the position is read on", testFetchCutBehind},
	{"a position behind the end is out of range", testFetchBeyondEnd},
	{"a position below the log start is out of range", testFetchBelowStart},
	{"an unknown topic or partition ends the following", testFetchUnknown},
	{"another topic id ends the following", testFetchTopicChanged},
	{"a topic deleted while followed ends the following", testFetchDeleted},
	{"an error ends one partition only, and it can be followed again", testFetchErrorAlone},
}

// An offset that does not exist is never replaced by another one in silence:
// what was skipped would be lost.
func testFetchBeyondEnd(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 3)...)
	wantOutOfRange(t, follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 9), kafka.OffsetOutOfRangeError{
		TopicPartition: tp, Position: 9, LogStart: 0, HighWatermark: 3})
}

// Records that were deleted before they were read are reported.
func testFetchBelowStart(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 8)...)
	if err := e.Driver.Admin().DeleteRecords(ctx(t), map[kafka.TopicPartition]int64{tp: 5}); err != nil {
		t.Fatal(err)
	}
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	wantOutOfRange(t, follow(f, tp, 2), kafka.OffsetOutOfRangeError{
		TopicPartition: tp, Position: 2, LogStart: 5, HighWatermark: 8})
	wantNumbered(t, follow(f, tp, 5).waitRecords(t, 3), 5, 3)
}

func wantOutOfRange(t *testing.T, in *inbox, want kafka.OffsetOutOfRangeError) {
	t.Helper()
	err := in.waitErr(t)
	var got *kafka.OffsetOutOfRangeError
	if !errors.Is(err, kafka.ErrOffsetOutOfRange) || !errors.As(err, &got) {
		t.Fatalf("error %v, want an OffsetOutOfRangeError", err)
	}
	if *got != want {
		t.Fatalf("error %+v, want %+v", *got, want)
	}
}

// A topic that is not there is told once metadata cannot be stale any more.
func testFetchUnknown(t *testing.T, e Env) {
	there := e.topic(t, 1)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	missing := follow(f, kafka.TopicPartition{Topic: e.name("missing")}, 0)
	beyond := follow(f, kafka.TopicPartition{Topic: there, Partition: 5}, 0)
	for _, in := range []*inbox{missing, beyond} {
		if err := in.waitErr(t); !errors.Is(err, kafka.ErrUnknownTopic) {
			t.Fatalf("error %v, want ErrUnknownTopic", err)
		}
	}
}

// A store that was built from one topic must not go on with another of the
// same name.
func testFetchTopicChanged(t *testing.T, e Env) {
	e.need(t, TopicIDs)
	name := e.topic(t, 1)
	tp := kafka.TopicPartition{Topic: name}
	old := topicID(t, e, name)
	recreate(t, e, name)
	write(t, e, tp, numbered(0, 3)...)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	in := newInbox()
	f.Follow(kafka.Follow{TopicPartition: tp, TopicID: old, Deliver: in.deliver})
	if err := in.waitErr(t); !errors.Is(err, kafka.ErrTopicChanged) {
		t.Fatalf("error %v, want ErrTopicChanged", err)
	}
	if n := in.count(); n != 0 {
		t.Fatalf("%d records of the other topic were delivered", n)
	}
	good := newInbox()
	f.Follow(kafka.Follow{TopicPartition: tp, TopicID: topicID(t, e, name), Deliver: good.deliver})
	wantNumbered(t, good.waitRecords(t, 3), 0, 3)
}

// Deletion under a running follower is an error, not an eternal silence.
func testFetchDeleted(t *testing.T, e Env) {
	name := e.topic(t, 1)
	tp := kafka.TopicPartition{Topic: name}
	write(t, e, tp, numbered(0, 3)...)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	in := newInbox()
	f.Follow(kafka.Follow{TopicPartition: tp, TopicID: topicID(t, e, name), Deliver: in.deliver})
	in.waitRecords(t, 3)
	if err := e.Second.Admin().DeleteTopics(ctx(t), name); err != nil {
		t.Fatal(err)
	}
	if err := in.waitErr(t); !errors.Is(err, kafka.ErrUnknownTopic) && !errors.Is(err, kafka.ErrTopicChanged) {
		t.Fatalf("error %v, want ErrUnknownTopic or ErrTopicChanged", err)
	}
}

// Errors are per partition.
func testFetchErrorAlone(t *testing.T, e Env) {
	topic := e.topic(t, 2)
	bad, good := kafka.TopicPartition{Topic: topic}, kafka.TopicPartition{Topic: topic, Partition: 1}
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	in, failed := follow(f, good, 0), follow(f, bad, 100)
	failed.waitErr(t)
	write(t, e, good, numbered(0, 5)...)
	wantNumbered(t, in.waitRecords(t, 5), 0, 5)
	again := follow(f, bad, 0)
	write(t, e, bad, numbered(0, 5)...)
	wantNumbered(t, again.waitRecords(t, 5), 0, 5)
}

// tenRead returns a partition that can lose records, and a reader that has
// read the ten that it holds.
func tenRead(t *testing.T, e Env) (kafka.TopicPartition, *inbox) {
	t.Helper()
	if e.Truncate == nil {
		t.Skip("the environment cannot lose records")
	}
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 10)...)
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	in.waitRecords(t, 10)
	return tp, in
}

// The position exists, but what was delivered before it does not.
func testFetchCut(t *testing.T, e Env) {
	tp, in := tenRead(t, e)
	e.Truncate(t, tp, 4, numbered(20, 20)...)
	err := in.waitErr(t)
	var cut *kafka.TruncatedError
	if !errors.As(err, &cut) || cut.TopicPartition != tp || cut.Position != 10 || cut.End != 4 || cut.HighWatermark != 24 {
		t.Fatalf("error %v, want a TruncatedError at 4", err)
	}
	if n := in.count(); n != 10 {
		t.Fatalf("%d records, want the 10 of before", n)
	}
	var out *kafka.OffsetOutOfRangeError
	if !errors.Is(err, kafka.ErrOffsetOutOfRange) || !errors.As(err, &out) || out.LogStart != 0 {
		t.Fatalf("error %v is not one of an offset out of range", err)
	}
}

// A leader that has everything that was read is like the one before.
func testFetchCutBehind(t *testing.T, e Env) {
	tp, in := tenRead(t, e)
	e.Truncate(t, tp, 10, numbered(10, 1)...)
	in.waitRecords(t, 11)
	e.Truncate(t, tp, 11, numbered(11, 4)...)
	wantNumbered(t, in.waitRecords(t, 15), 0, 15)
}
