package reka_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rekastream/reka"
)

// runnerFunc makes a function a Runner.
type runnerFunc func(context.Context) error

func (f runnerFunc) Run(ctx context.Context) error { return f(ctx) }

// ends collects the names of runners in the order in which they ended.
type ends struct {
	mu    sync.Mutex
	names []string
}

func (e *ends) runner(name string, err error) reka.Runner {
	return runnerFunc(func(ctx context.Context) error {
		<-ctx.Done()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.names = append(e.names, name)
		return err
	})
}

func TestRunStopsTheLastFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var e ends
	if err := reka.Run(ctx, e.runner("a", nil), e.runner("b", nil), e.runner("c", nil)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"c", "b", "a"}; !slices.Equal(e.names, want) {
		t.Fatalf("ended in the order %v, want %v", e.names, want)
	}
}

func TestRunEndsAllWhenOneEndsAndJoinsTheErrors(t *testing.T) {
	broken, late := errors.New("broken"), errors.New("late")
	var e ends
	one := runnerFunc(func(context.Context) error { return broken })
	err := reka.Run(t.Context(), e.runner("a", late), one)
	if !errors.Is(err, broken) || !errors.Is(err, late) {
		t.Fatalf("error %v, want both", err)
	}
	done := runnerFunc(func(context.Context) error { return nil })
	if err := reka.Run(t.Context(), e.runner("b", nil), done); err != nil {
		t.Fatalf("error %v after a runner that ended by itself without one", err)
	}
	if want := []string{"a", "b"}; !slices.Equal(e.names, want) {
		t.Fatalf("ended: %v, want %v", e.names, want)
	}
}

func TestRunKeepsTheValuesOfItsContext(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "here")
	err := reka.Run(ctx, runnerFunc(func(ctx context.Context) error {
		if ctx.Value(key{}) != "here" {
			return errors.New("the value is gone")
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
}

func TestRunOfANilRunnerRunsNothing(t *testing.T) {
	started := runnerFunc(func(context.Context) error {
		t.Error("a runner was started")
		return nil
	})
	err := reka.Run(t.Context(), started, nil)
	if err == nil || !strings.Contains(err.Error(), "runner 1 is nil") {
		t.Fatalf("error %v, want one that names the nil runner", err)
	}
	if err := reka.Run(t.Context()); err != nil {
		t.Fatalf("error %v of a Run of nothing", err)
	}
}
