package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/rekastream/reka/internal/work"
)

// saramaProducer is the Producer over sarama's AsyncProduce.
//
// One goroutine, run, owns all queues and decides everything; it never waits
// for the network. Beside it stand one sender a broker, which builds,
// compresses and writes requests, and short-lived goroutines that look up a
// leader or a producer id. All of them report to run through its mailbox.
//
// States of a partition's queue (produceQueue says what is in it):
//
//	idle ──work──▶ looking ──leader──▶ numbering ──producer id──▶ ready ──taken──▶ sent
//	 ▲                ▲                                                              │
//	 │                └────────── waiting ◀──may succeed later────────────────────────┤
//	 └──────────────────────────────────────── acknowledged or refused ──────────────┘
//
// with looking and numbering left out where leader and id are known. Only in
// ready is the queue in the list of a sender, and only in sent does a sender
// or a broker hold its batch. From there come
//
//   - acknowledged: the records are done, the sequence moves behind them;
//   - refused for its content: the batch is cut in halves, until a single
//     record is refused. Nothing was written, so the sequence stays;
//   - may succeed later (leader moved, broker away, too few replicas): the
//     same batch with the same sequence goes to whoever leads by then;
//   - sequence unknown to the broker: the epoch is renewed and the same batch
//     goes out as the first of it.
//
// Invariants:
//
//   - At most one batch a partition is out, and the next is formed only when
//     its fate is known. So order is kept without counting on the connection.
//   - A batch that may have been written keeps its records and its sequence
//     until it is acknowledged or its last record has timed out. Then the
//     epoch of the partition is renewed: what of the old one still reaches
//     the broker is refused there, and the new one does not depend on it.
//   - Brokers keep sequences and epochs per partition. Hence a renewal
//     concerns its partition only, and none waits for another's.
//   - Runs are reported in order: what stands behind a batch in the hands of
//     a sender does not time out before it.
type saramaProducer struct {
	d     *saramaDriver
	cfg   ProducerConfig
	codec sarama.CompressionCodec
	conns *conns     // of the senders
	ids   *conns     // for producer ids
	txn   *txnQueues // nil: not in transactions
	mail  *work.Mailbox[produceEvent]

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ended  chan struct{}  // closed when run has ended
	wg     sync.WaitGroup // senders and look-ups; run waits for them

	// Owned by run.
	queues    map[TopicPartition]*produceQueue
	senders   map[string]*produceSender
	id        int64 // the producer id that queues start with, -1: none
	idEpoch   int16 // the epoch it came with
	asking    bool  // for a producer id
	numbering []*produceQueue
	topEpoch  int16     // the highest that any partition uses with id
	alarm     Timer     // of the next delivery timeout, nil: none
	alarmAt   time.Time // when it rings
}

// produceEvent is an Outgoing, or something to do on run.
type produceEvent struct {
	out Outgoing
	do  func()
}

const (
	defaultBatchBytes = 1_000_000
	maxInFlight       = 5 // requests a broker; each of other partitions

	// produceTimeout is how long a broker may wait for replicas.
	produceTimeout = 10 * time.Second

	// connectTimeout ends the dialling of a leader: by then another may lead.
	connectTimeout = 10 * time.Second

	// unknownTopicPatience is how long brokers may not know a topic before
	// they are believed: metadata of a new topic takes a while to spread.
	unknownTopicPatience = 5 * time.Second
)

