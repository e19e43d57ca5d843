package emitter

import (
	"context"

	"github.com/rekastream/reka/kafka"
)

// waiter is a caller who waits for room in the buffer.
type waiter struct {
	size  int
	ready chan struct{} // closed when room was reserved or err set; guarded by the sink's mu
	room  bool
	err   error
}

// reserve counts a record of size into the buffer, waiting for room until
// ctx ends. REQUIRES: mu, which it gives up while it waits.
func (s *sink) reserve(ctx context.Context, size int, key string) error {
	if err := s.refuses(size, key); err != nil {
		return err
	}
	if len(s.waiters) == 0 && s.fits(size) {
		s.records++
		s.bytes += size
		return nil
	}
	w := &waiter{size: size, ready: make(chan struct{})}
	s.waiters = append(s.waiters, w)
	s.urgent = true
	s.poke()
	s.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	s.mu.Lock()
	switch {
	case w.room:
		return nil
	case w.err != nil:
		return w.err
	}
	s.forget(w)
	return ctx.Err()
}

// refuses says why a record cannot be accepted at all.
func (s *sink) refuses(size int, key string) error {
	switch {
	case s.state != accepting:
		return s.fault([]byte(key), -1, kafka.ErrClosed)
	case s.refused != nil:
		return s.fault([]byte(key), -1, s.refused)
	case s.limit > 0 && size > s.limit:
		return &TooLargeError{Topic: s.topic, Key: []byte(key), Size: size, Limit: s.limit}
	}
	return nil
}

func (s *sink) fits(size int) bool {
	return s.records == 0 || s.records < s.cfg.bufferRecords && s.bytes+size <= s.cfg.bufferBytes
}

// release gives room back and grants it to those who wait. REQUIRES: mu.
func (s *sink) release(records, bytes int) {
	s.records -= records
	s.bytes -= bytes
	s.grant()
}

func (s *sink) grant() {
	for len(s.waiters) > 0 && s.fits(s.waiters[0].size) {
		w := s.waiters[0]
		s.waiters[0] = nil
		s.waiters = s.waiters[1:]
		s.records++
		s.bytes += w.size
		w.room = true
		close(w.ready)
	}
}

// forget takes a waiter off who has given up; those behind may fit now.
func (s *sink) forget(w *waiter) {
	for i, x := range s.waiters {
		if x == w {
			s.waiters = append(s.waiters[:i], s.waiters[i+1:]...)
			break
		}
	}
	s.grant()
}

// dismiss fails all who wait. REQUIRES: mu.
func (s *sink) dismiss(err error) {
	for _, w := range s.waiters {
		w.err = err
		close(w.ready)
	}
	s.waiters = nil
}
