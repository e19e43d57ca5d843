package kafka

import (
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// verdict is what a broker's answer means for a batch.
type verdict int8

const (
	verdictAcked   verdict = iota
	verdictLater           // the same batch may succeed later or elsewhere
	verdictTopic           // the broker does not know the topic, perhaps not yet
	verdictRenew           // the sequence does not fit what the broker knows
	verdictCut             // refused for its content: a part may be accepted
	verdictRefused         // refused for good
)

// judge also reports whether the batch may have been written all the same. A
// batch that was in doubt before stays so unless it is acked.
func judge(e sarama.KError) (v verdict, doubt bool) {
	switch e {
	case sarama.ErrNoError, sarama.ErrDuplicateSequenceNumber:
		return verdictAcked, false
	case sarama.ErrUnknownTopicOrPartition:
		return verdictTopic, true
	case sarama.ErrOutOfOrderSequenceNumber, sarama.ErrUnknownProducerID, sarama.ErrInvalidProducerEpoch,
		sarama.ErrInvalidProducerIDMapping, sarama.ErrProducerFenced:
		return verdictRenew, false
	case sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge,
		sarama.ErrInvalidRecord, sarama.ErrInvalidTimestamp:
		return verdictCut, false
	case sarama.ErrNotEnoughReplicas, sarama.ErrThrottlingQuotaExceeded, sarama.ErrInvalidMessage, sarama.ErrConcurrentTransactions:
		return verdictLater, false
	case sarama.ErrTopicAuthorizationFailed, sarama.ErrClusterAuthorizationFailed, sarama.ErrInvalidTopic,
		sarama.ErrUnsupportedForMessageFormat, sarama.ErrUnsupportedCompressionType, sarama.ErrUnsupportedVersion,
		sarama.ErrInvalidRequiredAcks, sarama.ErrPolicyViolation:
		return verdictRefused, false
	}
	if retriableCode(e) {
		return verdictLater, true
	}
	return verdictRefused, true
}

// damagedTries is how often a batch is sent again that a broker found
// damaged. Then it was not damaged on its way: some brokers have no other
// code for a record that they refuse, and it is cut.
const damagedTries = 3

// settle acts on the answer for one batch, which stands in its queue.
func (p *saramaProducer) settle(part producePart, code sarama.KError, base int64) {
	q, b := part.q, part.b
	v, doubt := judge(code)
	b.doubt = part.doubted || doubt
	if code == sarama.ErrInvalidMessage {
		if b.tries++; b.tries > damagedTries {
			v = verdictCut
		}
	}
	if p.judgeTxn(part, code) {
		return
	}
	switch v {
	case verdictAcked:
		q.retry.reset()
		q.acked(base)
		q.unknown = time.Time{}
		p.advance(q)
	case verdictLater:
		if !p.trySoon(q, code) {
			p.tryLater(q, kerror(code))
		}
	case verdictTopic:
		p.unknownTopic(q, kerror(code))
	case verdictRenew:
		p.startOver(q, b, kerror(code))
	case verdictCut:
		p.cut(part, kerror(code), errors.Is(kerror(code), ErrTooLarge))
	case verdictRefused:
		p.refuse(part, kerror(code))
	}
}

// startOver sends the batch as the first of a new epoch: at once the first
// time, since a broker that has lost what it knew accepts that.
func (p *saramaProducer) startOver(q *produceQueue, b *produceBatch, err error) {
	p.renew(q)
	if b.tries++; b.tries > 1 {
		p.tryLater(q, err)
		return
	}
	p.advance(q)
}

// cut lets the halves of a batch go on alone.
func (p *saramaProducer) cut(part producePart, err error, tooLarge bool) {
	if part.b.doubt {
		if p.lostSequence(part.q, err) {
			return
		}
		p.renew(part.q)
	}
	part.q.cut(err, tooLarge)
	p.advance(part.q)
}

// refuse fails a batch and goes on with the next.
func (p *saramaProducer) refuse(part producePart, err error) {
	doubt := part.b.doubt
	err = p.told(err)
	part.q.refuse(err)
	p.spread(err)
	if doubt && !p.lostSequence(part.q, err) {
		p.renew(part.q)
	}
	p.advance(part.q)
}
