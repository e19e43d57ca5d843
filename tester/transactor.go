package tester

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rekastream/reka/kafka"
)

// transactor is a kafka.Transactor. Each of its requests is a call of its
// own, which faults and hooks see. Where a coordinator answers that another
// transaction is still ending, the request is repeated as soon as that has
// ended, so that this takes no time.
//
// Records are written, and Done is called, from within Produce, unless the
// process is paused, a fault delays them, or the transaction before is still
// ending: then they queue.
type transactor struct {
	inc *incarnation
	cfg kafka.TransactorConfig

	// Guarded by world.mu.
	closed   bool
	epoch    int32 // -1 before the first Init
	valid    bool  // epoch is that of the last Init
	numbers  map[kafka.TopicPartition]int64
	inDoubt  bool
	open     bool // between Begin and End
	written  bool // the coordinator took a part of the transaction in
	asked    bool // it may have
	ending   ending
	groups   map[string]bool // that are part of it
	failed   error           // why it cannot be committed
	queues   []*txnQueue     // in the order of first use
	left     int             // Outgoings that have not their fate yet
	parked   *waiter         // of the last step that had to wait
	finisher *waiter         // the one that waits until left is 0
}

// ending is what is known of the end of a transaction.
type ending struct {
	maybe  bool // an end was sent and not answered
	commit bool // which one
}

// initPause is how long an Init waits that was not answered: it may be
// repeated, whatever became of it.
const initPause = 100 * time.Millisecond

// abortGrace is how long an abort waits for what is on its way.
const abortGrace = time.Second

func newTransactor(inc *incarnation, cfg kafka.TransactorConfig) *transactor {
	return &transactor{inc: inc, cfg: cfg, epoch: -1, numbers: map[kafka.TopicPartition]int64{}, groups: map[string]bool{}}
}

