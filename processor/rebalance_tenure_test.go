package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka/internal/assign"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/tester"
)

func TestFiveRoundsOfAnotherInstanceEndNothing(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(4))
	in := tester.Input(tt, clicks)
	tester.Output(tt, totals)
	o := &owners{all: map[string][]int32{}}
	a := countingInstance(tt, o, "a")
	b := countingInstance(tt, o, "b")
	for round := range 5 {
		in.Send("k", "/")
		tt.Settle()
		equal(t, "partitions of a beside b", o.count("a"), 2)
		if err := b.Stop(); err != nil {
			t.Errorf("round %d: stop of b: %v", round, err)
		}
		tt.Settle()
		equal(t, "partitions of a alone", o.count("a"), 4)
		in.Send("k", "/")
		if err := a.Err(); err != nil {
			t.Fatalf("round %d: a has ended: %v", round, err)
		}
		b.Restart()
	}
	got, _ := tester.Table(tt, counts).Get("k")
	equal(t, "counted", got, 10)
}

// gated is a graph that counts what it is given, by instance, and whose
// callback waits for a gate at values below zero.
type gated struct {
	gate *tester.Gate
	deaf bool // it does not heed its context
	mu   sync.Mutex
	all  map[string]int // guarded by mu
}

func (g *gated) edges(name string) func() []processor.Edge {
	return func() []processor.Edge {
		sum, out := processor.Persist(sums), processor.Output(echoes)
		return []processor.Edge{sum, out, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
			g.mu.Lock()
			g.all[fmt.Sprintf("%s/%d", name, ctx.Partition())]++
			g.mu.Unlock()
			v, _ := sum.Get(ctx)
			sum.Set(ctx, v+n)
			out.Emit(ctx, ctx.Key(), n)
			switch {
			case n >= 0 || name != "a":
				return nil
			case g.deaf:
				return g.gate.Wait(context.Background())
			}
			return g.gate.Wait(ctx)
		})}
	}
}

func (g *gated) count(name string, partitions ...int32) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range partitions {
		n += g.all[fmt.Sprintf("%s/%d", name, p)]
	}
	return n
}

func newGated(t *testing.T, partitions int32) (*tester.Tester, *gated) {
	tt := tester.New(t, tester.WithPartitions(partitions))
	tester.Input(tt, numbers)
	tester.Output(tt, echoes)
	return tt, &gated{gate: tt.NewGate(), all: map[string]int{}}
}

// moved returns the partitions that a gives up when b comes: those that b
// awaits. The others stay.
func moved(o *owners, name string) []int32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]int32(nil), o.all[name]...)
}

// While a partition that moves is held up by its callback, those that stay
// process and commit, in both rounds.
func TestPartitionsThatStayCommitWhileOthersMove(t *testing.T) {
	tt, g := newGated(t, 4)
	o := &owners{all: map[string][]int32{}}
	run(tt, "a", g.edges("a"), o.observe("a"))
	probe := run(tt, "b", g.edges("b"), o.observe("b"))
	leaves := moved(o, "b") // which partitions move is the same every time
	if err := probe.Stop(); err != nil {
		t.Fatal(err)
	}
	tt.Settle()
	for _, p := range leaves {
		tt.SendRaw("numbers", p, put("k", "-1"))
	}
	tt.Settle()
	equal(t, "callbacks that wait", g.gate.Waiting(), len(leaves))
	probe.Restart()
	stay := []int32{}
	for p := range int32(4) {
		if !strings.Contains(fmt.Sprint(leaves), fmt.Sprint(p)) {
			stay = append(stay, p)
		}
	}
	equal(t, "partitions that stay", len(stay), 2)
	for n := range int64(20) {
		for _, p := range stay {
			tt.SendRaw("numbers", p, put("k", "1"))
			equal(t, fmt.Sprintf("committed of partition %d", p), tt.Committed("g", "numbers", p), n+1)
		}
		tt.Advance(time.Second)
	}
	equal(t, "partitions of b while it waits", o.count("b"), 0)
	before := tt.Now()
	g.gate.Open()
	for _, p := range leaves {
		tt.SendRaw("numbers", p, put("k", "1"))
	}
	tt.Settle()
	equal(t, "partitions of b", o.count("b"), 2)
	equal(t, "records of b", g.count("b", leaves...), len(leaves))
	equal(t, "time that the move took", tt.Now().Sub(before), 0)
}

