package emitter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// sink is an emitter without its type. Callers append to it under mu; its
// owner goroutine (owner.go) hands over and resolves.
type sink struct {
	// Fixed after newSink.
	topic  string
	cfg    config
	driver kafka.Driver
	place  kafka.Partitioner
	log    *zap.Logger
	inbox  *work.Mailbox[event]
	ended  chan struct{} // closed by the owner when all is resolved

	// count is len(lanes), to place a record before mu is taken.
	count atomic.Int32

	mu sync.Mutex
	// Guarded by mu.
	state    state
	started  bool        // the owner runs
	lanes    []*lane     // by partition; empty until the topic is looked up
	unplaced []*batch    // what came before that; the last one is open
	turn     int         // of records without a key
	limit    int         // max.message.bytes, 0 if not known
	refused  error       // why nothing can be written just now
	records  int         // accepted and not resolved
	bytes    int         // of these
	waiters  []*waiter   // for room, first come first served
	opened   bool        // something waits in an open batch
	urgent   bool        // and somebody waits for it
	poked    bool        // an event for the owner is on its way
	stale    bool        // the partition count is to be looked up again
	linger   kafka.Timer // nil: not armed

	owner owner
}

type state int8

const (
	accepting state = iota
	closing
	ended
)

// draft is a record as its caller gives it.
type draft struct {
	key   string
	value []byte // nil: null
	say   reka.Emission
}

func newSink(c *kafka.Client, topic string, cfg config) *sink {
	return &sink{
		topic:  topic,
		cfg:    cfg,
		driver: c.Driver(),
		place:  c.Partitioner(),
		log:    c.Logger().With(zap.String("topic", topic)),
		inbox:  work.NewMailbox[event](c.Driver().Work()),
		ended:  make(chan struct{}),
		owner:  owner{sent: make(map[*batch]struct{})},
	}
}

// accept takes a record into the buffer, waiting for room. The bytes of d and
// those of sc are the caller's again when it returns.
func (s *sink) accept(ctx context.Context, sc *scratch, d draft) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rec, err := s.record(sc, &d)
	if err != nil {
		return nil, s.fault([]byte(d.key), d.say.Partition, err)
	}
	r := &Result{sink: s, millis: rec.Timestamp, partition: d.say.Partition}
	size := rec.Size()
	n, p := s.partition(&rec, r.partition)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reserve(ctx, size, d.key); err != nil {
		return nil, err
	}
	for n != s.count.Load() {
		s.mu.Unlock()
		n, p = s.partition(&rec, r.partition)
		s.mu.Lock()
	}
	if n > 0 && (p >= n || p < inTurn) { // below it: a partitioner that is broken
		s.stale = true
		s.release(1, size)
		s.poke()
		return nil, s.fault([]byte(d.key), p, kafka.ErrUnknownTopic)
	}
	s.append(rec, r, p, size)
	return r, nil
}

// record checks the draft and completes it.
func (s *sink) record(sc *scratch, d *draft) (kafka.Record, error) {
	rec := kafka.Record{Value: d.value, Headers: s.headers(d.say.Headers)}
	switch {
	case !d.say.NullKey:
		sc.key = append(sc.key[:0], d.key...)
		rec.Key = sc.key
		if rec.Key == nil {
			rec.Key = []byte{}
		}
	case d.key != "":
		return rec, errors.New("reka.NullKey with a key")
	}
	if d.say.Partition < -1 {
		return rec, errors.New("reka.ToPartition: below 0")
	}
	at := d.say.Time
	if at.IsZero() {
		at = s.driver.Clock().Now()
	}
	rec.Timestamp = at.UnixMilli()
	if rec.Timestamp < 0 {
		return rec, fmt.Errorf("reka.At(%v): before 1970", at)
	}
	return rec, nil
}

func (s *sink) headers(own []reka.EmissionHeader) []kafka.Header {
	if len(own) == 0 {
		return s.cfg.headers
	}
	all := make([]kafka.Header, 0, len(s.cfg.headers)+len(own))
	all = append(all, s.cfg.headers...)
	for _, h := range own {
		all = append(all, kafka.Header{Key: h.Name, Value: h.Value})
	}
	return all
}

// inTurn is the partition of a record whose turn decides.
const inTurn = -1

// partition places a record among n partitions; n is 0 while their number is
// not known.
func (s *sink) partition(rec *kafka.Record, asked int32) (n, p int32) {
	n = s.count.Load()
	if asked >= 0 {
		return n, asked
	}
	if n == 0 || rec.Key == nil {
		return n, inTurn
	}
	return n, s.place.Partition(rec.Key, n)
}

// append puts an accepted record into its batch. REQUIRES: mu.
func (s *sink) append(rec kafka.Record, r *Result, p int32, size int) {
	if !s.started {
		s.start()
	}
	var b *batch
	if len(s.lanes) == 0 {
		b = s.openUnplaced(size)
	} else {
		b = s.openLane(r, p, size)
	}
	b.own(&rec)
	b.add(rec, r, size)
	s.arm()
}

func (s *sink) openUnplaced(size int) *batch {
	now := s.driver.Clock().Now()
	if n := len(s.unplaced); n > 0 {
		if b := s.unplaced[n-1]; b.fits(size) && now.Sub(b.since) <= s.cfg.linger {
			return b
		}
	}
	b := newBatch(nil)
	b.since = now
	s.unplaced = append(s.unplaced, b)
	if len(s.unplaced) == 1 {
		s.poke() // the look-up need not wait for the linger time
	}
	return b
}

func (s *sink) openLane(r *Result, p int32, size int) *batch {
	if p == inTurn {
		p = int32(s.turn % len(s.lanes))
		s.turn++
	}
	r.partition = p
	l := s.lanes[p]
	if l.open != nil && !l.open.fits(size) {
		l.seal()
		if l.sent < maxSent {
			s.poke()
		}
	}
	if l.open == nil {
		l.open = newBatch(l)
	}
	return l.open
}

// arm sees to it that the owner comes for what was just added. REQUIRES: mu.
func (s *sink) arm() {
	s.opened = true
	switch {
	case s.state == closing || s.cfg.linger == 0 || len(s.waiters) > 0:
		s.urgent = true
		s.poke()
	case s.linger == nil:
		s.linger = s.driver.Clock().Linger(s.cfg.linger, func() { s.inbox.Put(event{kind: lingered}) })
	}
}

// poke wakes the owner. REQUIRES: mu.
func (s *sink) poke() {
	if s.started && !s.poked {
		s.poked = true
		s.inbox.Put(event{kind: poked})
	}
}

// hurry ends the linger time: somebody waits.
func (s *sink) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened && !s.urgent {
		s.urgent = true
		s.poke()
	}
}

// fault places an error. Partition −1: not known.
func (s *sink) fault(key []byte, partition int32, err error) error {
	return &kafka.Error{
		TopicPartition: kafka.TopicPartition{Topic: s.topic, Partition: partition},
		Offset:         -1,
		Key:            key,
		Err:            err,
	}
}
