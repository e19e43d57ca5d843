package kafka

import (
	"context"
	"fmt"

	"github.com/IBM/sarama"
)

func (t *saramaTransactor) Init(ctx context.Context, own bool) error {
	s, done := t.scoped(ctx)
	defer done()
	if own && t.id < 0 {
		return t.failure("renewing", fmt.Errorf("%w: it never had an epoch", ErrFenced))
	}
	t.valid, t.begun = false, false
	if err := t.abandon(s.hard); err != nil {
		return t.failure("initialising", err)
	}
	id, epoch, err := t.requestID(s, own)
	if err != nil {
		return t.failure("initialising", err)
	}
	t.id, t.epoch, t.valid = id, epoch, true
	t.doubt.Store(false)
	t.settled()
	return nil
}

// requestID repeats the request until it succeeds: the one that aborts an
// open transaction only answers that it has begun to, and its writer is
// fenced for good by the one after it. It is safe to repeat a renewal that
// was not answered: a broker knows an epoch's predecessor.
func (t *saramaTransactor) requestID(s txnScope, own bool) (id int64, epoch int16, err error) {
	err = t.persist(s, "initialising", func() error {
		req := t.initRequest(own)
		var answer *sarama.InitProducerIDResponse
		_, err := t.ask(s, t.ofID(), func(b *sarama.Broker) (err error) {
			answer, err = b.InitProducerID(req)
			return err
		})
		if err != nil {
			return err
		}
		if req.Version < 3 { // sarama lowers it to what the broker knows
			return fmt.Errorf("%w: transactions need Kafka 2.5", ErrUnsupported)
		}
		id, epoch = answer.ProducerID, answer.ProducerEpoch
		return t.readInit(answer.Err, own)
	})
	return id, epoch, err
}

func (t *saramaTransactor) initRequest(own bool) *sarama.InitProducerIDRequest {
	req := &sarama.InitProducerIDRequest{
		Version: 3, TransactionalID: &t.cfg.ID, TransactionTimeout: t.cfg.Timeout, ProducerID: -1, ProducerEpoch: -1,
	}
	if t.d.cfg.Version.IsAtLeast(sarama.V2_7_0_0) {
		req.Version = 4
	}
	if own {
		req.ProducerID, req.ProducerEpoch = t.id, t.epoch
	}
	return req
}

func (t *saramaTransactor) readInit(code sarama.KError, own bool) error {
	t.moved(t.ofID(), code)
	switch {
	case !fencing(code):
		return kerror(code)
	case own:
		return fmt.Errorf("%w (%w)", ErrFenced, code)
	}
	// Who takes over is never fenced: somebody else did so at the same
	// moment.
	return passingError{code}
}
