package view

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/rekastream/reka"
)

// Change is a change of one row.
type Change[T any] struct {
	// Row has key, value and time; no value if Deleted or Err.
	Row     reka.Row[T]
	Deleted bool

	// Restoring: read in a restore, not as it happened.
	Restoring bool

	// Reset begins a WatchAll anew: all rows follow, and what is not among
	// them is gone. It stands alone.
	Reset bool

	// Err: the value cannot be decoded. The watch goes on.
	Err error
}

// Watch yields the row of a key as it is once the view is ready (Deleted if
// there is none), and from then on whenever it has changed. Changes that come
// faster than the loop takes them are merged: the last one counts, and may come
// twice. It ends when ctx ends, or with an error when Run has ended. Nothing is left of it
// when the loop is left.
func (v *View[T]) Watch(ctx context.Context, key string) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		w := v.hub.add(key, false)
		defer v.hub.remove(w)
		for {
			c, err := v.current(ctx, key)
			if ctx.Err() != nil || !yield(c, err) || err != nil {
				return
			}
			if !v.wait(ctx, w) {
				v.sayEnd(ctx, yield)
				return
			}
		}
	}
}

// WatchAll yields a Reset and all rows once the view is ready, in no
// particular order, and from then on the rows that have changed, as Watch
// does. If the view had to build its copy anew, or more rows have changed than
// are remembered for a slow loop, it begins again with a Reset.
func (v *View[T]) WatchAll(ctx context.Context) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		w := v.hub.add("", true)
		defer v.hub.remove(w)
		for {
			// What comes before the view is ready is in the Reset that follows.
			if err := v.WaitReady(ctx); err != nil {
				if ctx.Err() == nil {
					yield(Change[T]{}, err)
				}
				return
			}
			keys, reset := w.take()
			if reset && !v.yieldAll(ctx, yield) {
				return
			}
			for _, key := range keys {
				c, err := v.current(ctx, key)
				if ctx.Err() != nil || !yield(c, err) || err != nil {
					return
				}
			}
			if !v.wait(ctx, w) {
				v.sayEnd(ctx, yield)
				return
			}
		}
	}
}

// yieldAll yields a Reset and all rows. It reports whether to go on.
func (v *View[T]) yieldAll(ctx context.Context, yield func(Change[T], error) bool) bool {
	if !yield(Change[T]{Reset: true}, nil) {
		return false
	}
	for row, err := range v.All() {
		c := Change[T]{Row: row}
		switch {
		case errors.Is(err, ErrUndecodable):
			c.Err, err = err, nil
		case errors.Is(err, ErrNotReady):
			return true // built anew, or ended: both are noticed by wait
		}
		if ctx.Err() != nil || !yield(c, err) || err != nil {
			return false
		}
	}
	return true
}

// current is the row as it is, once the view is ready.
func (v *View[T]) current(ctx context.Context, key string) (Change[T], error) {
	for {
		if err := v.WaitReady(ctx); err != nil {
			return Change[T]{}, err
		}
		row, ok, err := v.GetRow(key)
		switch {
		case errors.Is(err, ErrNotReady):
			continue
		case errors.Is(err, ErrUndecodable):
			return Change[T]{Row: reka.Row[T]{Key: key}, Err: err}, nil
		case err != nil:
			return Change[T]{}, err
		case !ok:
			return Change[T]{Row: reka.Row[T]{Key: key}, Deleted: true}, nil
		}
		return Change[T]{Row: row}, nil
	}
}

// wait waits for a change. It reports false when the watch is over.
func (v *View[T]) wait(ctx context.Context, w *watcher) bool {
	select {
	case <-w.signal:
		return ctx.Err() == nil
	case <-ctx.Done():
	case <-v.done:
	}
	return false
}

func (v *View[T]) sayEnd(ctx context.Context, yield func(Change[T], error) bool) {
	if ctx.Err() == nil {
		yield(Change[T]{}, v.WaitReady(ctx))
	}
}

// maxPending is how many changed keys are remembered for a slow WatchAll.
const maxPending = 1 << 16

// hub knows who watches what.
type hub struct {
	watching atomic.Int32 // so that a change that nobody watches costs little

	mu   sync.Mutex
	keys map[string]map[*watcher]struct{}
	all  map[*watcher]struct{}
}

// watcher is one loop.
type watcher struct {
	key    string // of a Watch
	all    bool
	signal chan struct{} // capacity 1: coalesced; the hub sends, nobody closes

	mu      sync.Mutex
	pending map[string]struct{} // keys that have changed, of a WatchAll
	reset   bool
}

func newHub() *hub {
	return &hub{keys: map[string]map[*watcher]struct{}{}, all: map[*watcher]struct{}{}}
}

func (h *hub) add(key string, all bool) *watcher {
	w := &watcher{key: key, all: all, signal: make(chan struct{}, 1), pending: map[string]struct{}{}, reset: true}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watching.Add(1)
	if all {
		h.all[w] = struct{}{}
		return w
	}
	if h.keys[key] == nil {
		h.keys[key] = map[*watcher]struct{}{}
	}
	h.keys[key][w] = struct{}{}
	return w
}

func (h *hub) remove(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watching.Add(-1)
	delete(h.all, w)
	if of := h.keys[w.key]; !w.all && of != nil {
		delete(of, w)
		if len(of) == 0 {
			delete(h.keys, w.key)
		}
	}
}

// notify tells that a row has changed.
func (h *hub) notify(key []byte) {
	if h.watching.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.keys[string(key)] {
		w.wake()
	}
	for w := range h.all {
		w.note(key)
	}
}

// reset tells that any row may have changed.
func (h *hub) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range h.keys {
		for w := range of {
			w.wake()
		}
	}
	for w := range h.all {
		w.mu.Lock()
		w.reset, w.pending = true, map[string]struct{}{}
		w.mu.Unlock()
		w.wake()
	}
}

func (w *watcher) note(key []byte) {
	w.mu.Lock()
	switch _, known := w.pending[string(key)]; {
	case w.reset, known:
	case len(w.pending) >= maxPending:
		w.reset, w.pending = true, map[string]struct{}{}
	default:
		w.pending[string(key)] = struct{}{}
	}
	w.mu.Unlock()
	w.wake()
}

func (w *watcher) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// take returns the keys that have changed since the last take.
func (w *watcher) take() (keys []string, reset bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reset = w.reset
	for key := range w.pending {
		keys = append(keys, key)
	}
	w.reset = false
	clear(w.pending)
	return keys, reset
}
