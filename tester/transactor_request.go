package tester

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rekastream/reka/kafka"
)

// errUnanswered: a request may have been carried out, may yet be, or was
// lost. Nobody told.
var errUnanswered = errors.New("the request was not answered")

// usable reports why a step cannot be made. mu is held.
func (t *transactor) usable(ctx context.Context) error {
	if t.closed {
		return kafka.ErrClosed
	}
	return t.inc.usable(ctx)
}

// doubt notes an unanswered request.
func (t *transactor) doubt() {
	t.inc.w.mu.Lock()
	defer t.inc.w.mu.Unlock()
	t.inDoubt = true
}

// waiter is for parking the goroutine that makes the steps. mu is held.
func (t *transactor) waiter(ctx context.Context) *waiter {
	t.parked = &waiter{inc: t.inc, ctx: ctx, woken: make(chan error, 1)}
	return t.parked
}

// patient makes a request, again and again while the transaction before is
// still ending.
func (t *transactor) patient(ctx context.Context, c Call, effect func() error) error {
	for {
		err := t.request(ctx, c, effect)
		if !errors.Is(err, errConcurrent) {
			return err
		}
		if err := t.awaitMarkers(ctx); err != nil {
			return fmt.Errorf("%w: %w", errConcurrent, err)
		}
	}
}

// awaitMarkers waits until the transaction that was decided has ended.
func (t *transactor) awaitMarkers(ctx context.Context) error {
	w := t.inc.w
	w.mu.Lock()
	c := w.coordination(t.cfg.ID)
	if err := t.usable(ctx); err != nil || !c.ended() {
		w.mu.Unlock()
		return err
	}
	wt := t.waiter(ctx)
	c.waiting = append(c.waiting, func() { w.wakeWaiter(wt, nil) })
	return w.park(wt)
}

// request makes one blocking request. effect is called with world.mu held.
func (t *transactor) request(ctx context.Context, c Call, effect func() error) error {
	if err := t.inc.enter(ctx); err != nil {
		return err
	}
	w := t.inc.w
	w.mu.Lock()
	err := t.usable(ctx)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	answered := make(chan error, 1) // filled with mu held, before the waiter is woken
	a := t.decide(c)
	if a.kind != delayed {
		t.now(a, func(half bool) error {
			if half {
				return nil
			}
			return effect()
		}, func(err error) { answered <- err })
		return <-answered
	}
	w.mu.Lock()
	wt := t.waiter(ctx)
	w.arm(nil, a.delay, false, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		answered <- effect()
		w.arm(t.inc, 0, false, func() { // when its process is not paused
			w.mu.Lock()
			defer w.mu.Unlock()
			w.wakeWaiter(wt, nil)
		})
	})
	if err := w.park(wt); err != nil {
		t.doubt()
		return fmt.Errorf("%w: %w", errUnanswered, err)
	}
	return <-answered
}

// decide asks the faults about one request.
func (t *transactor) decide(c Call) Action {
	c.Instance, c.Transaction = t.inc.name, t.cfg.ID
	return t.inc.w.decide(c)
}

// now makes one request that no fault delays. answer is called before now
// returns; effect, with world.mu held and with half set if the process dies
// in the middle of it, perhaps later.
func (t *transactor) now(a Action, effect func(half bool) error, answer func(error)) {
	w := t.inc.w
	do := func(half bool) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		return effect(half)
	}
	switch a.kind {
	case failBefore:
		answer(a.err)
	case failAfter:
		_ = do(false) // whatever it is, nobody learns of it
		t.doubt()
		answer(fmt.Errorf("%w: %w", errUnanswered, a.err))
	case lost:
		t.doubt()
		answer(errUnanswered)
	case late:
		t.later(a.delay, effect)
		t.doubt()
		answer(errUnanswered)
	case crashBefore:
		t.inc.kill()
		answer(kafka.ErrClosed)
	case crashWithin, crashAfter:
		_ = do(a.kind == crashWithin) // nobody is left to learn of it
		t.inc.kill()
		answer(kafka.ErrClosed)
	default:
		answer(do(false))
	}
}

// later lets a request arrive when its sender has given up.
func (t *transactor) later(d time.Duration, effect func(half bool) error) {
	w := t.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arm(nil, d, false, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		_ = effect(false) // nobody waits for its answer
	})
}
