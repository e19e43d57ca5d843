package view_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
)

// within fails the test if nothing comes of c soon: the only wait in real time.
func within[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(10 * time.Second):
		t.Fatalf("nothing came: %s", what)
	}
	return v
}

func TestWatchOfAKey(t *testing.T) {
	s := newSetup(t, 2)
	s.in.Send("b", 1)
	s.start()
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan view.Change[int64])
	ended := make(chan error, 1)
	go func() { // ends with ctx, waited for below
		var last error
		for c, err := range s.v.Watch(ctx, "a") {
			last = err
			select {
			case got <- c:
			case <-ctx.Done():
			}
		}
		ended <- last
	}()
	if c := within(t, "the row as it is", got); !c.Deleted || c.Row.Key != "a" {
		t.Errorf("%+v", c)
	}
	s.in.Send("b", 2)
	s.in.Send("a", 7)
	s.tt.Settle()
	if c := within(t, "a row", got); c.Deleted || c.Row.Value != 7 {
		t.Errorf("%+v", c)
	}
	for i := range 50 { // the loop does not listen: the last one counts
		s.in.Send("a", int64(i))
		s.tt.Settle()
	}
	c := within(t, "a change", got)
	for n := 0; c.Row.Value != 49; n++ {
		if n > 2 {
			t.Fatalf("changes are not merged: %+v", c)
		}
		c = within(t, "the last change", got)
	}
	cancel()
	if err := within(t, "the end", ended); err != nil {
		t.Error(err)
	}
}

func TestWatchEndsWithTheView(t *testing.T) {
	s := newSetup(t, 1)
	s.start()
	first := make(chan struct{}, 1) // the loop must not wait for the test
	ended := make(chan error, 1)
	go func() { // ends with the view, waited for below
		var last error
		for _, err := range s.v.Watch(context.Background(), "a") {
			last = err
			if err == nil {
				first <- struct{}{}
			}
		}
		ended <- last
	}()
	within(t, "the row as it is", first)
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := within(t, "the end", ended); !errors.Is(err, view.ErrNotReady) {
		t.Errorf("ended with %v", err)
	}
}

func TestWatchAllFollowsTheTable(t *testing.T) {
	s := newSetup(t, 3)
	for i := range 50 {
		s.in.Send(fmt.Sprint("k", i), int64(i))
	}
	s.start()
	var mu sync.Mutex
	var table map[string]int64
	resets := 0
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with ctx, waited for below
		for c, err := range s.v.WatchAll(ctx) {
			if err != nil {
				ended <- err
				return
			}
			mu.Lock()
			switch {
			case c.Reset:
				resets++
				table = map[string]int64{}
			case c.Deleted:
				delete(table, c.Row.Key)
			default:
				table[c.Row.Key] = c.Row.Value
			}
			mu.Unlock()
		}
		ended <- nil
	}()
	same := func(what string, resetsWanted int) {
		t.Helper()
		want := tester.Table(s.tt, counts).All()
		deadline := time.Now().Add(10 * time.Second)
		for {
			mu.Lock()
			ok, n := maps.Equal(table, want) && resets == resetsWanted, resets
			mu.Unlock()
			if ok {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the watch does not see the table (%d resets)", what, n)
			}
			runtime.Gosched()
		}
	}
	same("at first", 1)
	s.in.Send("k7", 700)
	s.in.Delete("k8")
	s.in.Send("new", 1)
	same("changed", 1)
	s.tt.DeleteTopic("counts")
	s.tt.Advance(10 * time.Second)
	s.tt.CreateTopic("counts", 3, "cleanup.policy", "compact")
	s.in.Send("other", 5)
	s.tt.Advance(2 * time.Minute)
	same("built anew", 2)
	cancel()
	if err := within(t, "the end", ended); err != nil {
		t.Error(err)
	}
}

func TestReadersWhileRowsChangeConcurrentSafe(t *testing.T) {
	s := newSetup(t, 3)
	s.start(view.WithFlush(4<<10, time.Hour), view.WithCacheBytes(1))
	for i := range 200 {
		s.in.Send(fmt.Sprintf("k%03d", i), 0)
	}
	s.tt.Settle()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for r := range 8 {
		wg.Go(func() { // ends with stop
			for i := r; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("k%03d", i%200)
				if _, ok, err := s.v.Get(key); !ok || err != nil {
					t.Errorf("Get(%s): %v, %v", key, ok, err)
					return
				}
				if ok, err := s.v.Has(key); !ok || err != nil {
					t.Errorf("Has(%s): %v, %v", key, ok, err)
					return
				}
				if i%20 != 0 {
					continue
				}
				if n := len(collect(t, s.v.All())); n != 200 {
					t.Errorf("a scan has %d rows", n)
					return
				}
			}
		})
	}
	for i := range 3000 {
		s.in.Send(fmt.Sprintf("k%03d", i%200), int64(i))
		if i%50 == 0 {
			s.tt.Settle()
		}
	}
	close(stop)
	wg.Wait()
	s.want("k199", 2999)
}

func TestScansAndWatchesLeaveNothingBehind(t *testing.T) {
	s := newSetup(t, 2)
	s.start()
	for i := range 10 {
		s.in.Send(fmt.Sprint("k", i), int64(i))
	}
	s.tt.Settle()
	round := func(n int) {
		for range n {
			for _, err := range s.v.All() {
				if err != nil {
					t.Fatal(err)
				}
			}
			for range s.v.All() {
				break
			}
			for range s.v.Watch(t.Context(), "k1") {
				break
			}
			for range s.v.WatchAll(t.Context()) {
				break
			}
		}
	}
	measure := func() (heap uint64, goroutines int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	round(1000)
	heap, goroutines := measure()
	round(20000)
	heap2, goroutines2 := measure()
	if goroutines2 > goroutines || heap2 > heap+256<<10 {
		t.Errorf("heap %d → %d, goroutines %d → %d", heap, heap2, goroutines, goroutines2)
	}
}
