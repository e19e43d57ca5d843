package task

import (
	"context"
	"sync"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// Claim is the first thing that a new owner commits: where its tasks start,
// in its own name, and nothing else. From then on no former owner's epoch can
// commit. In a lane it is an epoch without a task.
type Claim struct {
	ctx    context.Context // its end gives the claim up
	cancel context.CancelFunc
	answer *work.Mailbox[error]
	once   sync.Once
}

// NewClaim returns a claim that can be made once. It ends with ctx, too.
func NewClaim(ctx context.Context, c work.Counter) *Claim {
	ctx, cancel := context.WithCancel(ctx)
	return &Claim{ctx: ctx, cancel: cancel, answer: work.NewMailbox[error](c)}
}

// GiveUp ends the claim: when it returns nothing is committed for it any more
// in the name of a generation that is adopted later.
func (c *Claim) GiveUp() {
	c.cancel()
	c.once.Do(c.answer.Close)
}

// Make commits offsets as the claim, and waits. It returns the context's error
// if the claim was given up.
func (c *Claim) Make(l *Lane, offsets []kafka.CommittedOffset) error {
	if !l.box.Put(laneMessage{kind: laneReady, epoch: &epoch{claim: c, positions: offsets}}) {
		return kafka.ErrClosed
	}
	answers, _ := c.answer.Take()
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case len(answers) == 0:
		return kafka.ErrClosed
	}
	return answers[0]
}

// forsakeClaims answers the claims that a lane leaves behind.
func (l *Lane) forsakeClaims() {
	l.handle(l.box.TryTake())
	for _, e := range append(l.waiting, l.commit...) {
		if e.claim != nil {
			e.claim.answer.Put(kafka.ErrClosed)
		}
	}
}
