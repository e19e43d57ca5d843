package tester

import (
	"container/heap"
	"context"
	"time"

	"github.com/rekastream/reka/kafka"
)

// clock is the world's virtual time. All of it is guarded by world.mu.
type clock struct {
	now     time.Time
	timers  timers
	lingers []*timer // in the order in which they were armed
	armed   int64
}

// timer is one call that waits.
type timer struct {
	inc    *incarnation // whose; nil: the brokers'
	at     time.Time
	seq    int64
	f      func()
	linger bool
	index  int // in timers, -1 if not there
	state  timerState
}

type timerState int8

const (
	armed timerState = iota
	fired
	stopped
)

// held reports whether the timer's process stands still. mu is held.
func (t *timer) held() bool { return t.inc != nil && t.inc.paused }

// arm adds a timer. mu is held. In a process that is dead nothing is waited
// for any more, so that what is left of it ends.
func (w *world) arm(inc *incarnation, d time.Duration, linger bool, f func()) *timer {
	if inc != nil && inc.dead {
		d = 0
	}
	c := &w.clock
	c.armed++
	t := &timer{inc: inc, at: c.now.Add(max(d, 0)), seq: c.armed, f: f, linger: linger, index: -1}
	if linger {
		c.lingers = append(c.lingers, t)
	} else {
		heap.Push(&c.timers, t)
	}
	w.changed()
	return t
}

// stop takes a timer back. mu is held.
func (c *clock) stop(t *timer) bool {
	if t.state != armed {
		return false
	}
	t.state = stopped
	if t.index >= 0 {
		heap.Remove(&c.timers, t.index)
		return true
	}
	for i, l := range c.lingers {
		if l == t {
			c.lingers = append(c.lingers[:i], c.lingers[i+1:]...)
			break
		}
	}
	return true
}

// first returns the first timer that may fire at to or before.
func (c *clock) first(to time.Time) *timer {
	if len(c.timers) == 0 || c.timers[0].at.After(to) {
		return nil
	}
	if !c.timers[0].held() {
		return c.timers[0]
	}
	var best *timer // the process of the first one stands still: rare
	for _, t := range c.timers {
		if !t.held() && !t.at.After(to) && (best == nil || t.before(best)) {
			best = t
		}
	}
	return best
}

// takeUntil takes the first timer that is due at to or before, and moves the
// clock to its time.
func (c *clock) takeUntil(to time.Time) *timer {
	t := c.first(to)
	if t == nil {
		return nil
	}
	heap.Remove(&c.timers, t.index)
	t.state = fired
	c.moveTo(t.at)
	return t
}

// takeNext is takeUntil without an end.
func (c *clock) takeNext() *timer { return c.takeUntil(c.now.Add(100 * 365 * 24 * time.Hour)) }

func (c *clock) takeDue() *timer { return c.takeUntil(c.now) }

func (c *clock) hasDue() bool {
	if c.first(c.now) != nil {
		return true
	}
	for _, t := range c.lingers {
		if !t.held() {
			return true
		}
	}
	return false
}

// takeLinger takes the linger that was armed first. Nothing more is coming,
// so there is nothing to wait for.
func (c *clock) takeLinger() *timer {
	for i, t := range c.lingers {
		if t.held() {
			continue
		}
		c.lingers = append(c.lingers[:i], c.lingers[i+1:]...)
		t.state = fired
		return t
	}
	return nil
}

// hurry makes all timers of a dead process due now.
func (c *clock) hurry(inc *incarnation) {
	for _, t := range c.timers {
		if t.inc == inc && t.at.After(c.now) {
			t.at = c.now
		}
	}
	heap.Init(&c.timers)
}

func (c *clock) moveTo(t time.Time) {
	if t.After(c.now) {
		c.now = t
	}
}

// timers is a heap.
type timers []*timer

func (t *timer) before(u *timer) bool {
	if !t.at.Equal(u.at) {
		return t.at.Before(u.at)
	}
	return t.seq < u.seq
}

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].before(h[j]) }
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push and Pop are for package heap.
func (h *timers) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop removes the last one.
func (h *timers) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}

// incClock is the kafka.Clock of one incarnation.
type incClock struct{ inc *incarnation }

func (c incClock) Now() time.Time {
	w := c.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock.now
}

func (c incClock) AfterFunc(d time.Duration, f func()) kafka.Timer { return c.arm(d, false, f) }

func (c incClock) Linger(d time.Duration, f func()) kafka.Timer { return c.arm(d, true, f) }

func (c incClock) arm(d time.Duration, linger bool, f func()) kafka.Timer {
	w := c.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	return worldTimer{w, w.arm(c.inc, d, linger, f)}
}

func (c incClock) Sleep(ctx context.Context, d time.Duration) error {
	return c.inc.sleep(ctx, d)
}

// worldTimer is the kafka.Timer that is handed out.
type worldTimer struct {
	w *world
	t *timer
}

func (t worldTimer) Stop() bool {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.w.clock.stop(t.t)
}
