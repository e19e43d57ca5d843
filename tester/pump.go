package tester

import (
	"time"
)

// pump makes things happen, one at a time and only while no goroutine of the
// engine runs, until the world is closed. It is the only goroutine that
// delivers, fires timers and answers group requests.
func (w *world) pump() {
	defer close(w.ended)
	naps := 0 // in a row, with nothing done
	for {
		w.mu.Lock()
		if w.closing {
			w.mu.Unlock()
			return
		}
		if w.running.Load() > w.starting.Load() || w.wakeCancelled() {
			w.mu.Unlock()
			<-w.kick
			continue
		}
		if len(w.runners) > 0 {
			w.mu.Unlock()
			if !w.releaseStarted() {
				naps++
				w.nap(naps)
			}
			continue
		}
		if !w.mayMove() {
			if !w.pending() {
				w.idle = true
				w.mu.Unlock()
				<-w.kick
				naps = 0
				continue
			}
			driver := w.driver
			w.mu.Unlock()
			if naps++; !parked(driver) && naps < heldNaps {
				w.nap(naps)
				continue
			}
			w.mu.Lock()
		}
		// All of what follows unlocks mu.
		if w.step() || w.drive() {
			naps = 0
			continue
		}
		if naps++; w.rest(naps) {
			naps = 0
		}
	}
}

// A pump that must not move yet looks again after a nap. heldNaps is how
// often it does so before it moves although the test's goroutine seems to be
// running: it may be polling something without ever waiting.
const (
	firstNap = 20 * time.Microsecond
	longNap  = 5 * time.Millisecond
	heldNaps = 200
)

// nap waits a moment of real time, or for a kick.
func (w *world) nap(n int) {
	d := firstNap << min(n, 8)
	t := time.NewTimer(min(d, longNap))
	defer t.Stop()
	select {
	case <-w.kick:
	case <-t.C:
	}
}

// step does the next thing that is due now, if there is one. It is called
// with mu held and unlocks it.
func (w *world) step() bool {
	if f := w.nextDelivery(); f != nil {
		w.mu.Unlock()
		f.deliver()
		return true
	}
	if m := w.nextMarker(); m != nil {
		w.mu.Unlock()
		w.writeMarker(m)
		return true
	}
	for _, g := range w.sortedGroups() {
		if g.step() {
			w.mu.Unlock()
			return true
		}
	}
	if t := w.clock.takeDue(); t != nil {
		w.mu.Unlock()
		t.f()
		return true
	}
	if t := w.clock.takeLinger(); t != nil {
		w.mu.Unlock()
		t.f()
		return true
	}
	w.mu.Unlock()
	return false
}

// pending reports whether step would do something. mu is held.
func (w *world) pending() bool {
	if w.nextDelivery() != nil || w.nextMarker() != nil || w.clock.hasDue() {
		return true
	}
	for _, g := range w.groups {
		if g.pending() {
			return true
		}
	}
	return false
}

// wakeCancelled wakes sleepers whose context has ended: the goroutine that
// ended it may have parked before they could count themselves. mu is held.
func (w *world) wakeCancelled() bool {
	woken := false
	for wt := range w.waiters {
		if err := wt.ctx.Err(); err != nil {
			w.wakeWaiter(wt, err)
			woken = true
		}
	}
	return woken
}
