package processor_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// owners follows which instance has which partition, through observers.
type owners struct {
	mu  sync.Mutex
	all map[string][]int32 // guarded by mu
}

func (o *owners) observe(name string) processor.Option {
	return processor.WithObserver(processor.Observer{
		Assigned: func(ps []int32) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.all[name] = append(o.all[name], ps...)
		},
		Revoked: func(ps []int32) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.all[name] = slices.DeleteFunc(o.all[name], func(p int32) bool { return slices.Contains(ps, p) })
		},
	})
}

// each returns how many owners each partition has.
func (o *owners) each() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := map[int32]int{}
	for _, ps := range o.all {
		for _, p := range ps {
			n[p]++
		}
	}
	return fmt.Sprint(n)
}

func (o *owners) count(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all[name])
}

func countingInstance(tt *tester.Tester, o *owners, name string) *tester.Instance {
	return tt.Start(name, counter(o.observe(name)))
}

func TestPartitionsMoveBetweenInstancesWithoutLossOrRepeat(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(6))
	in, out := tester.Input(tt, clicks), tester.Output(tt, totals)
	o := &owners{all: map[string][]int32{}}
	sent := map[string]int64{}
	send := func(n int) {
		for i := range n {
			k := fmt.Sprintf("user-%d", i%20)
			in.Send(k, "/")
			sent[k]++
		}
	}
	a := countingInstance(tt, o, "a")
	send(100)
	b := countingInstance(tt, o, "b")
	equal(t, "partitions of a beside b", o.count("a"), 3)
	equal(t, "partitions of b beside a", o.count("b"), 3)
	send(100)
	c := countingInstance(tt, o, "c")
	for _, name := range []string{"a", "b", "c"} {
		equal(t, "partitions of "+name+" of three", o.count(name), 2)
	}
	send(100)
	for _, i := range []*tester.Instance{a, b} {
		if err := i.Stop(); err != nil {
			t.Errorf("stop of %s: %v", i.Name(), err)
		}
		tt.Settle()
		send(50)
	}
	equal(t, "partitions of c alone", o.count("c"), 6)
	_ = c
	got := tester.Table(tt, counts).All()
	for k, want := range sent {
		equal(t, k, got[k], want)
	}
	equal(t, "outputs", out.Len(), 400)
}

func TestCrashedInstanceIsReplacedAfterItsSession(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(4))
	in := tester.Input(tt, clicks)
	tester.Output(tt, totals)
	o := &owners{all: map[string][]int32{}}
	a := countingInstance(tt, o, "a")
	countingInstance(tt, o, "b")
	for i := range 40 {
		in.Send(fmt.Sprint("k", i%8), "/")
	}
	tt.Settle()
	a.Crash()
	for i := range 40 {
		in.Send(fmt.Sprint("k", i%8), "/")
	}
	tt.Settle()
	equal(t, "partitions of b before the session is over", o.count("b"), 2)
	tt.Advance(11 * time.Second)
	equal(t, "partitions of b after it", o.count("b"), 4)
	for k, v := range tester.Table(tt, counts).All() {
		equal(t, k, v, 10)
	}
}

func TestStaticMemberReturnsToItsPartitionsWithoutRebalance(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(4))
	in := tester.Input(tt, clicks)
	tester.Output(tt, totals)
	o := &owners{all: map[string][]int32{}}
	a := countingInstance(tt, o, "a")
	countingInstance(tt, o, "b")
	b := o.count("b")
	a.Crash()
	a.Restart()
	for i := range 40 {
		in.Send(fmt.Sprint("k", i%8), "/")
	}
	for k, v := range tester.Table(tt, counts).All() {
		equal(t, k, v, 5)
	}
	equal(t, "partitions of b", o.count("b"), b)
}

func TestQuickSuccessionOfRebalancesEndsBalanced(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(6))
	in, out := tester.Input(tt, clicks), tester.Output(tt, totals)
	o := &owners{all: map[string][]int32{}}
	a := countingInstance(tt, o, "a")
	b := countingInstance(tt, o, "b")
	sent := 0
	for i := range 30 {
		for range 7 {
			in.Send(fmt.Sprint("k", sent%13), "/")
			sent++
		}
		switch i % 3 {
		case 0:
			c := countingInstance(tt, o, fmt.Sprint("c", i))
			defer func() { _ = c.Stop() }()
		case 1:
			if err := b.Stop(); err != nil {
				t.Fatal(err)
			}
		case 2:
			b.Restart()
		}
		tt.Advance(300 * time.Millisecond)
	}
	tt.Advance(10 * time.Second)
	equal(t, "owners of each partition", o.each(), "map[0:1 1:1 2:1 3:1 4:1 5:1]")
	if err := a.Err(); err != nil {
		t.Errorf("a: %v", err)
	}
	total := int64(0)
	for _, v := range tester.Table(tt, counts).All() {
		total += v
	}
	equal(t, "counted", total, int64(sent))
	equal(t, "outputs", out.Len(), sent)
}

// One that is stopped before it had an assignment leaves as well: others would
// wait for it.
func TestInstanceStoppedDuringItsFirstJoinLeaves(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	tester.Input(tt, words)
	slow := run(tt, "slow", keeper)
	slow.Pause() // the join waits for it
	b := run(tt, "b", keeper)
	if err := b.Stop(); err != nil {
		t.Errorf("stop of b: %v", err)
	}
	group, err := tt.Client().Driver().Admin().Group(t.Context(), "g")
	if err != nil || len(group.Members) != 1 {
		t.Errorf("%d members are left, want 1: %v", len(group.Members), err)
	}
	slow.Resume()
	tt.Settle()
	if err := slow.Err(); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

func TestTwoProcessorsOfOneGroupOnOneStateAreRefused(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	tester.Input(tt, clicks)
	tester.Output(tt, totals)
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		one, err := counter()(i)
		if err != nil {
			return nil, err
		}
		two, err := counter()(i)
		return append(one, two...), err
	})
	if err := app.Err(); err == nil {
		t.Error("both run")
	}
}
