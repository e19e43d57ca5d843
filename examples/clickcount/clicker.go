package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
)

var pages = []string{"/", "/search", "/cart", "/help"}

// clicker emits clicks at a steady rate and keeps the truth about them.
type clicker struct {
	emitter *emitter.Emitter[Click]
	rate    int // clicks a second

	emitted atomic.Int64
	ends    [partitions]atomic.Int64 // of the partitions, as far as acknowledged
	users   *users
	truth   truth // owned by run while it runs
}

func newClicker(c *kafka.Client, n names, rate int) (*clicker, error) {
	e, err := emitter.New(c, n.clicks())
	if err != nil {
		return nil, err
	}
	return &clicker{emitter: e, rate: rate, users: newUsers(), truth: truth{}}, nil
}

// run clicks for d and returns when every click is acknowledged.
func (c *clicker) run(ctx context.Context, d time.Duration) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	start, done := time.Now(), 0
	for past := time.Duration(0); past < d; past = time.Since(start) {
		due := int(past.Seconds() * float64(c.rate))
		for ; done < due; done++ {
			if err := c.click(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return c.emitter.Flush(ctx)
}

func (c *clicker) click(ctx context.Context) error {
	user := c.users.next()
	r, err := c.emitter.Emit(ctx, user, Click{Page: pages[len(user)%len(pages)]})
	if err != nil {
		return err
	}
	r.Then(c.acknowledged)
	c.truth[user]++
	c.emitted.Add(1)
	return nil
}

// acknowledged notes how far a partition reaches. A lost click is told by
// Flush.
func (c *clicker) acknowledged(at emitter.Receipt, err error) {
	if err == nil {
		c.ends[at.Partition].Store(at.Offset + 1)
	}
}
