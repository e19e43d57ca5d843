package emitter

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// event is what the owner is told.
type event struct {
	kind  kind
	batch *batch    // ran
	run   kafka.Run // ran
	seen  *sighting // looked
	flush *flushing // flushed
	cause error     // aborted
}

type kind int8

const (
	poked    kind = iota // see what is to be done
	lingered             // the linger time has passed
	ran                  // the producer told the fate of a run
	looked               // the look-up of the topic has an answer
	expired              // unplaced records may be too old
	retried              // a refused topic may be asked for again
	flushed              // somebody waits for all that came before
	stopped              // Close was called
	aborted              // and its time is over
)

// owner is the state that only the owner goroutine touches.
type owner struct {
	producer kafka.Producer
	sent     map[*batch]struct{} // what the producer has
	ready    []*batch            // to be handed over; kept to reuse its room

	looking    bool
	cancelLook context.CancelFunc
	lookedAt   time.Time
	doubted    bool // the producer said that a partition does not exist

	expiry  kafka.Timer // nil: not armed
	waiting []*flushing // for unplaced records

	aborted     bool
	undelivered error     // set before the sink's ended is closed
	lost        error     // the first failure that no flush has told
	warned      time.Time // when losses were logged last
	unwarned    int       // records lost and not logged
	lastLoss    error
}

// start starts the owner. It ends when the sink is closing and all results
// are resolved; close waits for it. REQUIRES: mu.
func (s *sink) start() {
	s.started = true
	work.Go(s.driver.Work(), s.own)
}

func (s *sink) own() {
	for {
		events, _ := s.inbox.Take()
		for i := range events {
			s.handle(&events[i])
		}
		s.push()
		if s.drained() {
			break
		}
	}
	s.end()
}

func (s *sink) handle(e *event) {
	switch e.kind {
	case lingered:
		s.mu.Lock()
		s.linger = nil
		s.urgent = s.opened
		s.mu.Unlock()
	case ran:
		s.resolve(e.batch, e.run)
	case looked:
		s.see(e.seen)
	case expired:
		s.expire()
	case retried:
		s.mu.Lock()
		s.refused = nil
		s.mu.Unlock()
	case flushed:
		s.register(e.flush)
	case aborted:
		s.abort(e.cause)
	case poked, stopped: // push does it
	}
}

// push starts what can be started now: the look-up, and the handing over of
// what is full or has waited long enough.
func (s *sink) push() {
	for more := true; more; {
		look := s.collect()
		if look {
			s.look()
		}
		more = s.handOver()
	}
	s.watchAge()
}

// collect takes what is to be handed over, and says whether the topic is to
// be looked up.
func (s *sink) collect() (look bool) {
	o := &s.owner
	if o.aborted {
		s.drop(kafka.ErrClosed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poked = false
	if s.urgent || s.state == closing {
		s.urgent, s.opened = false, false
		for _, l := range s.lanes {
			l.due = l.open != nil
		}
	}
	for _, l := range s.lanes {
		for b := l.next(); b != nil; b = l.next() {
			o.ready = append(o.ready, b)
		}
	}
	if len(s.unplaced) > 0 || s.stale {
		return true
	}
	return len(o.ready) > 0 && s.driver.Clock().Now().Sub(o.lookedAt) >= s.cfg.refresh
}

// handOver hands the collected batches over. It reports whether one could
// not be, which has made room for the next of its lane.
func (s *sink) handOver() (failed bool) {
	o := &s.owner
	for i, b := range o.ready {
		if err := s.produce(b); err != nil {
			s.fail(b, err)
			failed = true
		}
		o.ready[i] = nil
	}
	o.ready = o.ready[:0]
	return failed
}

// produce hands a batch over.
func (s *sink) produce(b *batch) error {
	o := &s.owner
	if o.aborted {
		return kafka.ErrClosed
	}
	if o.producer == nil {
		p, err := s.driver.NewProducer(kafka.ProducerConfig{
			Compression:     s.cfg.compression,
			BatchBytes:      batchBytes,
			DeliveryTimeout: s.cfg.deliveryTimeout,
		})
		if err != nil {
			return err
		}
		o.producer = p
	}
	o.sent[b] = struct{}{}
	o.producer.Produce(kafka.Outgoing{
		TopicPartition: kafka.TopicPartition{Topic: s.topic, Partition: b.lane.partition},
		Records:        b.records,
		Done:           func(run kafka.Run) { s.inbox.Put(event{kind: ran, batch: b, run: run}) },
	})
	return nil
}

// fail resolves a whole batch that the producer does not have.
func (s *sink) fail(b *batch, err error) {
	s.resolve(b, kafka.Run{From: 0, To: len(b.records), Err: err})
}

// resolve resolves a run of results and gives their room back.
func (s *sink) resolve(b *batch, run kafka.Run) {
	bytes := b.bytes
	if run.To-run.From < len(b.records) {
		bytes = 0
		for i := run.From; i < run.To; i++ {
			bytes += b.records[i].Size()
		}
	}
	if run.Err == nil {
		for i, r := range b.results[run.From:run.To] {
			r.resolve(run.Base+int64(i), nil)
		}
	} else {
		s.resolveFailed(b, run)
	}
	b.done += run.To - run.From
	done := b.done == len(b.records)
	s.mu.Lock()
	s.release(run.To-run.From, bytes)
	if done && b.sent {
		b.lane.sent--
	}
	s.mu.Unlock()
	if done {
		delete(s.owner.sent, b)
		for _, f := range b.flushes {
			s.settle(f)
		}
		b.recycle()
	}
}

func (s *sink) resolveFailed(b *batch, run kafka.Run) {
	for i := run.From; i < run.To; i++ {
		err := s.cause(b, i, run.Err)
		if s.owner.lost == nil {
			s.owner.lost = err
		}
		b.results[i].resolve(-1, err)
	}
	s.doubt(run.Err)
	s.warn(run.To-run.From, run.Err)
}

// cause is the error of one record of a failed run.
func (s *sink) cause(b *batch, i int, err error) error {
	rec := &b.records[i]
	key := append([]byte(nil), rec.Key...)
	if rec.Key != nil && key == nil {
		key = []byte{}
	}
	if errors.Is(err, kafka.ErrTooLarge) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return &TooLargeError{Topic: s.topic, Key: key, Size: rec.Size(), Limit: s.limit}
	}
	p := b.results[i].partition
	var placed *kafka.Error
	if errors.As(err, &placed) && placed.Topic == s.topic && placed.Key == nil {
		err = placed.Err
	}
	return &kafka.Error{TopicPartition: kafka.TopicPartition{Topic: s.topic, Partition: p}, Offset: -1, Key: key, Err: err}
}

// warn logs lost records, a line a second at most; end logs the rest.
func (s *sink) warn(n int, err error) {
	o := &s.owner
	o.unwarned += n
	o.lastLoss = err
	if now := s.driver.Clock().Now(); now.Sub(o.warned) >= time.Second {
		o.warned = now
		s.warnNow()
	}
}

func (s *sink) warnNow() {
	o := &s.owner
	if o.unwarned > 0 {
		s.log.Warn("records were not delivered", zap.Int("records", o.unwarned), zap.Error(o.lastLoss))
		o.unwarned = 0
	}
}
