package kafka

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// txnQueues is what a saramaProducer has more if it writes for a Transactor.
// All of it is owned by the producer's run.
//
// A queue gets one state more, queueAdding, between looking and ready: until
// the partition is part of the transaction. And the producer never renews an
// epoch by itself: where it would, the transaction fails as a whole.
type txnQueues struct {
	t      *saramaTransactor
	failed error // why nothing more is sent in this transaction
	added  map[TopicPartition]struct{}
	adding []*produceQueue
	asking bool // a request that adds partitions is under way
}

func newTxnQueues(t *saramaTransactor) *txnQueues {
	return &txnQueues{t: t, failed: fmt.Errorf("%w: no transaction was begun", ErrAbortable), added: map[TopicPartition]struct{}{}}
}

// transactionalID is what requests carry, nil for a plain producer.
func (p *saramaProducer) transactionalID() *string {
	if p.txn == nil {
		return nil
	}
	return &p.txn.t.cfg.ID
}

// begin lets the producer write again, with the given id and epoch. Nothing
// is queued or under way. With an epoch that is new all sequences start anew.
func (p *saramaProducer) begin(s producerSeat) {
	p.mail.Put(produceEvent{do: func() {
		clear(p.txn.added)
		p.txn.failed = nil
		if p.id == s.id && p.idEpoch == s.epoch {
			return
		}
		p.id, p.idEpoch = s.id, s.epoch
		for _, q := range p.queues {
			q.seat = seat{id: -1}
		}
	}})
}

// abandon fails what is queued; what was sent stays until it is answered.
// The transactor is held until that is done.
func (p *saramaProducer) abandon(err error) {
	t := p.txn.t
	t.hold(1)
	if !p.mail.Put(produceEvent{do: func() {
		p.spoil(err)
		t.finish(1)
	}}) {
		t.finish(1)
	}
}

// cutSent ends the connections of requests that are not answered.
func (p *saramaProducer) cutSent() {
	p.mail.Put(produceEvent{do: func() {
		for addr, s := range p.senders {
			if s.inFlight > 0 {
				p.conns.drop(addr)
			}
		}
	}})
}

// spoil fails the transaction with everything in it that is not sent.
func (p *saramaProducer) spoil(err error) {
	if p.txn.failed == nil {
		p.txn.failed = err
	}
	p.txn.t.breakOff(err)
	p.txn.t.scopeOf().stop()
	for _, q := range p.queues {
		p.dropFailed(q)
	}
}

// dropFailed empties a queue of a failed transaction, unless its batch is
// out. A state that an answer or a list will end stays.
func (p *saramaProducer) dropFailed(q *produceQueue) {
	if p.txn == nil || p.txn.failed == nil || q.state == queueSent {
		return
	}
	if q.batch != nil && q.batch.doubt {
		p.txn.t.doubt.Store(true) // its sequence may be used
	}
	q.failAll(p.txn.failed)
	q.retry.reset()
	if q.state == queueWaiting && q.timer.Stop() {
		q.state, q.timer = queueIdle, nil
	}
}

// unanswered notes that a request was written and has no answer.
func (p *saramaProducer) unanswered() {
	if p.txn != nil {
		p.txn.t.doubt.Store(true)
	}
}

// lostSequence ends the transaction because a batch that may have been
// written was given up, or the broker does not know what came before it. It
// reports false in a plain producer, which renews the epoch.
func (p *saramaProducer) lostSequence(q *produceQueue, err error) bool {
	if p.txn == nil {
		return false
	}
	p.txn.t.doubt.Store(true)
	p.spoil(&Error{TopicPartition: q.tp, Offset: -1, Err: fmt.Errorf("%w: its sequence is lost: %s", ErrAbortable, err.Error())})
	return true
}

// missing reports whether q must be added to the transaction first.
func (p *saramaProducer) missing(q *produceQueue) bool {
	if p.txn == nil {
		return false
	}
	_, added := p.txn.added[q.tp]
	return !added
}

