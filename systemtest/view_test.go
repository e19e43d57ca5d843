package systemtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/badgerstore"
	"github.com/rekastream/reka/view"
)

// states notes the states of a view.
type states struct {
	mu  sync.Mutex
	all []view.State // guarded by mu
}

func (s *states) note(st view.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, st)
}

// seen returns the states so far, without restoring: whether there is
// something to restore is a matter of luck.
func (s *states) seen() []view.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.all), func(st view.State) bool { return st == view.Restoring })
}

// runView runs a view until stop is called, which returns what Run did.
func runView[T any](t *testing.T, c *kafka.Client, table reka.Table[T], opts ...view.Option) (v *view.View[T], stop func() error) {
	t.Helper()
	v, err := view.New(c, table, opts...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	result := make(chan error, 1)
	go func() { result <- v.Run(ctx) }() // stop waits
	return v, sync.OnceValue(func() error {
		cancel()
		return <-result
	})
}

// emitAll writes rows to a table and waits until they are written.
func emitAll(t *testing.T, c *kafka.Client, table reka.Table[int64], rows map[string]int64) {
	t.Helper()
	e, err := emitter.New(c, table)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for k, v := range rows {
		if _, err := e.Emit(ctx, k, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// has waits until a view has a row.
func has(t *testing.T, v *view.View[int64], key string, want int64) {
	t.Helper()
	until(t, func() bool {
		got, ok, err := v.Get(key)
		return got == want && ok && err == nil
	}, func() string { got, ok, err := v.Get(key); return fmt.Sprint(key, " is ", got, ok, err) })
}

func TestViewAnswersWhileTheBrokersAreAwayAndItsStateTells(t *testing.T) {
	b := onFake(t)
	c := b.client(t)
	table := reka.NewTable(unique(t, "table"), codec.Int64())
	b.topics(t, c, 2, table.Name())
	emitAll(t, c, table, map[string]int64{"a": 1})
	var s states
	v, stop := runView(t, c, table, view.WithStorage(storage.Memory()),
		view.WithProbeInterval(200*time.Millisecond), view.WithStateObserver(s.note))
	defer func() { _ = stop() }()
	has(t, v, "a", 1)
	b.outage(t, func() {
		for end := time.Now().Add(4 * time.Second); time.Now().Before(end); moment(t, 20*time.Millisecond) {
			if got, ok, err := v.Get("a"); got != 1 || !ok || err != nil {
				t.Fatalf("Get while the brokers are away: %d, %v, %v", got, ok, err)
			}
			rows := 0
			for _, err := range v.All() {
				if err != nil {
					t.Fatalf("scan while the brokers are away: %v", err)
				}
				rows++
			}
			if rows != 1 {
				t.Fatalf("a scan while the brokers are away has %d rows", rows)
			}
		}
		if v.State() != view.Connecting || !v.Ready() {
			t.Errorf("state %v, ready %v, want connecting and ready", v.State(), v.Ready())
		}
	})
	emitAll(t, c, table, map[string]int64{"a": 2})
	has(t, v, "a", 2)
	until(t, func() bool { return v.State() == view.Ready }, func() string { return fmt.Sprint("state ", v.State()) })
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	want := []view.State{view.Connecting, view.Ready, view.Connecting, view.Ready}
	if got := s.seen(); !slices.Equal(got[:min(len(got), 4)], want) || len(got) > 5 { // and idle
		t.Errorf("states %v, want %v", got, want)
	}
}

func TestViewStartedWithoutBrokersHasItsLocalCopy(t *testing.T) {
	b := onFake(t)
	c := b.client(t)
	table := reka.NewTable(unique(t, "table"), codec.Int64())
	b.topics(t, c, 2, table.Name())
	rows := map[string]int64{}
	for i := range int64(100) {
		rows[fmt.Sprint("k", i)] = i
	}
	emitAll(t, c, table, rows)
	dirs := map[bool]string{true: t.TempDir(), false: t.TempDir()}
	for _, dir := range dirs {
		v, stop := runView(t, c, table, view.WithStorage(badgerstore.In(dir)))
		has(t, v, "k99", 99)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	views := map[bool]*view.View[int64]{}
	b.outage(t, func() {
		for localFirst, dir := range dirs {
			opts := []view.Option{view.WithStorage(badgerstore.In(dir))}
			if localFirst {
				opts = append(opts, view.WithLocalFirst())
			}
			v, stop := runView(t, b.client(t), table, opts...)
			t.Cleanup(func() {
				if err := stop(); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
			views[localFirst] = v
		}
		has(t, views[true], "k42", 42)
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); moment(t, 50*time.Millisecond) {
			if _, _, err := views[false].Get("k42"); !errors.Is(err, view.ErrNotReady) {
				t.Fatalf("Get without local first: %v, want not ready", err)
			}
			if got, ok, err := views[true].Get("k42"); got != 42 || !ok || err != nil {
				t.Fatalf("Get with local first: %d, %v, %v", got, ok, err)
			}
		}
	})
	for _, v := range views {
		until(t, func() bool { return v.State() == view.Ready }, func() string { return fmt.Sprint("state ", v.State()) })
		has(t, v, "k42", 42)
	}
}
