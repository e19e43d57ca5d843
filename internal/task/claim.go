package task

import (
	"context"

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
	seen   []kafka.CommittedOffset // what it rests on; set before each try
}

// NewClaim returns a claim that was not made. It ends with ctx, too.
func NewClaim(ctx context.Context, c work.Counter) *Claim {
	ctx, cancel := context.WithCancel(ctx)
	return &Claim{ctx: ctx, cancel: cancel, answer: work.NewMailbox[error](c)}
}

// GiveUp ends the claim: when it returns nothing is committed for it any more
// in the name of a generation that is adopted later.
func (c *Claim) GiveUp() {
	c.cancel()
	c.answer.Close()
}

// Make commits offsets as the claim, and waits. seen are the committed offsets
// that the takeover has read, -1 where there is none: if they were not the
// newest, it returns ErrStaleClaim and nothing is committed. It returns the
// context's error if the claim was given up. Only one try at a time.
func (c *Claim) Make(l *Lane, offsets, seen []kafka.CommittedOffset) error {
	c.seen = seen
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
			l.finish(e, kafka.ErrClosed)
		}
	}
}
