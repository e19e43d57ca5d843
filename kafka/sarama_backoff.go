package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Limits of a backoff.
const (
	backoffMin  = 20 * time.Millisecond
	backoffMax  = 2 * time.Second
	firstNotice = time.Second      // trouble that passes sooner is not logged
	noticeMax   = 10 * time.Minute // the longest silence about trouble that goes on
)

// backoff spaces the tries of one thing: exponentially with jitter. It
// belongs to one goroutine.
type backoff struct {
	notice *notice
	n      int // tries that failed in a row
}

// newBackoff returns a backoff that logs trouble that lasts.
func newBackoff(what string, clock Clock, log *zap.Logger) *backoff {
	return &backoff{notice: &notice{what: what, clock: clock, log: log}}
}

// wait notes a failed try and sleeps. It returns the context's error if that
// ends first.
func (b *backoff) wait(ctx context.Context, err error) error {
	return b.notice.clock.Sleep(ctx, b.failed(err))
}

// failed notes a failed try and returns how long to wait before the next.
func (b *backoff) failed(err error) time.Duration {
	b.notice.trouble(err, b.n == 0)
	d := backoffMax
	if b.n < 7 {
		d = min(backoffMin<<b.n, backoffMax)
	}
	b.n++
	return d/2 + rand.N(d/2+1)
}

// reset notes a try that succeeded, or that there will be no other.
func (b *backoff) reset() {
	if b.n > 0 {
		b.notice.over()
	}
	b.n = 0
}

// retry repeats f while its error is one that waiting may help, and ctx
// lives. Calls that do the same, by the words of what, log as one.
func (d *saramaDriver) retry(ctx context.Context, what string, f func() error) error {
	b := &backoff{notice: d.noticeOf(what)}
	defer b.reset()
	for {
		err := f()
		if err == nil || !retriable(err) {
			return err
		}
		if stopped := b.wait(ctx, err); stopped != nil {
			return fmt.Errorf("%w: %w", stopped, err)
		}
	}
}

func (d *saramaDriver) noticeOf(what string) *notice {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.notices[what]
	if n == nil {
		n = &notice{what: what, clock: d.clock, log: d.log}
		d.notices[what] = n
	}
	return n
}

// notice logs trouble of one kind, which any number of goroutines may have
// at once: when it has lasted for a while, then at growing intervals.
type notice struct {
	what  string
	clock Clock
	log   *zap.Logger

	mu     sync.Mutex
	having int           // who has it
	tries  int           // of all of them
	since  time.Time     // when the first of them had it
	next   time.Duration // how long it has lasted when it is logged next
}

// trouble notes a failed try; first says that it is the first in a row.
func (n *notice) trouble(err error, first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock.Now()
	if first {
		if n.having++; n.having == 1 {
			n.since, n.next, n.tries = now, firstNotice, 0
		}
	}
	n.tries++
	if lasted := now.Sub(n.since); lasted >= n.next {
		n.log.Warn(n.what+": still trying", zap.Error(err), zap.Duration("for", lasted.Round(time.Millisecond)), zap.Int("tries", n.tries))
		n.next = lasted + min(2*lasted, noticeMax)
	}
}

// over notes that one of those who had trouble has it no more.
func (n *notice) over() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.having--; n.having == 0 && n.next > firstNotice {
		n.log.Info(n.what+": no more trouble", zap.Duration("after", n.clock.Now().Sub(n.since).Round(time.Millisecond)))
	}
}
