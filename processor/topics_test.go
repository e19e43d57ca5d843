package processor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// refused checks that a processor has ended with an error that says all of
// words, before it had joined its group or written anything.
func refused(t *testing.T, tt *tester.Tester, app *tester.Instance, target any, says ...string) {
	t.Helper()
	err := app.Err()
	if err == nil || !errors.As(err, target) {
		t.Fatalf("error %v, want a %T", err, target)
	}
	for _, w := range says {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
	for _, op := range []tester.Op{tester.OpJoin, tester.OpProduce, tester.OpCommit} {
		equal(t, string(op)+" calls", tt.Calls()[op], 0)
	}
}

func TestTableTopicWithAnotherPartitionCountIsRefused(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(10))
	tester.Input(tt, words)
	tt.CreateTopic("g-table", 5, "cleanup.policy", "compact")
	refused(t, tt, run(tt, "app", keeper), new(*kafka.TopicMismatchError), "g-table", "partition count is 5", "want 10")
}

func TestInputsOfDifferentPartitionCountsAreRefused(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(10))
	tester.Input(tt, words)
	tt.CreateTopic("numbers", 12)
	app := run(tt, "app", func() []processor.Edge {
		return []processor.Edge{
			processor.Input(words, func(*processor.Context, string) error { return nil }),
			processor.Input(numbers, func(*processor.Context, int64) error { return nil }),
		}
	})
	refused(t, tt, app, new(*processor.PartitionCountError), "words has 10", "numbers has 12")
}

func TestTableTopicThatIsNotCompactedIsRefusedAndNotChanged(t *testing.T) {
	for _, policy := range []string{"delete", "compact,delete"} {
		tt := tester.New(t, tester.WithPartitions(3))
		tester.Input(tt, words)
		tt.CreateTopic("g-table", 3, "cleanup.policy", policy, "retention.ms", "604800000")
		refused(t, tt, run(tt, "app", keeper), new(*kafka.TopicMismatchError), "g-table", "cleanup.policy is "+policy, "want compact")
		equal(t, "policy afterwards", configs(t, tt, "g-table")["cleanup.policy"], policy)
	}
}

func configs(t *testing.T, tt *tester.Tester, topic string) map[string]string {
	t.Helper()
	out, err := tt.Client().Driver().Admin().Configs(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInternalTopicsAreCreatedWithTheSettingsTheyNeed(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(4))
	tester.Input(tt, words)
	run(tt, "app", looping)
	tt.Settle()
	for topic, want := range map[string]map[string]string{
		"g-table": {"cleanup.policy": "compact", "delete.retention.ms": "86400000", "min.cleanable.dirty.ratio": "0.3", "min.compaction.lag.ms": "60000"},
		"g-loop":  {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
	} {
		have := configs(t, tt, topic)
		for name, value := range want {
			equal(t, topic+" "+name, have[name], value)
		}
		equal(t, "partitions of "+topic, partitionsOf(t, tt, topic), 4)
	}
}

// looping sends each word round the loop to the key that the word names, and
// counts there.
func looping() []processor.Edge {
	st, l := processor.Persist(table), processor.Loop(codec.String())
	return []processor.Edge{st, l.On(func(ctx *processor.Context, w string) error {
		was, _ := st.Get(ctx)
		st.Set(ctx, was+w)
		return nil
	}), processor.Input(words, func(ctx *processor.Context, w string) error {
		l.Emit(ctx, w, "+")
		return nil
	})}
}

func TestLoopTopicThatRetentionWouldEmptyIsRefused(t *testing.T) {
	for name, value := range map[string]string{"retention.ms": "3600000", "retention.bytes": "1000000", "cleanup.policy": "compact"} {
		tt := tester.New(t, tester.WithPartitions(2))
		tester.Input(tt, words)
		settings := kafka.LoopConfigs()
		settings[name] = value
		var pairs []string
		for k, v := range settings {
			pairs = append(pairs, k, v)
		}
		tt.CreateTopic("g-loop", 2, pairs...)
		refused(t, tt, run(tt, "app", looping), new(*kafka.TopicMismatchError), "g-loop", name+" is "+value)
	}
}

// What is purged of the loop is what is committed, whatever its age.
func TestLoopIsPurgedUpToCommittedRecordsOnly(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, words)
	app := run(tt, "app", looping)
	lastYear := reka.At(tt.Now().AddDate(-1, 0, 0))
	send := func(n int) {
		for range n {
			in.Send("k", "there", lastYear)
		}
	}
	send(2500)
	tt.Settle()
	if left := len(tt.Raw("g-loop", 0)); left > 1000 {
		t.Errorf("%d records are left in the loop, want at most 1000", left)
	}
	tt.Fail(tester.Fault{Op: tester.OpCommit, Instance: "app", Times: -1, Do: tester.Error(kafka.ErrRebalanceInProgress)})
	send(2500)
	tt.Advance(2 * time.Hour)
	committed := tt.Committed("g", "g-loop", 0)
	if log := tt.Raw("g-loop", 0); len(log) == 0 || log[0].Offset > committed {
		t.Errorf("the loop begins at %v, committed is %d", log[:min(1, len(log))], committed)
	}
	app.Crash()
	tt.Advance(2 * time.Hour)
	run(tt, "other", looping)
	got, _ := tester.Table(tt, table).Get("there")
	if len(got) < 5000 {
		t.Errorf("%d records came round, want all 5000", len(got))
	}
}

func partitionsOf(t *testing.T, tt *tester.Tester, topic string) int32 {
	t.Helper()
	topics, err := tt.Client().Driver().Admin().Topics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return topics[topic].Partitions
}