func newSaramaProducer(d *saramaDriver, cfg ProducerConfig) (Producer, error) {
	p, err := newProducerOf(d, cfg, nil)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// newProducerOf returns a producer that writes in transactions if txn is not
// nil.
func newProducerOf(d *saramaDriver, cfg ProducerConfig, txn *txnQueues) (*saramaProducer, error) {
	cfg.BatchBytes = cmp.Or(cfg.BatchBytes, defaultBatchBytes)
	if cfg.BatchBytes < 0 || cfg.DeliveryTimeout < 0 {
		return nil, errors.New("producer: BatchBytes and DeliveryTimeout must not be negative")
	}
	codec, err := saramaCodec(cfg.Compression)
	if err != nil {
		return nil, err
	}
	p := &saramaProducer{
		d: d, cfg: cfg, codec: codec, conns: d.newConns("produce"), ids: d.newConns("producer id"), txn: txn,
		mail: work.NewMailbox[produceEvent](nil), ended: make(chan struct{}),
		queues: map[TopicPartition]*produceQueue{}, senders: map[string]*produceSender{}, id: -1,
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.run() // ends with Close, which waits for it
	return p, nil
}

func saramaCodec(c Compression) (sarama.CompressionCodec, error) {
	switch c {
	case LZ4:
		return sarama.CompressionLZ4, nil
	case NoCompression:
		return sarama.CompressionNone, nil
	case Gzip:
		return sarama.CompressionGZIP, nil
	case Snappy:
		return sarama.CompressionSnappy, nil
	case Zstd:
		return sarama.CompressionZSTD, nil
	}
	return 0, fmt.Errorf("producer: unknown compression %d", c)
}

func (p *saramaProducer) Produce(o Outgoing) {
	if len(o.Records) == 0 {
		o.Done(Run{Base: -1})
		return
	}
	if !p.mail.Put(produceEvent{out: o}) {
		o.Done(Run{To: len(o.Records), Base: -1, Err: ErrClosed})
	}
}

func (p *saramaProducer) Close() error {
	p.mail.Close()
	<-p.ended
	p.d.release(p)
	return nil
}

func (p *saramaProducer) run() {
	defer close(p.ended)
	for {
		events, ok := p.mail.Take()
		if !ok {
			break
		}
		p.handle(events)
	}
	p.cancel()
	for _, s := range p.senders {
		close(s.jobs)
	}
	p.conns.close()
	p.ids.close()
	p.wg.Wait()
	if p.alarm != nil {
		p.alarm.Stop()
	}
	for _, q := range p.queues {
		if q.timer != nil {
			q.timer.Stop()
		}
		q.failAll(ErrClosed)
	}
}

func (p *saramaProducer) handle(events []produceEvent) {
	var deadline time.Time
	if p.cfg.DeliveryTimeout > 0 {
		deadline = p.d.clock.Now().Add(p.cfg.DeliveryTimeout)
		p.ring(deadline)
	}
	for i := range events {
		if do := events[i].do; do != nil {
			do()
			continue
		}
		q := p.queue(events[i].out.TopicPartition)
		q.push(events[i].out, deadline)
		p.advance(q)
	}
	for _, s := range p.senders {
		p.feed(s)
	}
}

func (p *saramaProducer) queue(tp TopicPartition) *produceQueue {
	q := p.queues[tp]
	if q == nil {
		q = newProduceQueue(tp, p.cfg.BatchBytes)
		q.retry = newBackoff("producing to "+tp.String(), p.d.clock, p.d.log)
		p.queues[tp] = q
	}
	return q
}

// advance moves an idle queue as far as it gets without waiting.
func (p *saramaProducer) advance(q *produceQueue) {
	p.dropFailed(q)
	if q.state != queueIdle || q.empty() {
		return
	}
	switch {
	case q.leader == "":
		q.state = queueLooking
		p.wg.Go(func() { // ends with the answer or ctx
			addr, _, err := p.d.leader(p.ctx, q.tp)
			p.mail.Put(produceEvent{do: func() { p.located(q, addr, err) }})
		})
	case p.missing(q):
		p.enroll(q)
	case q.seat.id < 0 && p.id < 0:
		q.state = queueNumbering
		p.numbering = append(p.numbering, q)
		p.askID(q)
	default:
		if q.seat.id < 0 {
			q.seat = seat{id: p.id, epoch: p.idEpoch}
		}
		q.state = queueReady
		s := p.sender(q.leader)
		s.ready = append(s.ready, q)
	}
}

func (p *saramaProducer) located(q *produceQueue, addr string, err error) {
	q.state = queueIdle
	switch {
	case err == nil:
		q.leader = addr
		p.advance(q)
	case errors.Is(err, ErrUnknownTopic):
		p.unknownTopic(q, err)
	case p.ctx.Err() == nil:
		p.failAll(q, err)
	}
}

// failAll fails what is queued; what comes later is tried anew.
func (p *saramaProducer) failAll(q *produceQueue, err error) {
	doubt := q.batch != nil && q.batch.doubt
	err = p.told(err)
	q.failAll(err)
	p.spread(err)
	if doubt && !p.lostSequence(q, err) {
		p.renew(q)
	}
}

// unknownTopic asks again, until brokers have not known the topic for so
// long that they must be right.
func (p *saramaProducer) unknownTopic(q *produceQueue, err error) {
	if !q.believe(p.d.clock.Now()) {
		p.tryLater(q, err)
		return
	}
	q.state = queueIdle
	p.failAll(q, err)
	p.renew(q) // a topic of that name will be another one
}

// tryLater lets the queue look for its leader again after a while.
func (p *saramaProducer) tryLater(q *produceQueue, err error) {
	q.state, q.leader = queueWaiting, ""
	p.d.invalidate(q.tp.Topic)
	q.timer = p.d.clock.AfterFunc(q.retry.failed(err), func() { p.waited(q) })
	p.dropFailed(q)
}

// waited ends the waiting of a queue. It runs on the clock.
func (p *saramaProducer) waited(q *produceQueue) {
	p.mail.Put(produceEvent{do: func() {
		q.state, q.timer = queueIdle, nil
		p.advance(q)
	}})
}

// askID gets a producer id from the leader of q, or from whoever follows it.
func (p *saramaProducer) askID(q *produceQueue) {
	if p.asking {
		return
	}
	p.asking = true
	tp, addr := q.tp, q.leader
	p.wg.Go(func() { // ends with the answer or ctx
		id, epoch, err := p.fetchID(tp, addr)
		p.mail.Put(produceEvent{do: func() { p.numbered(id, epoch, err) }})
	})
}

func (p *saramaProducer) fetchID(tp TopicPartition, addr string) (int64, int16, error) {
	b := newBackoff("getting a producer id", p.d.clock, p.d.log)
	for {
		var answer *sarama.InitProducerIDResponse
		err := p.ids.do(p.ctx, addr, func(b *sarama.Broker) (err error) {
			answer, err = b.InitProducerID(&sarama.InitProducerIDRequest{Version: 1, ProducerID: -1, ProducerEpoch: -1})
			return err
		})
		if err == nil {
			if err = kerror(answer.Err); err == nil {
				p.ids.drop(addr) // it is not needed for long
				return answer.ProducerID, answer.ProducerEpoch, nil
			}
		}
		if !retriable(err) {
			return -1, -1, fmt.Errorf("producer id: %w", err)
		}
		if err := b.wait(p.ctx, err); err != nil {
			return -1, -1, err
		}
		p.d.invalidate(tp.Topic)
		if next, _, err := p.d.leader(p.ctx, tp); err == nil {
			addr = next
		}
	}
}

func (p *saramaProducer) numbered(id int64, epoch int16, err error) {
	p.asking = false
	if err == nil {
		p.id, p.idEpoch, p.topEpoch = id, epoch, epoch
	}
	waiting := p.numbering
	p.numbering = nil
	for _, q := range waiting {
		q.state = queueIdle
		if err != nil && p.ctx.Err() == nil {
			p.failAll(q, err)
		}
		p.advance(q)
	}
}

// renew gives a partition an epoch of its own above all that were used, so
// that nothing it sent before matters; when epochs are used up, a new id.
func (p *saramaProducer) renew(q *produceQueue) {
	if q.seat.id < 0 || p.txn != nil {
		return
	}
	old := q.seat
	q.seat = old.renewed(p.topEpoch, p.id)
	switch {
	case q.seat.id < 0 && old.id == p.id:
		p.id = -1
	case q.seat.id == p.id:
		p.topEpoch = max(p.topEpoch, q.seat.epoch)
	}
}

// ring makes expire run at t, or earlier.
func (p *saramaProducer) ring(t time.Time) {
	if p.alarm != nil {
		if !t.Before(p.alarmAt) {
			return
		}
		p.alarm.Stop()
	}
	p.alarmAt = t
	p.alarm = p.d.clock.AfterFunc(t.Sub(p.d.clock.Now()), func() {
		p.mail.Put(produceEvent{do: p.expire})
	})
}

// expire fails what has waited for longer than the delivery timeout.
func (p *saramaProducer) expire() {
	now := p.d.clock.Now()
	if now.Before(p.alarmAt) {
		return // of an alarm that was moved
	}
	p.alarm = nil
	var next time.Time
	for _, q := range p.queues {
		p.expireQueue(q, now)
		if t := q.deadline(now); !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if !next.IsZero() {
		p.ring(next)
	}
}

func (p *saramaProducer) expireQueue(q *produceQueue, now time.Time) {
	abandoned := q.expire(now)
	if !abandoned {
		return
	}
	p.renew(q)
	if q.state == queueSent { // its answer will be nobody's
		q.state = queueIdle
		p.advance(q)
	}
}
