package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// look is longer than a member takes to look at its topics, and doubt longer
// than it takes to believe that one is gone.
const (
	look  = 11 * time.Second
	doubt = 20 * time.Second
)

func grow(t *testing.T, tt *tester.Tester, topic string, n int32) {
	t.Helper()
	if err := tt.Client().Driver().Admin().CreatePartitions(t.Context(), topic, n); err != nil {
		t.Fatal(err)
	}
}

// seen counts records by partition. Callbacks share it.
type seen struct {
	mu  sync.Mutex
	all map[int32]int  // guarded by mu
	who map[string]int // guarded by mu
}

func (s *seen) reading() []processor.Edge {
	return []processor.Edge{processor.Input(words, func(ctx *processor.Context, _ string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all[ctx.Partition()]++
		return nil
	})}
}

func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.all)
}

// A key moves to another partition with a new count, where its row is not. So
// a group that keeps a table ends, by name and counts, before it processes a
// record of a new partition; all its members do, the leader or not, and one
// that has no partition, too.
func TestPartitionsAddedToTheInputOfATableEndTheGroup(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(4))
	in := tester.Input(tt, clicks)
	tester.Output(tt, totals)
	var all []*tester.Instance
	for i := range 5 {
		all = append(all, tt.Start(fmt.Sprint("p", i), counter()))
	}
	for range 100 {
		in.Send("alice", "/")
		in.Send("key-7", "/")
	}
	tt.Settle()
	grow(t, tt, "clicks", 6)
	late := tt.Start("late", counter()) // is refused as it starts, and a rebalance gives nobody a new partition
	tt.Rebalance("counter")
	for p := int32(4); p < 6; p++ {
		tt.SendRaw("clicks", p, put("alice", "/"), put("new", "/"))
	}
	tt.Advance(look)
	for _, i := range all {
		err := i.Err()
		var counts *processor.PartitionCountError
		if !errors.As(err, &counts) || !strings.Contains(err.Error(), "clicks has 6, counter-table has 4") {
			t.Errorf("%s: %v", i.Name(), err)
		}
	}
	var mismatch *kafka.TopicMismatchError
	if err := late.Err(); !errors.As(err, &mismatch) {
		t.Errorf("start afterwards: %v", err)
	}
	for p := int32(4); p < 6; p++ {
		equal(t, fmt.Sprint("committed of partition ", p), tt.Committed("counter", "clicks", p), -1)
	}
	rows := 0
	for p := range int32(4) {
		for _, r := range tt.Raw("counter-table", p) {
			if rows++; string(r.Key) == "new" {
				t.Error("a record of a new partition was processed")
			}
		}
	}
	equal(t, "rows", fmt.Sprint(tester.Table(tt, counts).All(), rows > 0), "map[alice:100 key-7:100] true")
}

// The leader runs another version, without the table: it cannot know that the
// new partitions are too many. Who gets them ends, in order.
func TestPartitionsThatTheLeaderGivesBeyondTheTableAreNotProcessed(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	tester.Input(tt, words)
	s := &seen{all: map[int32]int{}}
	run(tt, "leader", s.reading)
	app := run(tt, "app", keeper)
	tt.SendRaw("words", 1, put("a", "1"))
	tt.Settle()
	grow(t, tt, "words", 4)
	for p := int32(2); p < 4; p++ {
		tt.SendRaw("words", p, put("new", "2"))
	}
	before := tt.Now()
	tt.Rebalance("g")
	err := app.Err()
	var counts *processor.PartitionCountError
	if !errors.As(err, &counts) || errors.Is(err, reka.ErrStopTimeout) || !strings.Contains(err.Error(), "words has 4, g-table has 2") {
		t.Errorf("%v", err)
	}
	equal(t, "time that it took", tt.Now().Sub(before), 0)
	for p := range int32(2) {
		for _, r := range tt.Raw("g-table", p) {
			if string(r.Key) == "new" {
				t.Error("a record of a new partition was processed")
			}
		}
	}
}

// A group without state takes the new partitions as they are, from their
// start.
func TestPartitionsAddedToTheInputsOfAGroupWithoutStateAreShared(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	tester.Input(tt, words)
	s, o := &seen{all: map[int32]int{}}, &owners{all: map[string][]int32{}}
	run(tt, "a", s.reading, o.observe("a"))
	run(tt, "b", s.reading, o.observe("b"))
	send := func(n int32) {
		for p := range n {
			tt.SendRaw("words", p, put("k", "w"))
		}
	}
	send(2)
	tt.Settle()
	grow(t, tt, "words", 6)
	send(6) // before anybody has noticed
	joins := tt.Calls()[tester.OpJoin]
	tt.Advance(look)
	equal(t, "partitions of a", o.count("a"), 3)
	equal(t, "partitions of b", o.count("b"), 3)
	send(6)
	tt.Settle()
	equal(t, "records", s.String(), "map[0:3 1:3 2:2 3:2 4:2 5:2]")
	if n := tt.Calls()[tester.OpJoin] - joins; n > 8 {
		t.Errorf("%d joins for one change", n)
	}
	joins = tt.Calls()[tester.OpJoin]
	tt.Advance(10 * time.Minute)
	equal(t, "joins afterwards", tt.Calls()[tester.OpJoin]-joins, 0)
}