// Init implements kafka.Transactor.
func (t *transactor) Init(ctx context.Context, own bool) error {
	w := t.inc.w
	w.mu.Lock()
	epoch, timeout := int32(-1), t.cfg.Timeout
	if own {
		epoch = t.epoch
	}
	w.mu.Unlock()
	if own && epoch < 0 {
		return t.wrap("initialise", fmt.Errorf("%w: it never had an epoch", kafka.ErrFenced))
	}
	t.giveUp(kafka.ErrAbortable, true) // what nobody waited for
	w.mu.Lock()
	t.open, t.valid = false, false
	w.mu.Unlock()
	var got int32
	try := func() error {
		return t.patient(ctx, Call{Op: OpInitProducer, Partition: -1, Own: own}, func() (err error) {
			got, err = w.coordination(t.cfg.ID).init(epoch, timeout)
			return err
		})
	}
	err := try()
	for errors.Is(err, errUnanswered) && ctx.Err() == nil {
		if err = t.inc.sleep(ctx, initPause); err == nil {
			err = try()
		}
	}
	if err != nil {
		return t.wrap("initialise", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.epoch, t.valid, t.inDoubt = got, true, false
	clear(t.numbers)
	t.forget()
	return nil
}

// forget drops what is known of the transaction. mu is held.
func (t *transactor) forget() {
	t.written, t.asked, t.ending, t.failed, t.queues = false, false, ending{}, nil, nil
	clear(t.groups)
}

// Begin implements kafka.Transactor.
func (t *transactor) Begin() {
	w := t.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	t.open = true
	t.forget()
}

// Offsets implements kafka.Transactor.
func (t *transactor) Offsets(ctx context.Context, by kafka.Committer, offsets []kafka.CommittedOffset) error {
	if len(offsets) == 0 {
		return nil
	}
	w := t.inc.w
	w.mu.Lock()
	refused, added, epoch := t.refused(), t.groups[by.Group], t.epoch
	c := w.coordination(t.cfg.ID)
	w.mu.Unlock()
	if refused != nil {
		return t.wrap("offsets", refused)
	}
	if !added {
		err := t.patient(ctx, Call{Op: OpAddOffsets, Partition: -1, Group: by.Group}, func() error { return c.addGroup(epoch, by.Group) })
		t.added(err)
		if err != nil {
			return t.broken("add offsets", abortable(err))
		}
		w.mu.Lock()
		t.groups[by.Group] = true
		w.mu.Unlock()
	}
	sent := slices.Clone(offsets) // the request may outlast the call
	err := t.request(ctx, Call{Op: OpTxnOffsets, Partition: -1, Group: by.Group}, func() error {
		return w.group(by.Group).txnCommit(c, epoch, by, sent)
	})
	if err != nil {
		return t.broken("offsets", groupError("commit of", by.Group, abortable(err)))
	}
	var errs []error
	for i := range offsets {
		offsets[i].Err = sent[i].Err
		errs = append(errs, sent[i].Err)
	}
	if err := errors.Join(errs...); err != nil {
		return t.broken("offsets", asAbortable(err))
	}
	return nil
}

// refused says why nothing can be added to a transaction. mu is held.
func (t *transactor) refused() error {
	switch {
	case t.closed || t.inc.dead || t.inc.closed:
		return kafka.ErrClosed
	case !t.open:
		return fmt.Errorf("%w: none was begun", kafka.ErrAbortable)
	case !t.valid:
		return fmt.Errorf("%w: it is not initialised", kafka.ErrFenced)
	}
	return nil
}

// broken is wrap for what a transaction cannot be committed after.
func (t *transactor) broken(what string, err error) error {
	err = t.wrap(what, err)
	t.fail(err)
	return err
}

// added takes in the answer to a request that makes something part of the
// transaction.
func (t *transactor) added(err error) {
	w := t.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	t.written = t.written || err == nil
	t.asked = t.asked || errors.Is(err, errUnanswered)
}

// End implements kafka.Transactor.
func (t *transactor) End(ctx context.Context, commit bool) error {
	what := "abort"
	if commit {
		what = "commit"
	}
	send, err := t.prepare(ctx, commit)
	if err == nil && send {
		err = t.sendEnd(ctx, commit)
	}
	if err != nil {
		return t.wrap(what, err)
	}
	w := t.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	t.open = false
	return nil
}

// prepare waits for what was produced, and sees whether the end may and must
// be sent.
func (t *transactor) prepare(ctx context.Context, commit bool) (send bool, err error) {
	w := t.inc.w
	w.mu.Lock()
	refused, open, end := t.refused(), t.open, t.ending
	w.mu.Unlock()
	switch {
	case !open && !commit:
		return false, nil
	case refused != nil:
		return false, refused
	case end.maybe && end.commit != commit:
		return false, fmt.Errorf("%w: the other end was asked for before", kafka.ErrOutcomeUnknown)
	case commit:
		err = t.finish(ctx)
	default:
		err = t.abandon(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && commit && t.failed != nil && !end.maybe {
		err = asAbortable(t.failed)
	}
	return t.written || t.asked, err
}

// sendEnd sends the end. Once one was not answered its outcome is unknown
// until one is.
func (t *transactor) sendEnd(ctx context.Context, commit bool) error {
	w := t.inc.w
	w.mu.Lock()
	written, epoch, c := t.written, t.epoch, w.coordination(t.cfg.ID)
	w.mu.Unlock()
	err := t.patient(ctx, Call{Op: OpEndTxn, Partition: -1, Commit: commit}, func() error { return c.end(epoch, commit) })
	if err == nil || errors.Is(err, errTxnState) && !commit && !written {
		return nil // or nothing had come to the coordinator that could be aborted
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(err, errUnanswered) || errors.Is(err, errConcurrent) {
		t.ending = ending{true, commit}
	}
	if t.ending.maybe {
		return fmt.Errorf("%w: %w", kafka.ErrOutcomeUnknown, err)
	}
	return abortable(err)
}

// finish waits until all that was produced has its fate.
func (t *transactor) finish(ctx context.Context) error {
	w := t.inc.w
	w.mu.Lock()
	if err := t.usable(ctx); err != nil || t.left == 0 {
		w.mu.Unlock()
		return err
	}
	t.finisher = t.waiter(ctx)
	return w.park(t.finisher)
}

// abandon fails what is queued, and waits for what was sent, but not for
// long.
func (t *transactor) abandon(ctx context.Context) error {
	t.giveUp(kafka.ErrAbortable, false)
	w := t.inc.w
	w.mu.Lock()
	var cut *timer
	if t.left > 0 {
		cut = w.arm(t.inc, abortGrace, false, func() { t.giveUp(kafka.ErrAbortable, true) })
	}
	w.mu.Unlock()
	err := t.finish(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if cut != nil {
		w.clock.stop(cut)
	}
	return err
}

// InDoubt implements kafka.Transactor.
func (t *transactor) InDoubt() bool {
	t.inc.w.mu.Lock()
	defer t.inc.w.mu.Unlock()
	return t.inDoubt
}

// Close implements kafka.Transactor.
func (t *transactor) Close() error {
	w := t.inc.w
	w.mu.Lock()
	t.closed = true
	if i := slices.Index(t.inc.transactors, t); i >= 0 {
		t.inc.transactors = slices.Delete(slices.Clone(t.inc.transactors), i, i+1)
	}
	if t.parked != nil {
		w.wakeWaiter(t.parked, kafka.ErrClosed)
	}
	w.mu.Unlock()
	t.giveUp(kafka.ErrClosed, true)
	return nil
}

// wrap names the transactional id.
func (t *transactor) wrap(what string, err error) error {
	return fmt.Errorf("%s transaction %s: %w", what, t.cfg.ID, err)
}

// abortable marks the answers after which a transaction can only be aborted.
func abortable(err error) error {
	if errors.Is(err, errTxnState) || errors.Is(err, errSequence) || errors.Is(err, errUnanswered) {
		return asAbortable(err)
	}
	return err
}

// asAbortable wraps the cause, unless the transaction's writer is fenced.
func asAbortable(err error) error {
	if errors.Is(err, kafka.ErrFenced) || errors.Is(err, kafka.ErrAbortable) {
		return err
	}
	return fmt.Errorf("%w: %w", kafka.ErrAbortable, err)
}
