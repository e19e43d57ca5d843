package kafka

import (
	"context"
	"time"
)

// Clock is the only source of time and of waiting in the engine, so that a
// driver can supply its own. All methods may be called from any goroutine.
type Clock interface {
	Now() time.Time

	// AfterFunc calls f once, d from now, on a goroutine of the clock. f must
	// not block; it usually puts something into a mailbox.
	AfterFunc(d time.Duration, f func()) Timer

	// Linger is AfterFunc for a wait that exists only to gather more work
	// before it is done all at once: f is called after d, or any time
	// earlier if the driver sees that nothing more is coming.
	Linger(d time.Duration, f func()) Timer

	// Sleep waits for d, or for the end of ctx, whose error it returns.
	Sleep(ctx context.Context, d time.Duration) error
}

// Timer is a call that waits.
type Timer interface {
	// Stop takes the call back. It reports false if f was called already or
	// is being called.
	Stop() bool
}

// SystemClock returns the clock of package time.
func SystemClock() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

func (systemClock) Linger(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
