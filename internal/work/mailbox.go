package work

import "sync"

// Mailbox is the queue in front of one owner goroutine. Any goroutine may
// Put; one goroutine Takes everything that has come, in the order it came.
//
// A mailbox is not bounded by itself: what is put into it must be bounded by
// its sender (bytes of a fetch budget, one timer, one answer a request).
type Mailbox[T any] struct {
	counter Counter
	signal  chan struct{} // capacity 1: coalesced wake-up of the parked owner

	mu     sync.Mutex
	items  []T
	spare  []T  // the slice that the last Take handed out, reused by the next
	parked bool // the owner waits on signal and does not count as running
	closed bool
}

// NewMailbox returns an empty mailbox whose owner counts as running in c,
// which may be nil.
func NewMailbox[T any](c Counter) *Mailbox[T] {
	return &Mailbox[T]{counter: c, signal: make(chan struct{}, 1)}
}

// Put appends v. It never blocks. It reports false, and drops v, once the
// mailbox is closed.
func (m *Mailbox[T]) Put(v T) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.items = append(m.items, v)
	wake := m.unpark()
	m.mu.Unlock()
	if wake {
		m.signal <- struct{}{}
	}
	return true
}

// unpark counts the owner as running again. It reports whether the caller
// must signal; only one caller a parking does, so the signal never blocks.
func (m *Mailbox[T]) unpark() bool {
	if !m.parked {
		return false
	}
	m.parked = false
	if m.counter != nil {
		m.counter.Add(1)
	}
	return true
}

// Take parks the owner until something is there and returns all of it. The
// slice is the owner's until its next Take. It reports false once the mailbox
// is closed and empty.
func (m *Mailbox[T]) Take() ([]T, bool) {
	for {
		m.mu.Lock()
		if len(m.items) > 0 {
			out := m.items
			clear(m.spare[:cap(m.spare)])
			m.items, m.spare = m.spare[:0], out
			m.mu.Unlock()
			return out, true
		}
		if m.closed {
			m.mu.Unlock()
			return nil, false
		}
		m.parked = true
		if m.counter != nil {
			m.counter.Add(-1)
		}
		m.mu.Unlock()
		<-m.signal
	}
}

// TryTake is Take without parking: it returns nil if nothing is there.
func (m *Mailbox[T]) TryTake() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.items) == 0 {
		return nil
	}
	out := m.items
	clear(m.spare[:cap(m.spare)])
	m.items, m.spare = m.spare[:0], out
	return out
}

// Pending reports whether something waits. Owner only: it saves a TryTake.
func (m *Mailbox[T]) Pending() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items) > 0 || m.closed
}

// Close refuses further items and wakes the owner. What was put before stays
// to be taken. Closing twice does nothing.
func (m *Mailbox[T]) Close() {
	m.mu.Lock()
	wake := false
	if !m.closed {
		m.closed = true
		wake = m.unpark()
	}
	m.mu.Unlock()
	if wake {
		m.signal <- struct{}{}
	}
}
