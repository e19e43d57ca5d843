package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// ending is what is known of the end of a transaction.
type ending struct {
	maybe  bool // an end was written, and may have been carried out
	commit bool // which one
}

func (t *saramaTransactor) End(ctx context.Context, commit bool) error {
	if commit {
		return t.failure("committing", t.end(ctx, true))
	}
	return t.failure("aborting", t.end(ctx, false))
}

func (t *saramaTransactor) end(ctx context.Context, commit bool) error {
	s, done := t.scoped(ctx)
	defer done()
	switch {
	case !t.begun && !commit:
		return nil
	case !t.begun || commit && t.barred != nil:
		return t.refused()
	case t.ending.maybe && t.ending.commit != commit:
		return fmt.Errorf("%w: the other end was asked for before", ErrOutcomeUnknown)
	}
	if err := t.prepare(s, commit); err != nil {
		return err
	}
	if t.isOpen() == closedTxn {
		t.done()
		return nil
	}
	if err := t.sendEnd(s, commit); err != nil {
		return t.endError(err, commit)
	}
	t.done()
	return nil
}

// done notes that the transaction has ended.
func (t *saramaTransactor) done() {
	t.begun = false
	t.settled()
}

// prepare waits until nothing is under way, and sees whether a commit may be
// sent.
func (t *saramaTransactor) prepare(s txnScope, commit bool) error {
	if !commit {
		return t.abandon(s.hard)
	}
	if err := t.flush(s.hard); err != nil {
		return fmt.Errorf("waiting for records: %w", err)
	}
	err := t.brokenBy()
	switch {
	case err == nil || t.ending.maybe:
		return nil
	case errors.Is(err, ErrFenced), errors.Is(err, ErrClosed), errors.Is(err, ErrAbortable):
		return err
	}
	return fmt.Errorf("%w: %w", ErrAbortable, err)
}

// sendEnd repeats the request until it is answered: brokers answer success
// to one that they have carried out before.
func (t *saramaTransactor) sendEnd(s txnScope, commit bool) error {
	return t.persist(s, "ending a transaction", func() error {
		var answer *sarama.EndTxnResponse
		maybe, err := t.ask(s, t.ofID(), func(b *sarama.Broker) (err error) {
			answer, err = b.EndTxn(&sarama.EndTxnRequest{
				Version: t.version(), TransactionalID: t.cfg.ID, ProducerID: t.id, ProducerEpoch: t.epoch, TransactionResult: commit,
			})
			return err
		})
		if err != nil {
			if maybe {
				t.ending = ending{maybe: true, commit: commit}
			}
			return err
		}
		t.moved(t.ofID(), answer.Err)
		if endUncertain(answer.Err) {
			t.ending = ending{maybe: true, commit: commit}
		}
		if answer.Err == sarama.ErrUnknown || answer.Err == sarama.ErrTransactionCoordinatorFenced {
			return passingError{answer.Err}
		}
		return t.step(answer.Err)
	})
}

// endUncertain reports whether a coordinator that answers so may have
// written an end, or what opens a transaction, all the same: it says so, too, when it does not know
// whether its log has taken it, and a successor may find it there.
func endUncertain(e sarama.KError) bool {
	switch e {
	case sarama.ErrNoError, sarama.ErrConcurrentTransactions, sarama.ErrOffsetsLoadInProgress:
		return false
	}
	return retriableCode(e) || e == sarama.ErrUnknown || e == sarama.ErrTransactionCoordinatorFenced
}

// endError types what ended sendEnd.
func (t *saramaTransactor) endError(err error, commit bool) error {
	code, decided := codeOf(err)
	decided = decided && !retriableCode(code)
	switch {
	case commit && t.ending.maybe, !decided && t.ending.maybe:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, fencedOr(err))
	case commit:
		return txnError(err)
	case code == sarama.ErrInvalidTxnState && decided && t.isOpen() == maybeOpen:
		t.done() // what would have opened it never arrived
		return nil
	}
	return fencedOr(err)
}

// fencedOr is err, as an ErrFenced if its code says so: an end leaves
// nothing that could still be aborted.
func fencedOr(err error) error {
	if code, ok := codeOf(err); ok && (fencing(code) || code == sarama.ErrUnknownProducerID) {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}
