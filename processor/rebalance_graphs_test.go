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

// versions are graphs of one group. Each counts what it reads, by its name
// and topic.
type versions struct{ read *tally }

type tally struct{ seen }

func (t *tally) add(who, topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.who == nil {
		t.who = map[string]int{}
	}
	t.who[who+" "+topic]++
}

func (t *tally) of(who, topic string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.who[who+" "+topic]
}

func (v versions) words(who string) func() []processor.Edge {
	return func() []processor.Edge {
		return []processor.Edge{processor.Input(words, func(*processor.Context, string) error { v.read.add(who, "words"); return nil })}
	}
}

func (v versions) numbers(who string) func() []processor.Edge {
	return func() []processor.Edge {
		return []processor.Edge{processor.Input(numbers, func(*processor.Context, int64) error { v.read.add(who, "numbers"); return nil })}
	}
}

func (v versions) both(who string) func() []processor.Edge {
	return func() []processor.Edge { return append(v.words(who)(), v.numbers(who)()...) }
}

// upgraded is a group's world with two topics, and a way to send one record to
// each partition of both.
func upgraded(t *testing.T) (tt *tester.Tester, v versions, send func()) {
	t.Helper()
	tt = tester.New(t, tester.WithPartitions(4))
	tester.Input(tt, words)
	tester.Input(tt, numbers)
	return tt, versions{read: &tally{}}, func() {
		for p := range int32(4) {
			tt.SendRaw("words", p, put("k", "1"))
			tt.SendRaw("numbers", p, put("k", "1"))
		}
		tt.Settle()
	}
}

// In a rolling upgrade the new version reads one topic more. Who knows both
// runs all partitions, whole; the other waits, says why, and takes nothing
// that it did not ask for.
func TestRollingUpgradeThatAddsAnInputEndsWithTheNewVersionAlone(t *testing.T) {
	tt, v, send := upgraded(t)
	one := run(tt, "one", v.words("one"))
	send()
	equal(t, "words of one", v.read.of("one", "words"), 4)
	two := run(tt, "two", v.both("two"))
	send()
	equal(t, "words of one beside two", v.read.of("one", "words"), 4)
	equal(t, "numbers of one", v.read.of("one", "numbers"), 0)
	equal(t, "words of two", v.read.of("two", "words"), 4)
	equal(t, "numbers of two", v.read.of("two", "numbers"), 8)
	joins := tt.Calls()[tester.OpJoin]
	tt.Advance(5 * time.Minute)
	equal(t, "joins in five minutes", tt.Calls()[tester.OpJoin]-joins, 0)
	if err := one.Stop(); err != nil {
		t.Errorf("one: %v", err)
	}
	send()
	equal(t, "words of two alone", v.read.of("two", "words"), 8)
	if err := two.Err(); err != nil {
		t.Errorf("two: %v", err)
	}
}

func TestNewVersionThatNeedsAMissingTopicIsRefusedAndStopsNobody(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(4))
	tester.Input(tt, words)
	v := versions{read: &tally{}}
	one := run(tt, "one", v.words("one"))
	two := run(tt, "two", v.both("two"))
	if err := two.Err(); !errors.Is(err, kafka.ErrUnknownTopic) || !strings.Contains(err.Error(), "numbers") {
		t.Errorf("two: %v", err)
	}
	tt.SendRaw("words", 0, put("k", "1"))
	tt.Settle()
	equal(t, "words", v.read.of("one", "words"), 1)
	if err := one.Err(); err != nil {
		t.Errorf("one: %v", err)
	}
}

// A new version keeps a second table. While both versions run, no record is
// processed by the one that does not keep it.
func TestRollingUpgradeThatAddsATableLeavesNoRecordOut(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(4))
	tester.Input(tt, words)
	extra := func() []processor.Edge {
		more := processor.Store("more", codec.String())
		return []processor.Edge{processor.Persist(table), more, processor.Input(words, func(ctx *processor.Context, w string) error {
			more.Set(ctx, w, ctx.Key())
			return nil
		})}
	}
	send := func(w string) {
		for p := range int32(4) {
			tt.SendRaw("words", p, put("k", w))
		}
		tt.Settle()
	}
	old := run(tt, "old", keeper)
	send("before")
	run(tt, "new", extra)
	send("beside")
	if err := old.Stop(); err != nil {
		t.Errorf("old: %v", err)
	}
	send("after")
	rows := 0
	for p := range int32(4) {
		for _, r := range tt.Raw("g-more-changelog", p) {
			if rows++; strings.Contains(string(r.Key), "before") {
				t.Error("a record that was processed before is processed again")
			}
		}
	}
	equal(t, "rows", rows, 8)
}

// Two programs share a group name by mistake: the second one is refused, in
// words that say what differs, and the first goes on.
func TestTwoProgramsUnderOneGroupNameAreToldApart(t *testing.T) {
	tt, v, send := upgraded(t)
	both := tt.Start("together", func(i *tester.Instance) ([]reka.Runner, error) {
		one, err := build(i, v.words("one")())
		if err != nil {
			return nil, err
		}
		two, err := build(i, v.numbers("two")(), processor.WithDynamicMembership())
		return []reka.Runner{one, two}, err
	})
	tt.Advance(time.Minute)
	if err := both.Err(); err == nil {
		t.Error("both run in one process")
	}
	a := run(tt, "a", v.words("a"))
	b := run(tt, "b", v.numbers("b"))
	err := b.Err()
	if err == nil {
		t.Fatal("the second program runs")
	}
	for _, w := range []string{"refused", "would read numbers", "run subgraph main: read words"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	tt.Advance(time.Minute) // the refused one has left
	send()
	equal(t, "words", v.read.of("a", "words"), 4)
	equal(t, "numbers", v.read.of("b", "numbers"), 0)
	if err := a.Err(); err != nil {
		t.Errorf("a: %v", err)
	}
}

// A static member that comes back within its session gets its old assignment,
// whatever it runs now. One that reads more takes over as in any upgrade.
func TestStaticMemberThatReturnsWithAnotherInputJoinsAgainBeforeItRuns(t *testing.T) {
	tt, v, send := upgraded(t)
	edges := v.words("old")
	a := run(tt, "a", func() []processor.Edge { return edges() })
	run(tt, "b", v.words("old"))
	send()
	a.Crash()
	edges = v.both("new")
	a.Restart()
	tt.Settle()
	send()
	equal(t, "words of the old version", v.read.of("old", "words"), 4)
	equal(t, "words of the new one", v.read.of("new", "words"), 4)
	equal(t, "numbers of the new one", v.read.of("new", "numbers"), 8)
}

// One that is another program altogether is refused before it has touched a
// record.
func TestStaticMemberThatReturnsAsAnotherProgramRunsNothing(t *testing.T) {
	tt, v, send := upgraded(t)
	edges := v.words("old")
	a := run(tt, "a", func() []processor.Edge { return edges() })
	run(tt, "b", v.words("old"))
	send()
	a.Crash()
	edges = v.numbers("other")
	a.Restart()
	send()
	if err := a.Err(); err == nil || !strings.Contains(err.Error(), "would read numbers") {
		t.Errorf("a: %v", err)
	}
	equal(t, "numbers", v.read.of("other", "numbers"), 0)
	tt.Settle()
	equal(t, "words", v.read.of("old", "words"), 8)
}
