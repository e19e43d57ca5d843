package emitter

import (
	"context"
	"sync"
	"time"
)

// Receipt says where a record was written.
type Receipt struct {
	Topic     string
	Partition int32
	Offset    int64
	Time      time.Time // the record's timestamp, to the millisecond
}

// Result is the fate of one emitted record. It is resolved exactly once, and
// need not be looked at. All methods may be called from any goroutine.
type Result struct {
	sink      *sink
	millis    int64 // the record's timestamp
	partition int32 // asked for, until placed; −1: none

	mu       sync.Mutex
	resolved bool
	done     chan struct{} // made by the first who asks, closed when resolved
	then     func(Receipt, error)
	offset   int64
	err      error
}

// resolvedDone is Done of every result that was resolved before anybody
// asked.
var resolvedDone = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Done is closed when the result is resolved. Asking for it ends the linger
// time of what is buffered.
func (r *Result) Done() <-chan struct{} {
	r.mu.Lock()
	if r.done == nil {
		r.done = resolvedDone
		if !r.resolved {
			r.done = make(chan struct{})
		}
	}
	done, waits := r.done, !r.resolved
	r.mu.Unlock()
	if waits {
		r.sink.hurry()
	}
	return done
}

// Wait waits until the record is acknowledged by all replicas in sync, or has
// failed, or ctx ends. The record is still delivered after ctx has ended. An
// error of the record's own is a *kafka.Error or a *TooLargeError.
func (r *Result) Wait(ctx context.Context) (Receipt, error) {
	done := r.Done()
	select {
	case <-done:
		return r.outcome()
	default:
	}
	select {
	case <-done:
		return r.outcome()
	case <-ctx.Done():
		return Receipt{}, ctx.Err()
	}
}

// Then has f called once, with what Wait would return: at once if the result
// is resolved, else from the emitter's goroutine. f must not block, so it
// must not wait for another result of the same emitter, nor emit into it
// unless its buffer has room. A second f replaces the first if that has not
// been called.
func (r *Result) Then(f func(Receipt, error)) {
	r.mu.Lock()
	now := r.resolved
	if !now {
		r.then = f
	}
	r.mu.Unlock()
	if now {
		f(r.outcome())
	}
}

// outcome is for resolved results, which do not change any more.
func (r *Result) outcome() (Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return Receipt{}, r.err
	}
	return Receipt{
		Topic:     r.sink.topic,
		Partition: r.partition,
		Offset:    r.offset,
		Time:      time.UnixMilli(r.millis),
	}, nil
}

// resolve is called once, by the owner.
func (r *Result) resolve(offset int64, err error) {
	r.mu.Lock()
	r.resolved, r.offset, r.err = true, offset, err
	done, then := r.done, r.then
	r.then = nil
	r.mu.Unlock()
	if done != nil {
		close(done)
	}
	if then != nil {
		then(r.outcome())
	}
}