// enroll has the partition added to the transaction.
func (p *saramaProducer) enroll(q *produceQueue) {
	q.state = queueAdding
	p.txn.adding = append(p.txn.adding, q)
	p.txn.t.want(q.tp)
	p.askToAdd()
}

func (p *saramaProducer) askToAdd() {
	if p.txn.asking || len(p.txn.adding) == 0 {
		return
	}
	p.txn.asking = true
	t := p.txn.t
	t.hold(1)
	p.wg.Go(func() { // ends with the answer, or with the transaction's scope
		decided, err := t.addPartitions()
		p.mail.Put(produceEvent{do: func() { p.enrolled(decided, err) }})
		t.finish(1)
	})
}

// enrolled acts on an answer: an error concerns the transaction, those in
// decided single partitions.
func (p *saramaProducer) enrolled(decided map[TopicPartition]error, err error) {
	p.txn.asking = false
	if err != nil && p.ctx.Err() == nil {
		p.spoil(err)
	}
	adding := p.txn.adding
	p.txn.adding = nil
	for _, q := range adding {
		refused, ok := decided[q.tp]
		switch {
		case p.txn.failed != nil, err != nil:
			q.state = queueIdle
			p.dropFailed(q)
		case !ok:
			p.txn.adding = append(p.txn.adding, q)
		case refused == nil:
			q.state = queueIdle
			p.txn.added[q.tp] = struct{}{}
			p.advance(q)
		case errors.Is(refused, ErrUnknownTopic):
			p.unknownTopic(q, refused)
		default:
			q.state = queueIdle
			p.failAll(q, refused)
		}
	}
	p.askToAdd()
}

// judgeTxn acts on answers to a transactional batch that concern the whole
// transaction. It reports whether it did.
func (p *saramaProducer) judgeTxn(part producePart, code sarama.KError) bool {
	if p.txn == nil {
		return false
	}
	switch code {
	case sarama.ErrOutOfOrderSequenceNumber, sarama.ErrUnknownProducerID:
		return p.lostSequence(part.q, code)
	case sarama.ErrClusterAuthorizationFailed, sarama.ErrTransactionalIDAuthorizationFailed, errTransactionAbortable:
	default:
		if !fencing(code) {
			return false
		}
	}
	part.b.doubt = part.doubted // this try was not written
	p.spoil(&Error{TopicPartition: part.q.tp, Offset: -1, Err: txnError(kerror(code))})
	return true
}

// ofRun reports whether err may be the error of a single run in a
// transaction; with any other the transaction fails as a whole.
func ofRun(err error) bool {
	return errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnknownTopic) || errors.Is(err, ErrNotAuthorized) || errors.Is(err, ErrInvalidRecord)
}

// trySoon sends a transactional batch again after a moment, if that is what a
// refusal asks for: the leader found the coordinator busy with the
// transaction, since offsets are being added to it. Older protocols have no
// other code for that than too few replicas.
func (p *saramaProducer) trySoon(q *produceQueue, code sarama.KError) bool {
	busy := code == sarama.ErrConcurrentTransactions || code == sarama.ErrNotEnoughReplicas
	if p.txn == nil || p.txn.failed != nil || !busy || q.batch.quick == quickTries {
		return false
	}
	q.batch.quick++
	q.state = queueWaiting
	q.timer = p.d.clock.AfterFunc(concurrentPause, func() { p.waited(q) })
	return true
}

// quickTries is how often a batch is sent again at once, before it waits as
// others do.
const quickTries = 20

// told is err as a run is told of it: in a transaction one of those that a
// single run may have, or why the transaction failed.
func (p *saramaProducer) told(err error) error {
	switch {
	case p.txn == nil, ofRun(err):
		return err
	case p.txn.failed != nil:
		return p.txn.failed
	}
	return txnError(err)
}

// spread fails the transaction if err is not that of a single run.
func (p *saramaProducer) spread(err error) {
	if p.txn != nil && !ofRun(err) {
		p.spoil(err)
	}
}
