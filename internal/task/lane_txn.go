package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
)

// txnState is what a lane with transactions remembers between two of them.
// Owned by the lane's goroutine.
type txnState struct {
	// refused is the generation in which the group took no offsets: nothing
	// is tried again before the next assignment, or a while.
	refused   Identity
	refusedAt time.Time

	renew  bool      // the producer epoch must be renewed before the next one
	pause  time.Time // nothing is tried before
	failed int       // in a row, for the pauses
	turn   bool      // of an epoch that goes alone
}

const (
	// txnBytes bounds what goes into one transaction, but for one epoch that
	// is larger by itself.
	txnBytes = 32 << 20
	// refusedRetry is how long a lane waits for the next assignment.
	refusedRetry = time.Second
	// failPause and failPauseMax bound the pause after a transaction that
	// failed; it doubles with each one in a row.
	failPause    = 20 * time.Millisecond
	failPauseMax = time.Second
	// aloneTimeout bounds a transaction of one epoch that has timed out
	// together with others, and alonePause is when it is tried again.
	aloneTimeout = 5 * time.Second
	alonePause   = 10 * time.Second
)

// transact writes what waits, transaction by transaction.
func (l *Lane) transact() {
	for l.ctx.Err() == nil {
		l.handle(l.box.TryTake()) // who became ready meanwhile comes along
		l.waiting = l.live(l.waiting)
		if wait := l.holdOff(); wait > 0 {
			l.later(wait)
			return
		}
		batch := l.gather()
		if len(batch) == 0 {
			return
		}
		l.writeBatch(batch)
	}
}

// holdOff returns how long to wait before the next transaction.
func (l *Lane) holdOff() time.Duration {
	id, now := l.Identity(), l.env.Clock.Now()
	switch {
	case len(l.waiting) == 0:
		return 0
	case id.Member == nil:
		return refusedRetry
	case now.After(id.Member.Lease()):
		return commitRetry
	case l.txn.refused == id && now.Sub(l.txn.refusedAt) < refusedRetry:
		return refusedRetry - now.Sub(l.txn.refusedAt)
	}
	return l.txn.pause.Sub(now)
}

// gather takes the epochs of the next transaction off those that wait.
func (l *Lane) gather() (batch []*epoch) {
	now := l.env.Clock.Now()
	keep := l.waiting[:0]
	bytes := 0
	var alone *epoch
	soon := time.Duration(0)
	for _, e := range l.waiting {
		switch {
		case e.alone && e.notBefore.After(now):
			if d := e.notBefore.Sub(now); soon == 0 || d < soon {
				soon = d
			}
			keep = append(keep, e)
		case e.alone && alone == nil:
			alone = e
		case e.alone || len(batch) > 0 && bytes+e.bytes > txnBytes:
			keep = append(keep, e)
		default:
			bytes += e.bytes
			batch = append(batch, e)
		}
	}
	if alone != nil && (len(batch) == 0 || l.txn.turn) {
		l.txn.turn = false
		keep = append(keep, batch...)
		clear(l.waiting[len(keep):])
		l.waiting = keep
		return []*epoch{alone}
	}
	if alone != nil {
		l.txn.turn = true
		keep = append(keep, alone)
	}
	clear(l.waiting[len(keep):])
	l.waiting = keep
	if len(batch) == 0 && soon > 0 {
		l.later(soon)
	}
	return batch
}

// writeBatch writes one transaction and sees to what becomes of its epochs.
func (l *Lane) writeBatch(batch []*epoch) {
	t := &transaction{lane: l, batch: batch, outputs: map[*epoch][]*refusal{}, rows: map[*epoch]error{}}
	ctx, done := l.bounded(batch)
	err := t.run(ctx)
	late := ctx.Err() != nil
	done()
	switch {
	case l.ctx.Err() != nil:
		l.waiting = append(l.waiting, batch...)
		return
	case err == nil:
		l.txn.failed = 0
		for _, e := range batch {
			l.finish(e, nil)
		}
		return
	}
	l.failed(t, err, late)
}

