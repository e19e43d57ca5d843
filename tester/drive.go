package tester

import (
	"time"
)

// advance is a request to move the clock.
type advance struct {
	to   time.Time
	done chan struct{}
}

// mayMove reports whether somebody who may asked the world to go on. Without
// that the pump waits until the test's goroutine waits for something. mu is
// held.
func (w *world) mayMove() bool {
	return len(w.settlers) > 0 || w.advance != nil || w.open > 0
}

// drive is called when nothing is due now: it moves the clock for an Advance,
// or tells those who wait for the world to settle that it has.
func (w *world) drive() bool {
	w.mu.Lock()
	a := w.advance
	if a == nil {
		settlers := w.settlers
		w.settlers = nil
		w.mu.Unlock()
		for _, s := range settlers {
			close(s)
		}
		return len(settlers) > 0
	}
	if t := w.clock.takeUntil(a.to); t != nil {
		w.mu.Unlock()
		t.f()
		return true
	}
	w.clock.moveTo(a.to)
	w.advance = nil
	w.mu.Unlock()
	close(a.done)
	return true
}

// patientNaps is how long an idle world is watched before time passes for
// those who allowed it: goroutines that are not counted (a context that ends)
// may be about to act.
const patientNaps = 12

// rest is called when there was nothing to do at all. It reports whether it
// let time pass.
func (w *world) rest(naps int) (passed bool) {
	w.mu.Lock()
	if w.timeRuns == 0 {
		if w.running.Load() <= w.starting.Load() && !w.pending() && !w.mayWork() {
			w.idle = true
		}
		idle := w.idle
		w.mu.Unlock()
		if idle {
			<-w.kick
		}
		return false
	}
	if naps >= patientNaps {
		if t := w.clock.takeNext(); t != nil {
			w.mu.Unlock()
			t.f()
			return true
		}
	}
	w.mu.Unlock()
	w.nap(naps)
	return false
}

// mayWork reports whether a request waits that drive would answer. mu is
// held.
func (w *world) mayWork() bool { return len(w.settlers) > 0 || w.advance != nil }

// hold gives the pump permission to move until release is called; time says
// whether time may pass too.
func (w *world) hold(time bool) (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	if time {
		n = 1
	}
	w.open++
	w.timeRuns += n
	w.changed()
	w.wake()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open--
		w.timeRuns -= n
	}
}

// settle returns a channel that is closed once nothing is left to do.
func (w *world) settle() <-chan struct{} {
	c := make(chan struct{})
	w.mu.Lock()
	w.settlers = append(w.settlers, c)
	w.changed()
	w.mu.Unlock()
	w.wake()
	return c
}

// move asks for the clock to be moved to a time, settling on the way. One at
// a time.
func (w *world) move(to time.Time) <-chan struct{} {
	a := &advance{to: to, done: make(chan struct{})}
	w.mu.Lock()
	w.advance = a
	w.changed()
	w.mu.Unlock()
	w.wake()
	return a.done
}
