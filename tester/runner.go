package tester

import (
	"context"
	"slices"

	"github.com/rekastream/reka"
)

// runner is a reka.Runner of an incarnation. It counts as running until it
// is first seen parked: by then what it started counts for itself. The runners
// of an incarnation begin one after the other, each when the one before it has
// parked, so that a start is the same every time.
type runner struct {
	inc  *incarnation
	r    reka.Runner
	turn chan struct{} // closed when it may begin

	goroutine int64 // guarded by world.mu; 0 before it runs
}

// run runs the runners as reka.Run does, until the incarnation ends.
func (inc *incarnation) run(rs []reka.Runner) {
	ctx, cancel := context.WithCancel(context.Background())
	w := inc.w
	w.mu.Lock()
	inc.cancel, inc.done = cancel, make(chan struct{})
	if inc.dead {
		cancel()
	}
	wrapped := make([]reka.Runner, len(rs))
	for i, r := range rs {
		x := &runner{inc: inc, r: r, turn: make(chan struct{})}
		wrapped[i] = x
		inc.all = append(inc.all, x)
		inc.queue = append(inc.queue, x)
	}
	w.nextRunner(inc)
	w.mu.Unlock()
	go func() { // ends with the runners; whoever ends the instance waits
		inc.err = reka.Run(ctx, wrapped...)
		close(inc.done)
		w.wake()
	}()
}

// Run implements reka.Runner.
func (x *runner) Run(ctx context.Context) error {
	w := x.inc.w
	w.mu.Lock()
	x.goroutine = goroutine()
	w.mu.Unlock()
	select {
	case <-x.turn:
	case <-ctx.Done():
	}
	err := x.r.Run(ctx) // with an ended context too: it must end by itself then
	if err != nil {
		x.inc.failed.Store(true)
	}
	w.mu.Lock()
	w.begun(x)
	w.mu.Unlock()
	w.wake()
	return err
}

// begun takes a runner off the counts and lets the next one begin. mu is
// held.
func (w *world) begun(x *runner) {
	i := slices.Index(w.runners, x)
	if i < 0 {
		return
	}
	w.runners = slices.Delete(w.runners, i, i+1)
	w.started(1)
	w.nextRunner(x.inc)
}

// nextRunner gives the next runner of an incarnation its turn. mu is held.
func (w *world) nextRunner(inc *incarnation) {
	if len(inc.queue) == 0 {
		return
	}
	x := inc.queue[0]
	inc.queue = inc.queue[1:]
	w.runners = append(w.runners, x)
	w.starting.Add(1)
	w.running.Add(1)
	close(x.turn)
}

// runnersRest reports whether the goroutines of all runners wait or have
// ended: one whose engine came to an end is about to return.
func (inc *incarnation) runnersRest() bool {
	inc.w.mu.Lock()
	ids := make([]int64, 0, len(inc.all))
	for _, x := range inc.all {
		ids = append(ids, x.goroutine)
	}
	inc.w.mu.Unlock()
	return parked(ids...)
}

// started takes n runners off the counts. mu is held.
func (w *world) started(n int64) {
	w.starting.Add(-n)
	w.running.Add(-n)
	w.activity.Add(1)
}

// releaseStarted stops counting the goroutines of runners once all of them
// are parked. It reports false if one of them is not.
func (w *world) releaseStarted() bool {
	w.mu.Lock()
	all := slices.Clone(w.runners)
	ids := make([]int64, 0, len(all))
	for _, x := range all {
		if x.goroutine == 0 {
			w.mu.Unlock()
			return false
		}
		ids = append(ids, x.goroutine)
	}
	w.mu.Unlock()
	before := w.activity.Load()
	if !parked(ids...) || w.activity.Load() != before {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range all {
		w.begun(x)
	}
	return true
}
