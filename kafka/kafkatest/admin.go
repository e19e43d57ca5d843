package kafkatest

import (
	"errors"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var adminCases = []testCase{
	{"topics that do not exist are left out and not created", testAdminMissing},
	{"a created topic is as it was asked for", testAdminCreate},
	{"creating reports each topic's own error", testAdminCreateExisting},
	{"an illegal topic name is refused", testAdminInvalidName},
	{"partitions can be added", testAdminCreatePartitions},
	{"a topic created again has another id", testAdminRecreate},
	{"configs are the effective ones", testAdminConfigs},
	{"offsets answers every mark", testAdminOffsets},
	{"offsets of what does not exist is an error", testAdminOffsetsUnknown},
	{"deleting records moves the log start only", testAdminDeleteRecords},
	{"an unknown group is dead and empty", testAdminUnknownGroup},
}

// Asking for a topic must not create it, even where brokers create topics
// automatically: a typing error in a name would otherwise become a topic.
func testAdminMissing(t *testing.T, e Env) {
	a, there, missing := e.Driver.Admin(), e.topic(t, 1), e.name("missing")
	for range 2 {
		got, err := a.Topics(ctx(t), there, missing)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := got[missing]; ok || len(got) != 1 {
			t.Fatalf("topics %v, want only %s", got, there)
		}
	}
}

// CreateTopics returns when the topic can be used; Topics tells what was
// asked for.
func testAdminCreate(t *testing.T, e Env) {
	name := e.topic(t, 5)
	got, err := e.Second.Admin().Topics(ctx(t), name)
	if err != nil {
		t.Fatal(err)
	}
	topic, ok := got[name]
	if !ok || topic.Name != name || topic.Partitions != 5 || topic.Replicas < 1 {
		t.Fatalf("topic %+v, want 5 partitions and at least one replica", topic)
	}
	if _, lacks := e.Lacks[TopicIDs]; !lacks && topic.ID.IsZero() {
		t.Fatal("topic has no id")
	}
	for p := range int32(5) {
		tp := kafka.TopicPartition{Topic: name, Partition: p}
		if got := write(t, e, tp, numbered(0, 1)...); got[0] != 0 {
			t.Fatalf("%s: first record at offset %d", tp, got[0])
		}
	}
}

// One bad topic in a call does not stop the others, and its error can be
// told from the rest. Partitions that an existing topic does not have are not
// waited for.
func testAdminCreateExisting(t *testing.T, e Env) {
	a, old, fresh := e.Driver.Admin(), e.topic(t, 1), e.name("fresh")
	err := a.CreateTopics(ctx(t), kafka.TopicSpec{Name: old, Partitions: 3}, kafka.TopicSpec{Name: fresh, Partitions: 2})
	if !errors.Is(err, kafka.ErrTopicExists) {
		t.Fatalf("error %v, want ErrTopicExists", err)
	}
	eventually(t, "the other topic exists", nil, func() bool {
		got, err := a.Topics(ctx(t), fresh)
		return err == nil && got[fresh].Partitions == 2
	})
}

// What the broker refuses for good is typed, not retried.
func testAdminInvalidName(t *testing.T, e Env) {
	e.need(t, TopicNameChecks)
	err := e.Driver.Admin().CreateTopics(ctx(t), kafka.TopicSpec{Name: "not/legal", Partitions: 1})
	if !errors.Is(err, kafka.ErrInvalidTopic) {
		t.Fatalf("error %v, want ErrInvalidTopic", err)
	}
}

// Partitions added while things run become visible.
func testAdminCreatePartitions(t *testing.T, e Env) {
	a, name := e.Driver.Admin(), e.topic(t, 2)
	if err := a.CreatePartitions(ctx(t), name, 4); err != nil {
		t.Fatal(err)
	}
	eventually(t, "four partitions", nil, func() bool {
		got, err := a.Topics(ctx(t), name)
		return err == nil && got[name].Partitions == 4
	})
	write(t, e, kafka.TopicPartition{Topic: name, Partition: 3}, numbered(0, 1)...)
}

// The id tells a topic from another one of the same name that came later.
func testAdminRecreate(t *testing.T, e Env) {
	e.need(t, TopicIDs)
	a, name := e.Driver.Admin(), e.topic(t, 1)
	before := topicID(t, e, name)
	recreate(t, e, name)
	after := topicID(t, e, name)
	if before == after || after.IsZero() {
		t.Fatalf("id %s before and %s after", before, after)
	}
	got, err := a.Offsets(ctx(t), kafka.HighWatermark, kafka.TopicPartition{Topic: name})
	if err != nil || got[kafka.TopicPartition{Topic: name}] != 0 {
		t.Fatalf("offsets %v, %v, want an empty log", got, err)
	}
}

func topicID(t *testing.T, e Env, name string) kafka.TopicID {
	t.Helper()
	got, err := e.Driver.Admin().Topics(ctx(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return got[name].ID
}

// recreate deletes a topic and creates it again. Deletion takes its time on a
// real broker, during which the name is taken.
func recreate(t *testing.T, e Env, name string) {
	t.Helper()
	a, old := e.Driver.Admin(), topicID(t, e, name)
	if err := a.DeleteTopics(ctx(t), name); err != nil {
		t.Fatal(err)
	}
	eventually(t, "topic created again", nil, func() bool {
		err := a.CreateTopics(ctx(t), kafka.TopicSpec{Name: name, Partitions: 1})
		if err != nil && !errors.Is(err, kafka.ErrTopicExists) {
			t.Fatal(err)
		}
		return err == nil
	})
	eventually(t, "the new topic is seen", nil, func() bool {
		got, err := a.Topics(ctx(t), name)
		return err == nil && got[name].Partitions == 1 && (old.IsZero() || got[name].ID != old)
	})
}

// Settings given at creation come back, and so do defaults.
func testAdminConfigs(t *testing.T, e Env) {
	name := e.topic(t, 1, "cleanup.policy", "compact", "min.compaction.lag.ms", "12345")
	got, err := e.Driver.Admin().Configs(ctx(t), name)
	if err != nil {
		t.Fatal(err)
	}
	if got["cleanup.policy"] != "compact" || got["min.compaction.lag.ms"] != "12345" {
		t.Fatalf("configs %v", got)
	}
	if got["retention.ms"] == "" {
		t.Fatal("a setting that was not given has no value: effective settings are wanted")
	}
	if _, err := e.Driver.Admin().Configs(ctx(t), e.name("missing")); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Fatalf("configs of a missing topic: %v, want ErrUnknownTopic", err)
	}
}

// All marks are "next offset to read"; a timestamp gives the first record
// that is not older, or the end.
func testAdminOffsets(t *testing.T, e Env) {
	name := e.topic(t, 2)
	full, empty := kafka.TopicPartition{Topic: name, Partition: 0}, kafka.TopicPartition{Topic: name, Partition: 1}
	rs := numbered(0, 10)
	write(t, e, full, rs...)
	want := []struct {
		at          kafka.Mark
		full, empty int64
	}{
		{kafka.LogStart, 0, 0},
		{kafka.HighWatermark, 10, 0},
		{kafka.LastStable, 10, 0},
		{kafka.Mark(rs[4].Timestamp), 4, 0},
		{kafka.Mark(rs[0].Timestamp - 5), 0, 0},
		{kafka.Mark(rs[9].Timestamp + 1), 10, 0},
	}
	for _, w := range want {
		got, err := e.Driver.Admin().Offsets(ctx(t), w.at, full, empty)
		if err != nil {
			t.Fatalf("mark %d: %v", w.at, err)
		}
		if len(got) != 2 || got[full] != w.full || got[empty] != w.empty {
			t.Fatalf("mark %d: %v, want %d and %d", w.at, got, w.full, w.empty)
		}
	}
}

// A missing topic or partition is an error, not an offset of zero.
func testAdminOffsetsUnknown(t *testing.T, e Env) {
	name := e.topic(t, 1)
	for _, tp := range []kafka.TopicPartition{{Topic: e.name("missing")}, {Topic: name, Partition: 7}} {
		_, err := e.Driver.Admin().Offsets(ctx(t), kafka.HighWatermark, kafka.TopicPartition{Topic: name}, tp)
		if !errors.Is(err, kafka.ErrUnknownTopic) {
			t.Fatalf("%s: %v, want ErrUnknownTopic", tp, err)
		}
	}
}

// DeleteRecords purges consumed records: the end of the log stays.
func testAdminDeleteRecords(t *testing.T, e Env) {
	a, tp := e.Driver.Admin(), kafka.TopicPartition{Topic: e.topic(t, 1)}
	write(t, e, tp, numbered(0, 10)...)
	if err := a.DeleteRecords(ctx(t), map[kafka.TopicPartition]int64{tp: 6}); err != nil {
		t.Fatal(err)
	}
	start, err := a.Offsets(ctx(t), kafka.LogStart, tp)
	if err != nil || start[tp] != 6 {
		t.Fatalf("log start %v, %v, want 6", start, err)
	}
	end, err := a.Offsets(ctx(t), kafka.HighWatermark, tp)
	if err != nil || end[tp] != 10 {
		t.Fatalf("high watermark %v, %v, want 10", end, err)
	}
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 6)
	wantNumbered(t, in.waitRecords(t, 4), 6, 4)
}

// Describing a group that nobody ever joined is not an error.
func testAdminUnknownGroup(t *testing.T, e Env) {
	g, err := e.Driver.Admin().Group(ctx(t), e.name("group"))
	if err != nil || g.State != "Dead" || len(g.Members) != 0 {
		t.Fatalf("group %+v, %v, want a dead one without members", g, err)
	}
}
