package task

import (
	"context"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// claim is an epoch without a task, on its way through a lane.
type claim struct {
	ctx    context.Context // its end gives the claim up
	answer *work.Mailbox[error]
}

func newClaim(ctx context.Context, c work.Counter) *claim {
	return &claim{ctx: ctx, answer: work.NewMailbox[error](c)}
}

// wait returns what the lane answers.
func (c *claim) wait() error {
	stop := context.AfterFunc(c.ctx, c.answer.Close)
	defer stop()
	answers, _ := c.answer.Take()
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if len(answers) == 0 {
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
