package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
)

// transactionLog is the topic in which brokers keep transactions.
const transactionLog = "__transaction_state"

// transactionLogPatience is how long brokers may take to create it.
const transactionLogPatience = 15 * time.Second

// transactionalID is the id that the process with this process id writes
// under.
func (s *session) transactionalID(process string) string {
	return s.p.graph.group + "-" + process + "-0" // of its only lane
}

// openTransactor makes the transactor and initialises it: what a crash of
// this process left open is aborted by that.
func (s *session) openTransactor(ctx context.Context) (err error) {
	driver, id := s.p.client.Driver(), s.transactionalID(s.process)
	s.txn, err = driver.NewTransactor(kafka.TransactorConfig{ID: id, Timeout: s.p.cfg.transaction})
	if err != nil {
		return noTransactions(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := driver.Clock().AfterFunc(transactionLogPatience, func() {
		s.errands.Do(func() { // a goroutine of the clock must not wait
			if ctx.Err() == nil && s.lacksTransactionLog(ctx) {
				cancel(errNoTransactionLog)
			}
		})
	})
	defer timer.Stop()
	err = s.txn.Init(ctx, false)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errNoTransactionLog) {
		err = cause
	}
	if err != nil {
		return noTransactions(fmt.Errorf("initialise transactional id %s: %w", id, err))
	}
	return nil
}

// lacksTransactionLog reports whether the brokers answer, and have no
// transaction log.
func (s *session) lacksTransactionLog(ctx context.Context) bool {
	topics, err := s.p.client.Driver().Admin().Topics(ctx, transactionLog)
	if err != nil {
		return false
	}
	_, ok := topics[transactionLog]
	return !ok
}

var errNoTransactionLog = fmt.Errorf("%w: the brokers do not create the topic %s (is transaction.state.log.replication.factor larger than the number of brokers?)",
	kafka.ErrUnsupported, transactionLog)

// noTransactions names the option that helps where brokers have no
// transactions.
func noTransactions(err error) error {
	if errors.Is(err, kafka.ErrUnsupported) {
		return fmt.Errorf("%w; WithGuarantee(WithoutTransactions) does without them", err)
	}
	return err
}

// fence keeps a writer that is gone from writing: what it left open is
// aborted. It saves others the time until the broker would do that.
func (s *session) fence(ctx context.Context, writer string) {
	id := s.transactionalID(writer)
	t, err := s.p.client.Driver().NewTransactor(kafka.TransactorConfig{ID: id, Timeout: s.p.cfg.transaction})
	if err == nil {
		err = t.Init(ctx, false)
		s.closeQuietly("fencing transactor", t.Close)
	}
	switch {
	case err == nil:
		s.p.log.Info("fenced a writer that is gone", zap.String("transactional id", id))
	case ctx.Err() == nil:
		s.p.log.Warn("fencing a writer that is gone failed; what it left open ends with its transaction timeout",
			zap.String("transactional id", id), zap.Error(err))
	}
}

// departed reports whether a writer is not a member, by the newest assignment.
func (s *session) departed(writer string) bool {
	if writer == "" || writer == s.process {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.share.Present(writer)
}
