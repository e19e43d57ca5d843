package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// Codes that sarama has no name for.
const errTransactionAbortable sarama.KError = 120

// concurrentPause is how long to wait while the coordinator still finishes
// the transaction before: it takes one to a few milliseconds, after almost
// every commit.
const (
	concurrentPause = time.Millisecond
	concurrentTries = 50 // then the waits grow
	concurrentMax   = 50 * time.Millisecond
)

// fencing reports whether a code says that producer id and epoch are not, or
// no longer, those of the transactional id, or that the transaction is not
// there: what is left is to initialise.
func fencing(e sarama.KError) bool {
	switch e {
	case sarama.ErrInvalidProducerEpoch, sarama.ErrProducerFenced, sarama.ErrInvalidTxnState, sarama.ErrInvalidProducerIDMapping:
		return true
	}
	return false
}

// passingError is a code that counts as trouble that passes in the place
// where it came. It does not unwrap, so that nobody takes it for a decision.
type passingError struct{ code sarama.KError }

func (e passingError) Error() string { return e.code.Error() }

// txnError types what ended a step of a transaction: ErrFenced, ErrClosed,
// the context's error, or else ErrAbortable.
func txnError(err error) error {
	if err == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrAbortable) || errors.Is(err, ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if code, ok := codeOf(err); ok && fencing(code) {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return fmt.Errorf("%w: %w", ErrAbortable, err)
}

// coordinator is one of the two that a transaction deals with.
type coordinator struct {
	kind  sarama.CoordinatorType
	key   string
	conns *conns
}

func (t *saramaTransactor) ofID() coordinator {
	return coordinator{sarama.CoordinatorTransaction, t.cfg.ID, t.coord}
}

func (t *saramaTransactor) ofGroup(group string) coordinator {
	return coordinator{sarama.CoordinatorGroup, group, t.groups}
}

// ask sends one request. The look-up of the coordinator ends with soft, the
// request with hard. An error means that there is no answer; maybe then
// reports whether the request may have been carried out all the same.
func (t *saramaTransactor) ask(s txnScope, c coordinator, f func(*sarama.Broker) error) (maybe bool, err error) {
	addr, err := t.d.coordinator(s.soft, c.kind, c.key)
	if err != nil {
		return false, err
	}
	sent, answered := false, false
	err = c.conns.do(s.hard, addr, func(b *sarama.Broker) error {
		select {
		case <-s.soft.Done(): // it waited for its turn for too long
			return nil
		default:
		}
		failed := f(b)
		answered = failed == nil
		sent = answered || !unsent(failed)
		return failed
	})
	if answered {
		return true, nil // even if the context ended meanwhile
	}
	if err == nil {
		err = context.Cause(s.soft)
	} else {
		t.d.forgetCoordinator(c.kind, c.key)
	}
	if sent {
		t.doubt.Store(true)
	}
	return sent, err
}

// unsent reports whether sarama failed before it wrote the request.
func unsent(err error) bool {
	var encoding sarama.PacketEncodingError
	return errors.Is(err, sarama.ErrNotConnected) || errors.Is(err, sarama.ErrUnsupportedVersion) || errors.As(err, &encoding)
}

// moved notes an answer that tells of another coordinator.
func (t *saramaTransactor) moved(c coordinator, e sarama.KError) {
	if e == sarama.ErrNotCoordinatorForConsumer || e == sarama.ErrConsumerCoordinatorNotAvailable {
		t.d.forgetCoordinator(c.kind, c.key)
	}
}

// persist repeats try while its error is one that waiting may help, until
// the scope ends.
func (t *saramaTransactor) persist(s txnScope, what string, try func() error) error {
	b := newBackoff(what+" of transactional id "+t.cfg.ID, t.d.clock, t.d.log)
	defer b.reset()
	for quick := 0; ; quick++ {
		err := try()
		if !retriable(err) {
			return err
		}
		pause := concurrentPause
		if busy := errors.Is(err, sarama.ErrConcurrentTransactions); !busy || quick >= concurrentTries {
			pause = b.failed(err)
			if busy {
				pause = min(pause, concurrentMax)
			}
		}
		if t.d.clock.Sleep(s.soft, pause) != nil {
			return fmt.Errorf("%w (last: %w)", context.Cause(s.soft), err)
		}
	}
}

// scoped makes a scope of the context of a step, which ends with Close, too.
func (t *saramaTransactor) scoped(ctx context.Context) (txnScope, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.ctx, func() { cancel(ErrClosed) })
	return txnScope{soft: ctx, hard: ctx}, func() {
		stop()
		cancel(nil)
	}
}

func (t *saramaTransactor) scopeOf() txnScope {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.scope
}

// failure says which step of whose transaction failed.
func (t *saramaTransactor) failure(step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("transactional id %q: %s: %w", t.cfg.ID, step, err)
}

// version picks the newest version of the transaction requests: 3 where they
// are flexible, 2 where they know of PRODUCER_FENCED.
func (t *saramaTransactor) version() int16 {
	switch {
	case t.d.cfg.Version.IsAtLeast(sarama.V2_8_0_0):
		return 3
	case t.d.cfg.Version.IsAtLeast(sarama.V2_7_0_0):
		return 2
	}
	return 1
}
