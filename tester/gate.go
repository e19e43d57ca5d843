package tester

import (
	"context"
	"slices"
)

// Gate is something that code under test waits for, in a callback, until the
// test opens it. Unlike a channel it does not keep the world from settling.
type Gate struct {
	w *world

	// Guarded by world.mu.
	open    bool
	waiters []chan struct{} // in the order in which they came
}

// NewGate returns a closed gate.
func (t *Tester) NewGate() *Gate { return &Gate{w: t.w} }

// Wait waits, in a callback of an instance, until the gate is open or ctx
// has ended, whose error it returns.
func (g *Gate) Wait(ctx context.Context) error {
	w := g.w
	w.mu.Lock()
	if g.open {
		w.mu.Unlock()
		return nil
	}
	c := make(chan struct{})
	g.waiters = append(g.waiters, c)
	w.mu.Unlock()
	w.count(-1)
	stop := context.AfterFunc(ctx, func() { g.release(c) })
	defer stop()
	<-c
	w.mu.Lock()
	defer w.mu.Unlock()
	if g.open {
		return nil
	}
	return ctx.Err()
}

// Waiting returns how many callbacks wait.
func (g *Gate) Waiting() int {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	return len(g.waiters)
}

// Open lets through who waits, and everybody after.
func (g *Gate) Open() {
	g.w.mu.Lock()
	g.open = true
	all := slices.Clone(g.waiters)
	g.w.mu.Unlock()
	for _, c := range all {
		g.release(c)
	}
}

// release wakes one waiter, counted as running again. Twice does nothing.
func (g *Gate) release(c chan struct{}) {
	g.w.mu.Lock()
	i := slices.Index(g.waiters, c)
	if i >= 0 {
		g.waiters = slices.Delete(g.waiters, i, i+1)
	}
	g.w.mu.Unlock()
	if i >= 0 {
		g.w.count(1)
		close(c)
	}
}