// Inputs cannot grow at once. Between the one and the other the group goes on
// with what all of them have, also over a rebalance.
func TestInputsThatGrowOneAfterTheOther(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	tester.Input(tt, words)
	tester.Input(tt, numbers)
	s, o := &seen{all: map[int32]int{}}, &owners{all: map[string][]int32{}}
	edges := func() []processor.Edge {
		return append(s.reading(), processor.Input(numbers, func(*processor.Context, int64) error { return nil }))
	}
	a := run(tt, "a", edges, o.observe("a"))
	grow(t, tt, "words", 4)
	tt.Rebalance("g")
	tt.Advance(look)
	tt.SendRaw("words", 0, put("k", "w"))
	tt.SendRaw("words", 3, put("k", "w"))
	tt.Advance(time.Minute)
	equal(t, "records", s.String(), "map[0:1]")
	equal(t, "partitions", o.count("a"), 2)
	grow(t, tt, "numbers", 4)
	tt.Advance(look)
	equal(t, "partitions", o.count("a"), 4)
	equal(t, "records", s.String(), "map[0:1 3:1]")
	if err := a.Err(); err != nil {
		t.Error(err)
	}
}

// Nobody reads the input any more: all members say so, whether they have a
// partition or not.
func TestInputDeletedWhileRunningEndsAllMembersWithItsName(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, words)
	a, idle := run(tt, "a", keeper), run(tt, "idle", keeper)
	in.Send("k", "w")
	tt.Settle()
	tt.DeleteTopic("words")
	tt.Advance(doubt)
	for _, i := range []*tester.Instance{a, idle} {
		err := i.Err()
		if !errors.Is(err, kafka.ErrUnknownTopic) || !strings.Contains(err.Error(), "words") {
			t.Errorf("%s: %v", i.Name(), err)
		}
	}
}

// What was committed of the former topic is not applied to the one that has
// its name now, nor committed on the way out.
func TestInputDeletedAndCreatedAgainIsNoticedAndItsOldOffsetsAreNotUsed(t *testing.T) {
	for name, edges := range map[string]func() []processor.Edge{"a table": keeper, "no state": (&seen{all: map[int32]int{}}).reading} {
		t.Run(name, func(t *testing.T) {
			tt := tester.New(t, tester.WithPartitions(1))
			in := tester.Input(tt, words)
			a, idle := run(tt, "a", edges), run(tt, "idle", edges)
			for range 500 {
				in.Send("k", "w")
			}
			equal(t, "committed", tt.Committed("g", "words", 0), 500)
			in.Send("k", "w") // in hand while the topic goes
			tt.DeleteTopic("words")
			tt.CreateTopic("words", 1)
			for range 3 {
				in.Send("k", "v")
			}
			tt.Advance(doubt)
			for _, i := range []*tester.Instance{a, idle} {
				err := i.Err()
				if !errors.Is(err, kafka.ErrTopicChanged) || !strings.Contains(err.Error(), "words") {
					t.Errorf("%s: %v", i.Name(), err)
				}
			}
			if at := tt.Committed("g", "words", 0); at > 3 {
				t.Errorf("committed %d of a log of 3 records", at)
			}
			a.Restart()
			if err := a.Err(); name == "a table" {
				if !errors.Is(err, processor.ErrOffsetsLost) {
					t.Errorf("restart: %v", err)
				}
				return
			}
			equal(t, "committed after the restart", tt.Committed("g", "words", 0), 3)
		})
	}
}

// A record that was in hand is not committed on the way out: its offset would
// count for the new topic.
func TestRecordInHandWhenItsTopicGoesIsNotCommitted(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, words)
	gate := tt.NewGate()
	app := run(tt, "app", func() []processor.Edge {
		return []processor.Edge{processor.Input(words, func(_ *processor.Context, w string) error {
			if w == "wait" {
				return gate.Wait(context.Background())
			}
			return nil
		})}
	})
	for range 500 {
		in.Send("k", "w")
	}
	in.Send("k", "wait")
	tt.Settle()
	equal(t, "callbacks that wait", gate.Waiting(), 1)
	tt.DeleteTopic("words")
	tt.CreateTopic("words", 1)
	tt.Advance(doubt)
	gate.Open()
	if err := app.Err(); !errors.Is(err, kafka.ErrTopicChanged) {
		t.Errorf("%v", err)
	}
	equal(t, "committed", tt.Committed("g", "words", 0), -1)
}

// A task's own topics are watched too: rows that are not there any more
// cannot be restored by the next owner.
func TestTableTopicDeletedWhileRunningEndsAllMembers(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	tester.Input(tt, words)
	a, idle := run(tt, "a", keeper), run(tt, "idle", keeper)
	tt.DeleteTopic("g-table")
	tt.Advance(doubt)
	for _, i := range []*tester.Instance{a, idle} {
		if err := i.Err(); !errors.Is(err, kafka.ErrUnknownTopic) || !strings.Contains(err.Error(), "g-table") {
			t.Errorf("%s: %v", i.Name(), err)
		}
	}
}
