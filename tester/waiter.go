package tester

import (
	"context"
	"time"

	"github.com/rekastream/reka/kafka"
)

// waiter is a goroutine of an incarnation that is parked inside a call of
// the driver. Whoever wakes it counts it as running again.
type waiter struct {
	inc   *incarnation
	ctx   context.Context
	pause bool       // waits for Resume
	woken chan error // capacity 1: sent to once
	timer *timer
}

// wakeWaiter ends a wait. Waking twice does nothing. mu is held.
func (w *world) wakeWaiter(wt *waiter, err error) {
	if _, ok := w.waiters[wt]; !ok {
		return
	}
	delete(w.waiters, wt)
	if wt.timer != nil {
		w.clock.stop(wt.timer)
	}
	wt.inc.work.Add(1)
	wt.woken <- err
}

// park waits until the waiter is woken. It is called with mu held, after
// what wakes it was set up, and unlocks it.
func (w *world) park(wt *waiter) error {
	w.waiters[wt] = struct{}{}
	wt.inc.work.Add(-1)
	w.mu.Unlock()
	stop := context.AfterFunc(wt.ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wakeWaiter(wt, wt.ctx.Err())
	})
	err := <-wt.woken
	stop()
	return err
}

// sleep waits for d of virtual time.
func (inc *incarnation) sleep(ctx context.Context, d time.Duration) error {
	w := inc.w
	w.mu.Lock()
	if err := inc.usable(ctx); err != nil {
		w.mu.Unlock()
		return err
	}
	wt := &waiter{inc: inc, ctx: ctx, woken: make(chan error, 1)}
	wt.timer = w.arm(inc, d, false, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wakeWaiter(wt, nil)
	})
	return w.park(wt)
}

// enter waits while the process is paused. It returns ErrClosed once it is
// dead.
func (inc *incarnation) enter(ctx context.Context) error {
	w := inc.w
	for {
		w.mu.Lock()
		if err := inc.usable(ctx); err != nil || !inc.paused {
			w.mu.Unlock()
			return err
		}
		if err := w.park(&waiter{inc: inc, ctx: ctx, pause: true, woken: make(chan error, 1)}); err != nil {
			return err
		}
	}
}

// usable reports why a call cannot be made. mu is held.
func (inc *incarnation) usable(ctx context.Context) error {
	if inc.dead || inc.closed {
		return kafka.ErrClosed
	}
	return ctx.Err()
}
