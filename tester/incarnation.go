package tester

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// incarnation is one life of a process: what an instance is between Start,
// or Restart, and its end. It is a kafka.Driver.
//
// It is alive, may be paused for a while, and ends closed (its code came to
// an end) or dead (it crashed). A dead one has no effect on anything outside
// any more: every call answers ErrClosed, and its timers fire at once so
// that its goroutines end.
type incarnation struct {
	// Fixed after newIncarnation.
	w    *world
	name string
	life int // counts the instance's incarnations, from 1
	work counter

	// Guarded by world.mu.
	dead, paused, closed bool
	queue                []*runner          // that have not begun
	cancel               context.CancelFunc // ends the runners; nil before they run
	members              []*member
	producers            []*producer
	transactors          []*transactor
	fetchers             []*fetcher
	stores               []*guardStore

	// Set by run.
	done   chan struct{} // closed when all runners have returned
	all    []*runner     // fixed by run
	err    error         // of the runners; read after done
	failed atomic.Bool   // a runner returned an error
}

func (w *world) newIncarnation(name string, life int) *incarnation {
	inc := &incarnation{w: w, name: name, life: life}
	inc.work.w = w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.incs = append(w.incs, inc)
	return inc
}

// label tells the incarnation's goroutines apart from all others of the
// process that the test runs in.
func (inc *incarnation) label() string {
	return fmt.Sprintf("%s#%d@%d", inc.name, inc.life, inc.w.number)
}

// Clock implements kafka.Driver.
func (inc *incarnation) Clock() kafka.Clock { return incClock{inc} }

// Work implements kafka.Driver.
func (inc *incarnation) Work() work.Counter { return &inc.work }

// Admin implements kafka.Driver.
func (inc *incarnation) Admin() kafka.Admin { return admin{inc} }

// Close implements kafka.Driver.
func (inc *incarnation) Close() error {
	w := inc.w
	w.mu.Lock()
	members, fetchers, producers := slices.Clone(inc.members), slices.Clone(inc.fetchers), slices.Clone(inc.producers)
	transactors := slices.Clone(inc.transactors)
	w.mu.Unlock()
	for _, m := range members {
		_ = m.Close() // never fails
	}
	for _, f := range fetchers {
		_ = f.Close() // never fails
	}
	for _, p := range producers {
		_ = p.Close() // never fails
	}
	for _, t := range transactors {
		_ = t.Close() // never fails
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	inc.closed = true
	inc.forget()
	return nil
}

// forget takes the incarnation out of the world. mu is held.
func (inc *incarnation) forget() {
	w := inc.w
	if i := slices.Index(w.incs, inc); i >= 0 {
		w.incs = slices.Delete(w.incs, i, i+1)
	}
	for wt := range w.waiters {
		if wt.inc == inc {
			w.wakeWaiter(wt, kafka.ErrClosed)
		}
	}
}

// kill is the death of the process. It does not wait for its goroutines and
// may be called by one of them.
func (inc *incarnation) kill() {
	w := inc.w
	w.mu.Lock()
	if inc.dead || inc.closed {
		w.mu.Unlock()
		return
	}
	inc.dead, inc.paused = true, false
	for _, m := range inc.members {
		m.silence()
	}
	w.follows = slices.DeleteFunc(w.follows, func(f *follower) bool { return f.f.inc == inc })
	w.clock.hurry(inc)
	inc.forget()
	cancel, members, producers, transactors := inc.cancel, inc.members, inc.producers, inc.transactors
	w.changed()
	w.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	for _, m := range members {
		m.end()
	}
	for _, p := range producers {
		p.fail(kafka.ErrClosed)
	}
	for _, t := range transactors {
		t.giveUp(kafka.ErrClosed, true)
	}
	w.wake()
}

// isDead reports whether the process has crashed.
func (inc *incarnation) isDead() bool {
	inc.w.mu.Lock()
	defer inc.w.mu.Unlock()
	return inc.dead
}
