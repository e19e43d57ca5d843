package emitter

import (
	"context"
	"sync/atomic"
)

// flushing is one call of Flush. The owner counts down its batches.
type flushing struct {
	left int
	gone atomic.Bool   // the caller does not wait any more
	done chan struct{} // closed by the owner
	err  error         // set before
}

func (s *sink) flush(ctx context.Context) error {
	f := &flushing{done: make(chan struct{})}
	s.mu.Lock()
	waits := s.started && s.inbox.Put(event{kind: flushed, flush: f})
	s.mu.Unlock()
	if !waits {
		return ctx.Err()
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		f.gone.Store(true)
		return ctx.Err()
	}
}

// register has f wait for everything that is in the buffer.
func (s *sink) register(f *flushing) {
	f.left++ // until all is counted
	s.mu.Lock()
	if len(s.unplaced) > 0 {
		f.left++
		s.owner.waiting = append(s.owner.waiting, f)
	}
	s.await(f)
	s.mu.Unlock()
	s.settle(f)
}

// registerPlaced has those who waited for unplaced records wait for the
// batches in which these are now.
func (s *sink) registerPlaced() {
	waiting := s.owner.waiting
	s.owner.waiting = nil
	for _, f := range waiting {
		s.mu.Lock()
		s.await(f)
		s.mu.Unlock()
		s.settle(f)
	}
}

// await ties f to all batches of all lanes. REQUIRES: mu.
func (s *sink) await(f *flushing) {
	tie := func(b *batch) {
		f.left++
		b.flushes = append(b.flushes, f)
	}
	for _, l := range s.lanes {
		l.seal()
		for _, b := range l.full {
			tie(b)
		}
	}
	for b := range s.owner.sent {
		tie(b)
	}
}

// settle takes one off what f waits for.
func (s *sink) settle(f *flushing) {
	f.left--
	if f.left > 0 {
		return
	}
	if !f.gone.Load() {
		f.err, s.owner.lost = s.owner.lost, nil
	}
	close(f.done)
}
