package tester

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

func sendWords(tt *Tester, from, n int) {
	in := Input(tt, words)
	for i := from; i < from+n; i++ {
		in.Send(fmt.Sprintf("k%d", i%50), fmt.Sprintf("w%d", i%7))
	}
}

// sum adds up all counts of the table.
func sum(tt *Tester) (n int64) {
	for _, v := range Table(tt, counts).All() {
		n += v
	}
	return n
}

func TestReadingSettles(t *testing.T) {
	tt := New(t)
	out := Output(tt, shouts)
	startToy(tt, "app")
	Input(tt, words).Send("alice", "hello", reka.At(time.UnixMilli(1234)))
	r, ok := out.Next()
	if !ok || r.Key != "hello" || r.Value != "hello!" || r.Time.UnixMilli() != 1234 {
		t.Fatalf("output %+v, %t", r, ok)
	}
	if _, ok := out.Next(); ok {
		t.Fatal("a second output")
	}
	if n, ok := Table(tt, counts).Get("alice"); !ok || n != 1 {
		t.Fatalf("count %d, %t", n, ok)
	}
	p := kafka.Murmur2().Partition([]byte("alice"), 3)
	if got := tt.Committed("toy", words.Name(), p); got != 1 {
		t.Fatalf("committed offset %d: settling must not leave a commit to a timer", got)
	}
	if !tt.Now().Equal(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Fatalf("settling moved the clock to %s", tt.Now())
	}
}

// A thousand records take milliseconds. The bound is wide: a slow machine
// with the race detector must pass it too.
func TestThousandRecordsAreQuick(t *testing.T) {
	tt := New(t)
	Output(tt, shouts)
	startToy(tt, "app")
	began := time.Now()
	sendWords(tt, 0, 1000)
	if n := sum(tt); n != 1000 {
		t.Fatalf("counted %d", n)
	}
	t.Logf("1,000 records in %s", time.Since(began))
	if took := time.Since(began); took > 2*time.Second {
		t.Fatalf("took %s", took)
	}
}

// transcript runs a story of two instances and returns all that was written.
func transcript(t *testing.T) string {
	tt := New(t)
	out := Output(tt, shouts)
	a := startToy(tt, "a")
	sendWords(tt, 0, 100)
	startToy(tt, "b")
	sendWords(tt, 100, 100)
	a.Crash()
	sendWords(tt, 200, 100)
	tt.Advance(time.Minute)
	a.Restart()
	sendWords(tt, 300, 100)
	var b strings.Builder
	for _, r := range out.All() {
		fmt.Fprintf(&b, "%d@%d %s\n", r.Partition, r.Offset, r.Value)
	}
	for p := range int32(3) {
		for _, r := range tt.Raw(counts.Name(), p) {
			fmt.Fprintf(&b, "%d@%d %s=%x\n", p, r.Offset, r.Key, r.Value)
		}
	}
	fmt.Fprintln(&b, tt.Calls())
	return b.String()
}

func TestRunsAreTheSameEveryTime(t *testing.T) {
	want := transcript(t)
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if got := transcript(t); got != want {
				t.Fatal(firstDifference(got, want))
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d of %d: got %s, want %s of %d", i, len(g), g[i], w[i], len(w))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

func TestWorksInABubble(t *testing.T) {
	want := transcript(t)
	synctest.Test(t, func(t *testing.T) {
		if got := transcript(t); got != want {
			t.Fatal(firstDifference(got, want))
		}
	})
}

// Records that were sent without settling between are delivered together: the
// world is held while the test's goroutine runs.
func TestWorldIsHeldWhileTheTestRuns(t *testing.T) {
	tt := New(t)
	Output(tt, shouts)
	startToy(tt, "app")
	before := tt.Calls()[OpFetch]
	for range 100 {
		Input(tt, words).Send("alice", "x")
	}
	tt.Settle()
	if n := tt.Calls()[OpFetch] - before; n != 1 {
		t.Fatalf("100 records came in %d batches", n)
	}
}

// The test's goroutine may wait for the engine by other means than the
// tester's.
func TestWorldGoesOnWhileTheTestWaits(t *testing.T) {
	tt := New(t)
	Output(tt, shouts)
	seen := make(chan string, 1) // one record
	startToy(tt, "app", func(e *toy) {
		e.on = func(r kafka.Record) error { seen <- string(r.Value); return nil }
	})
	Input(tt, words).Send("alice", "hello")
	if got := <-seen; got != "hello" {
		t.Fatalf("saw %s", got)
	}
}

func TestAdvanceFiresTimersInOrder(t *testing.T) {
	tt := New(t)
	clock := tt.Client().Driver().Clock()
	var order []string
	at := func(name string, d time.Duration) kafka.Timer {
		return clock.AfterFunc(d, func() { order = append(order, fmt.Sprintf("%s@%s", name, tt.Now().Sub(tt.start()))) })
	}
	at("c", 3*time.Second)
	at("a", time.Second)
	stopped := at("never", 2*time.Second)
	at("b", time.Second)
	if !stopped.Stop() || stopped.Stop() {
		t.Fatal("stop of an armed timer must report true, once")
	}
	clock.Linger(time.Hour, func() { order = append(order, "linger") })
	tt.Advance(2 * time.Second)
	if want := []string{"linger", "a@1s", "b@1s"}; !reflect.DeepEqual(order, want) {
		t.Fatalf("order %v, want %v", order, want)
	}
	tt.Advance(time.Second)
	if order[len(order)-1] != "c@3s" || tt.Now().Sub(tt.start()) != 3*time.Second {
		t.Fatalf("order %v at %s", order, tt.Now())
	}
}

// start is when the clock began.
func (t *Tester) start() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) }