// bounded bounds a transaction in time, below the broker's own timeout.
func (l *Lane) bounded(batch []*epoch) (context.Context, func()) {
	d := l.env.Timeout / 2
	if batch[0].alone {
		d = min(d, aloneTimeout)
	}
	ctx, cancel := context.WithCancel(l.ctx)
	timer := l.env.Clock.AfterFunc(d, cancel)
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

// failed decides about the epochs of a transaction that returned err.
func (l *Lane) failed(t *transaction, err error, late bool) {
	unknown := errors.Is(err, kafka.ErrOutcomeUnknown)
	if unknown {
		err = t.endAgain(l.ctx)
		if err == nil {
			for _, e := range t.batch {
				l.finish(e, nil)
			}
			return
		}
	}
	if !t.refused() {
		l.backOff(t, err)
	}
	fenced := errors.Is(err, kafka.ErrFenced)
	if !unknown && !fenced {
		if aborted := l.env.Transactor.End(l.ctx, false); aborted != nil {
			fenced = errors.Is(aborted, kafka.ErrFenced)
			l.txn.renew = true // settles it
		}
	}
	if late && !unknown {
		until := l.env.Clock.Now().Add(alonePause)
		for _, e := range t.batch {
			if e.alone {
				e.notBefore = until
			}
			e.alone = true
		}
	}
	if unknown || fenced {
		l.judge(t, unknown)
		return
	}
	l.again(t, err)
}

// backOff notes and logs a transaction that failed.
func (l *Lane) backOff(t *transaction, err error) {
	now := l.env.Clock.Now()
	if betweenGenerations(err) {
		l.txn.refused, l.txn.refusedAt = t.by, now // another one may have been adopted meanwhile
		l.env.Log.Debug("the group is between two generations", zap.String("group", l.env.Group), zap.Error(err))
		return
	}
	if l.ctx.Err() != nil || errors.Is(err, errDropped) {
		return
	}
	l.txn.pause = now.Add(min(failPause<<min(l.txn.failed, 10), failPauseMax))
	l.txn.failed++
	if n := l.txn.failed; n&(n-1) == 0 {
		l.env.Log.Warn("a transaction failed and is written again", zap.String("group", l.env.Group), zap.Int("in a row", n), zap.Error(err))
	}
}

// again puts the epochs of an aborted transaction back, but for those that
// cannot be written as they are.
func (l *Lane) again(t *transaction, err error) {
	lost := kafka.Permanent(err) && !betweenGenerations(err) && !t.refused()
	t.mu.Lock()
	defer t.mu.Unlock()
	back := make([]*epoch, 0, len(t.batch)+len(l.waiting))
	for _, e := range t.batch {
		switch {
		case t.rows[e] != nil:
			l.finish(e, t.rows[e])
		case t.outputs[e] != nil:
			e.refuseAll(t.outputs[e])
		case lost:
			l.finish(e, fmt.Errorf("transaction: %w", err))
		default:
			back = append(back, e)
		}
	}
	l.waiting = append(back, l.waiting...)
}

// judge settles a transaction whose end is not known, or that was fenced, and
// asks the marks what became of its epochs.
func (l *Lane) judge(t *transaction, unknown bool) {
	foreign, err := l.renewEpoch()
	if err != nil {
		l.unfit(t, err)
		return
	}
	if !unknown && !foreign {
		l.again(t, kafka.ErrFenced) // the broker's timeout has aborted it
		return
	}
	for _, e := range t.batch {
		l.judgeEpoch(e)
	}
}

// judgeEpoch finds out by its mark whether an epoch is committed.
func (l *Lane) judgeEpoch(e *epoch) {
	if e.claim != nil { // made again as it is
		l.waiting = append(l.waiting, e)
		return
	}
	for {
		mark, err := l.stableMark(e)
		switch {
		case l.ctx.Err() != nil || errors.Is(err, kafka.ErrClosed): // the lane ends
			l.waiting = append(l.waiting, e)
		case e.dropped():
			l.finish(e, errDropped)
		case kafka.Permanent(err):
			l.finish(e, fmt.Errorf("transaction: read the mark: %w", err))
		case err != nil:
			continue
		default:
			if err = l.verdict(e, mark); err == nil {
				e.judged = true
				l.waiting = append(l.waiting, e)
			} else {
				l.finish(e, err)
			}
		}
		return
	}
}

// stableMark reads the mark of an epoch's task. It gives up after a while,
// since the task may have been dropped.
func (l *Lane) stableMark(e *epoch) (Mark, error) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	timer := l.env.Clock.AfterFunc(refusedRetry, cancel)
	defer timer.Stop()
	marked := e.marked()
	offsets, err := l.Identity().Member.Committed(ctx, []kafka.TopicPartition{marked.TopicPartition}, true)
	if err == nil && len(offsets) == 1 {
		err = offsets[0].Err
	}
	if err != nil {
		if ctx.Err() == nil { // not one of waiting
			if slept := l.env.Clock.Sleep(l.ctx, failPauseMax); slept != nil {
				return Mark{}, slept
			}
		}
		return Mark{}, err
	}
	mark, _ := DecodeMark(offsets[0].Metadata) // not a mark: somebody else's
	return mark, nil
}

// renewEpoch renews the producer epoch, and if somebody else has initialised
// the id takes it back, once the group has confirmed that this member still
// belongs to it.
func (l *Lane) renewEpoch() (foreign bool, err error) {
	err = l.env.Transactor.Init(l.ctx, true)
	if errors.Is(err, kafka.ErrFenced) {
		foreign = true
		l.env.Log.Warn("another process has initialised this one's transactional id", zap.String("group", l.env.Group))
		if err = l.confirmed(); err == nil {
			err = l.env.Transactor.Init(l.ctx, false)
		}
	}
	if err == nil {
		l.txn.renew = false
	}
	return foreign, err
}

// confirmed waits until the group has answered a heartbeat that was sent
// after now: the lease has moved twice.
func (l *Lane) confirmed() error {
	for range 2 {
		from := l.lease()
		for !l.lease().After(from) {
			if err := l.env.Clock.Sleep(l.ctx, commitRetry); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lane) lease() time.Time {
	if m := l.Identity().Member; m != nil {
		return m.Lease()
	}
	return time.Time{}
}

// unfit ends the epochs of a transaction whose producer can do nothing more.
func (l *Lane) unfit(t *transaction, err error) {
	if l.ctx.Err() != nil {
		return
	}
	for _, e := range t.batch {
		l.finish(e, fmt.Errorf("transaction: renew the producer epoch: %w", err))
	}
}
