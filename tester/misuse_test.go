package tester

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// failing is a testing.TB that keeps what would fail a test.
type failing struct {
	testing.TB

	mu       sync.Mutex
	messages []string
	cleanups []func()
}

func (f *failing) Helper()             {}
func (f *failing) Logf(string, ...any) {}
func (f *failing) Name() string        { return "failing" }
func (f *failing) Cleanup(c func())    { f.cleanups = append(f.cleanups, c) }

func (f *failing) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages = append(f.messages, fmt.Sprintf(format, args...))
}

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *failing) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.messages) > 0
}

// failureOf runs a test and its cleanups, and returns how it failed.
func failureOf(test func(tt *Tester)) string {
	f := &failing{}
	run := func(what func()) {
		done := make(chan struct{})
		go func() { // ends with what, which may end it by Fatalf
			defer close(done)
			what()
		}()
		<-done
	}
	run(func() {
		tt := New(f)
		tt.patience = 200 * time.Millisecond
		test(tt)
	})
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		run(f.cleanups[i])
	}
	return strings.Join(f.messages, "\n")
}

func wantFailure(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Fatalf("failure %.2000q does not say %q", got, p)
		}
	}
}

func TestGoodTestsDoNotFail(t *testing.T) {
	if got := failureOf(func(tt *Tester) { startToy(tt, "app"); sendWords(tt, 0, 10) }); got != "" {
		t.Fatal(got)
	}
}

// A callback that waits for something real keeps the world from settling:
// the failure shows where.
func TestStuckCallbackIsReported(t *testing.T) {
	stuck := make(chan struct{})
	got := failureOf(func(tt *Tester) {
		startToy(tt, "app", func(e *toy) { e.on = func(kafka.Record) error { <-stuck; return nil } })
		sendWords(tt, 0, 1)
		defer close(stuck)
		tt.Settle()
	})
	wantFailure(t, got, "did not settle", "app#1", "1 running", "TestStuckCallbackIsReported")
}

func TestUnaskedErrorIsReported(t *testing.T) {
	got := failureOf(func(tt *Tester) {
		startToy(tt, "app", func(e *toy) { e.on = func(kafka.Record) error { return errors.New("broken callback") } })
		sendWords(tt, 0, 1)
		tt.Settle()
	})
	wantFailure(t, got, "instance app ended with", "broken callback")
}

func TestBuildErrorIsReported(t *testing.T) {
	got := failureOf(func(tt *Tester) {
		tt.Start("app", func(*Instance) ([]reka.Runner, error) { return nil, errors.New("no such thing") })
	})
	wantFailure(t, got, "start app", "no such thing")
}

// runnerFunc is a reka.Runner.
type runnerFunc func(context.Context) error

func (f runnerFunc) Run(ctx context.Context) error { return f(ctx) }

func TestLeftoverGoroutineIsReported(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	got := failureOf(func(tt *Tester) {
		tt.Start("app", func(*Instance) ([]reka.Runner, error) {
			return []reka.Runner{runnerFunc(func(ctx context.Context) error {
				go func() { <-release }() // outlives the runner: that is the fault
				<-ctx.Done()
				return nil
			})}, nil
		})
	})
	wantFailure(t, got, "instance app left goroutines behind", "TestLeftoverGoroutineIsReported")
}

func TestGoroutineThatOutlivesItsCrashIsReported(t *testing.T) {
	release := make(chan struct{})
	got := failureOf(func(tt *Tester) {
		app := tt.Start("app", func(*Instance) ([]reka.Runner, error) {
			return []reka.Runner{runnerFunc(func(context.Context) error { <-release; return nil })}, nil
		})
		defer close(release)
		app.Crash()
	})
	wantFailure(t, got, "instance app did not end after its crash", "TestGoroutineThatOutlivesItsCrashIsReported")
}

// A goroutine that parks without having been counted would make the count
// worthless.
func TestUncountedGoroutineIsReported(t *testing.T) {
	var box *work.Mailbox[int]
	got := failureOf(func(tt *Tester) {
		tt.Start("app", func(i *Instance) ([]reka.Runner, error) {
			box = work.NewMailbox[int](i.Client().Driver().Work())
			return []reka.Runner{runnerFunc(func(ctx context.Context) error {
				defer context.AfterFunc(ctx, box.Close)()
				box.Take()
				return nil
			})}, nil
		})
	})
	wantFailure(t, got, "parked that were never counted")
}

func TestUndecodableValueIsReported(t *testing.T) {
	rows := reka.NewTable("rows", number{})
	got := failureOf(func(tt *Tester) {
		table := Table(tt, rows)
		tt.SendRaw("rows", 2, kafka.Record{Key: []byte("k"), Value: []byte("short")})
		table.Get("k")
	})
	wantFailure(t, got, `rows/2@0 key "k"`, "5 bytes")
}