// sleeper sleeps in a loop, as an engine that retries does.
type sleeper struct {
	client *kafka.Client
	naps   int
}

func (s *sleeper) Run(ctx context.Context) error {
	for s.client.Driver().Clock().Sleep(ctx, time.Second) == nil {
		s.naps++
	}
	return nil
}

func TestAdvanceOfADayIsQuick(t *testing.T) {
	tt := New(t)
	startToy(tt, "app")
	began := time.Now()
	tt.Advance(24 * time.Hour)
	if took := time.Since(began); took > time.Second {
		t.Fatalf("a day took %s", took)
	}
	if n := len(tt.w.groups["toy"].members); n != 1 {
		t.Fatalf("%d members after a quiet day", n)
	}
}

// A call that waits inside the driver is parked: the world settles, and the
// clock wakes it.
func TestSleepIsVirtual(t *testing.T) {
	tt := New(t)
	var s *sleeper
	app := tt.Start("app", func(i *Instance) ([]reka.Runner, error) {
		s = &sleeper{client: i.Client()}
		return []reka.Runner{counted{i.Client(), s}}, nil
	})
	tt.Advance(10 * time.Second)
	if s.naps != 10 {
		t.Fatalf("%d naps in ten seconds", s.naps)
	}
	if err := app.Stop(); err != nil {
		t.Fatal(err)
	}
}

// counted runs a runner on the calling goroutine and counts it, as an engine
// without a goroutine of its own would.
type counted struct {
	client *kafka.Client
	r      reka.Runner
}

func (c counted) Run(ctx context.Context) error {
	c.client.Driver().Work().Add(1)
	defer c.client.Driver().Work().Add(-1)
	return c.r.Run(ctx)
}

func TestGateParksACallback(t *testing.T) {
	tt := New(t)
	out := Output(tt, shouts)
	gate := tt.NewGate()
	startToy(tt, "app", func(e *toy) {
		e.on = func(r kafka.Record) error {
			if string(r.Value) == "slow" {
				return gate.Wait(e.started)
			}
			return nil
		}
	})
	Input(tt, words).Send("alice", "slow")
	if n := out.Len(); n != 0 || gate.Waiting() != 1 {
		t.Fatalf("%d outputs, %d at the gate", n, gate.Waiting())
	}
	gate.Open()
	if n := out.Len(); n != 1 {
		t.Fatalf("%d outputs after the gate was opened", n)
	}
}

func TestHandles(t *testing.T) {
	tt := New(t, WithPartitions(2))
	in, out := Input(tt, words), Output(tt, words)
	in.Send("a", "1", reka.WithHeader("h", []byte("x")), reka.ToPartition(1))
	in.Delete("a")
	in.Send("", "nobody", reka.NullKey())
	tt.SendRaw("words", 0, kafka.Record{Key: []byte{}, Value: []byte{}, Timestamp: -1})
	all := out.All()
	if len(all) != 4 || out.Len() != 4 {
		t.Fatalf("%d records", len(all))
	}
	if h, ok := all[0].Header("h"); !ok || string(h) != "x" || all[0].Partition != 1 || all[0].Value != "1" {
		t.Fatalf("first record %+v", all[0])
	}
	if !all[1].Null || all[1].NullKey || !all[2].NullKey || all[3].Null || all[3].NullKey {
		t.Fatalf("nulls are mixed up: %+v", all[1:])
	}
	if !all[3].Time.Equal(tt.Now()) {
		t.Fatalf("time %s", all[3].Time)
	}
	rows := reka.NewTable("rows", number{})
	table, w := Table(tt, rows), Input(tt, rows)
	w.Send("x", 1)
	w.Send("y", 2)
	w.Send("x", 3)
	w.Delete("y")
	if got := table.All(); !reflect.DeepEqual(got, map[string]int64{"x": 3}) {
		t.Fatalf("rows %v", got)
	}
	w.Send("z", 9)
	if got := table.Keys(); !reflect.DeepEqual(got, []string{"x", "z"}) {
		t.Fatalf("keys %v", got)
	}
	if _, ok := table.Get("y"); ok {
		t.Fatal("a deleted row is there")
	}
}

func TestErrReportsARunnerThatFailed(t *testing.T) {
	tt := New(t)
	Output(tt, shouts)
	broken := errors.New("broken callback")
	app := startToy(tt, "app", func(e *toy) {
		e.on = func(kafka.Record) error { return broken }
	})
	if err := app.Err(); err != nil {
		t.Fatalf("error %v before there was one", err)
	}
	Input(tt, words).Send("a", "b")
	if err := app.Err(); !errors.Is(err, broken) {
		t.Fatalf("error %v", err)
	}
}