// A callback that outlasts the rebalance timeout loses its own partition. The
// others of its process go on, those that move as well as those that stay,
// and what it did is not written.
func TestCallbackThatOutlastsTheRebalanceCostsNothingButItsPartition(t *testing.T) {
	tt, g := newGated(t, 4)
	g.deaf = true
	o := &owners{all: map[string][]int32{}}
	a := run(tt, "a", g.edges("a"), o.observe("a"))
	probe := run(tt, "b", g.edges("b"), o.observe("b"))
	slow := moved(o, "b")[0]
	if err := probe.Stop(); err != nil {
		t.Fatal(err)
	}
	tt.SendRaw("numbers", slow, put("k", "-1"), put("k", "5"))
	tt.Settle()
	equal(t, "callbacks that wait", g.gate.Waiting(), 1)
	probe.Restart()
	tt.Advance(time.Second) // no partition waits longer for the callback of another one
	for n := range int64(70) {
		for p := range int32(4) {
			if p != slow {
				tt.SendRaw("numbers", p, put("k", "1"))
				equal(t, fmt.Sprintf("committed of partition %d", p), tt.Committed("g", "numbers", p), n+1)
			}
		}
		tt.Advance(time.Second)
	}
	equal(t, "committed by b", tt.Committed("g", "numbers", slow), 2)
	equal(t, "records of the slow partition on a", g.count("a", slow), 1)
	g.gate.Open()
	tt.Advance(time.Minute)
	equal(t, "records of the slow partition on a afterwards", g.count("a", slow), 1)
	var last kafka.Record
	for _, r := range tt.Raw("g-table", slow) {
		last = r
	}
	equal(t, "row", string(last.Value), "\x00\x00\x00\x00\x00\x00\x00\x04")
	if err := a.Err(); err != nil {
		t.Errorf("a: %v", err)
	}
}

// A rebalance does not wait for what was read ahead: the partition is given
// up after the record in hand.
func TestPartitionIsGivenUpAfterTheRecordInHandNotAfterAllThatWereReadAhead(t *testing.T) {
	tt, g := newGated(t, 2)
	o := &owners{all: map[string][]int32{}}
	run(tt, "a", g.edges("a"), o.observe("a"))
	for p := range int32(2) {
		tt.SendRaw("numbers", p, put("k", "-1"))
		for range 255 {
			tt.SendRaw("numbers", p, put("k", "1"))
		}
	}
	tt.Settle()
	equal(t, "callbacks that wait", g.gate.Waiting(), 2)
	run(tt, "b", g.edges("b"), o.observe("b"))
	tt.Advance(3 * time.Second)
	g.gate.Open()
	tt.Settle()
	given := moved(o, "b")
	equal(t, "partitions of b", len(given), 1)
	equal(t, "records of a in the partition that it gave up", g.count("a", given...), 1)
	equal(t, "records of b in it", g.count("b", given...), 255)
	equal(t, "records of a in the one that it kept", g.count("a", 1-given[0]), 256)
}

// The holder of a partition is killed while it gives it up, and comes back at
// once. The partition does not stay without an owner.
func TestHolderKilledBetweenTheRoundsLeavesNoPartitionWithoutAnOwner(t *testing.T) {
	tt, g := newGated(t, 2)
	o := &owners{all: map[string][]int32{}}
	a := run(tt, "a", g.edges("a"))
	for p := range int32(2) {
		tt.SendRaw("numbers", p, put("k", "-1"))
	}
	tt.Settle()
	run(tt, "b", g.edges("b"), o.observe("b"))
	equal(t, "partitions of b before", o.count("b"), 0)
	a.Crash()
	g.gate.Open()
	a.Restart()
	tt.Advance(time.Second)
	equal(t, "partitions of b", o.count("b"), 1)
	for p := range int32(2) {
		equal(t, "committed", tt.Committed("g", "numbers", p), 1)
	}
}

// A holder gives a partition up and does not say so. Who waits for it asks.
func TestWhoWaitsForAPartitionWithoutAnOwnerAsksForItAgain(t *testing.T) {
	tt, g := newGated(t, 2)
	o := &owners{all: map[string][]int32{}}
	var mu sync.Mutex
	var claims []assign.Task
	declared := []assign.Subgraph{{Name: "main", Topics: []string{"numbers"}, Keeps: []string{"g-table"}}}
	all := []assign.Task{{Subgraph: "main", Partition: 0}, {Subgraph: "main", Partition: 1}}
	holder, err := tt.Client().Driver().NewMember(kafka.MemberConfig{
		Group: "g", Protocol: "reka", SessionTimeout: 10 * time.Second, HeartbeatInterval: time.Second, RebalanceTimeout: time.Minute,
		Subscribe: func() kafka.Subscription {
			mu.Lock()
			defer mu.Unlock()
			return assign.Subscription(assign.MemberData{ProcessID: "holder", Subgraphs: declared}, claims)
		},
		Plan: func(_ context.Context, group []kafka.GroupMember) (map[string]kafka.Share, error) {
			r, err := assign.Plan(assign.Input{Members: assign.MembersOf(group), Partitions: map[string]int32{"numbers": 2}})
			return r.Encode(assign.Fingerprint{}, 0).Shares, err
		},
		Assigned: func(a kafka.Assignment) {},
		Lost:     func(error) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Close() }) // the tester reports what is left
	claims = all
	holder.Start()
	tt.Settle()
	run(tt, "b", g.edges("b"), o.observe("b"))
	equal(t, "partitions of b while they are claimed", o.count("b"), 0)
	mu.Lock()
	claims = all[:1] // in silence
	mu.Unlock()
	tt.Advance(60 * time.Second)
	equal(t, "partitions of b after a rebalance timeout", o.count("b"), 0)
	tt.Advance(11 * time.Second)
	equal(t, "partitions of b after a session more", o.count("b"), 1)
}

// Somebody runs with this process's identity, as from a copy of its state
// directory. One of them ends, and says which directory it is.
func TestProcessWhoseIdentityIsTakenEndsAndNamesItsState(t *testing.T) {
	tt, g := newGated(t, 2)
	a := run(tt, "a", g.edges("a"))
	group, err := tt.Client().Driver().Admin().Group(t.Context(), "g")
	if err != nil || len(group.Members) != 1 || group.Members[0].InstanceID == "" {
		t.Fatalf("%+v, %v", group, err)
	}
	id := group.Members[0].InstanceID
	twin, err := tt.Client().Driver().NewMember(kafka.MemberConfig{
		Group: "g", InstanceID: id, Protocol: "reka", SessionTimeout: 10 * time.Second, HeartbeatInterval: time.Second, RebalanceTimeout: time.Minute,
		Subscribe: func() kafka.Subscription { return group.Members[0].Subscription },
		Plan: func(context.Context, []kafka.GroupMember) (map[string]kafka.Share, error) {
			return map[string]kafka.Share{}, nil
		},
		Assigned: func(kafka.Assignment) {},
		Lost:     func(err error) { t.Errorf("the twin lost its membership: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = twin.Close() }) // the tester reports what is left
	twin.Start()
	tt.Advance(time.Second)
	err = a.Err()
	var e *storage.Error
	if !errors.As(err, &e) || !errors.Is(err, kafka.ErrFencedInstance) {
		t.Fatalf("%v", err)
	}
	equal(t, "directory", e.Place, "memory")
	for _, w := range []string{"processor g", id, "memory"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	group, err = tt.Client().Driver().Admin().Group(t.Context(), "g")
	if err != nil || len(group.Members) != 1 {
		t.Errorf("the twin is not a member any more: %+v, %v", group, err)
	}
}
