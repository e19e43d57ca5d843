package kafka

import (
	"fmt"
	"math"
	"time"

	"github.com/IBM/sarama"
)

// queueState is where a partition's queue stands; see saramaProducer.
type queueState int8

const (
	queueIdle queueState = iota
	queueLooking
	queueNumbering
	queueAdding // of transactions only, see txnQueues
	queueReady
	queueSent
	queueWaiting
)

// produceQueue holds what is to be written to one partition, in this order:
// the batch that is out or will be tried again, the pieces of a batch that
// was refused, and what no batch was formed of yet. Its methods do no more
// than bookkeeping and calling Done; it belongs to the producer's run.
type produceQueue struct {
	tp    TopicPartition
	state queueState

	batch   *produceBatch
	pieces  []*produceBatch
	pending []span // pending[head:] waits
	head    int

	leader       string // address, "" if unknown
	seat         seat
	limit        int // bytes of the next batch; halved when one is too large
	maxLimit     int
	retry        *backoff
	timer        Timer     // of waiting
	unknown      time.Time // since then brokers say that there is no such topic
	unknownAgain time.Time // and said so last
}

// seat is what a partition's next batch is numbered with.
type seat struct {
	id    int64 // -1: none
	epoch int16
	seq   int32
}

// after is the seat behind n records.
func (s seat) after(n int) seat {
	s.seq = int32((int64(s.seq) + int64(n)) & math.MaxInt32)
	return s
}

// renewed is the first seat of an epoch that the partition has not used: the
// next one, or the highest of its id if that is higher. Without an id if
// there is none left.
func (s seat) renewed(top int16, id int64) seat {
	if s.epoch >= math.MaxInt16-1 {
		return seat{id: -1}
	}
	next := s.epoch + 1
	if s.id == id {
		next = max(next, top)
	}
	return seat{id: s.id, epoch: next}
}

// span are consecutive records of one Outgoing with the same fate so far.
type span struct {
	records  []Record
	from     int // index of records[0] in the Outgoing
	done     func(Run)
	deadline time.Time // zero: none
	dead     bool      // done was called: it timed out while its batch was in doubt
}

func (s *span) succeed(base int64) {
	s.done(Run{From: s.from, To: s.from + len(s.records), Base: base})
}

func (s *span) fail(err error) {
	s.done(Run{From: s.from, To: s.from + len(s.records), Base: -1, Err: err})
}

func (s *span) overdue(now time.Time) bool {
	return !s.deadline.IsZero() && !now.Before(s.deadline)
}

// produceBatch is one record batch: what it is made of, and its bytes once
// it was sent.
type produceBatch struct {
	spans []span
	count int
	bytes int // uncompressed, by Record.Size

	// encoded carries the compressed bytes after the first sending; a later
	// one changes its header only.
	encoded *sarama.RecordBatch

	handed bool // a sender reads the records
	doubt  bool // it is out, or an earlier try of it may have been written
	alone  bool // it must not share a request: one of those could not be encoded
	tries  int  // with a new epoch each
	quick  int  // tries of trySoon
}

func (b *produceBatch) add(s span, bytes int) {
	b.spans = append(b.spans, s)
	b.count += len(s.records)
	b.bytes += bytes
}

func newProduceQueue(tp TopicPartition, limit int) *produceQueue {
	return &produceQueue{tp: tp, seat: seat{id: -1}, limit: limit, maxLimit: limit}
}

// believe notes that a broker does not know the topic. It reports whether
// that was so for as long as metadata may be stale.
func (q *produceQueue) believe(now time.Time) bool {
	if q.unknown.IsZero() || now.Sub(q.unknownAgain) > unknownTopicPatience {
		q.unknown = now
	}
	q.unknownAgain = now
	if now.Sub(q.unknown) < unknownTopicPatience {
		return false
	}
	q.unknown = time.Time{}
	return true
}

func (q *produceQueue) push(o Outgoing, deadline time.Time) {
	if q.head > 64 && q.head*2 > len(q.pending) {
		n := copy(q.pending, q.pending[q.head:])
		clear(q.pending[n:])
		q.pending, q.head = q.pending[:n], 0
	}
	q.pending = append(q.pending, span{records: o.Records, done: o.Done, deadline: deadline})
}

func (q *produceQueue) pop() {
	q.pending[q.head] = span{}
	if q.head++; q.head == len(q.pending) {
		q.pending, q.head = q.pending[:0], 0
	}
}

func (q *produceQueue) empty() bool {
	return q.batch == nil && len(q.pieces) == 0 && q.head == len(q.pending)
}

// next returns the batch to send now, nil if there is nothing: the one that
// is to be tried again, the next piece, or a new one.
func (q *produceQueue) next() *produceBatch {
	if q.batch != nil {
		return q.batch
	}
	if len(q.pieces) > 0 {
		q.batch, q.pieces = q.pieces[0], q.pieces[1:]
		return q.batch
	}
	if b := q.form(); b.count > 0 {
		q.batch = b
	}
	return q.batch
}

// form puts as many records as fit into one batch. Records that cannot be
// written fail at their turn.
func (q *produceQueue) form() *produceBatch {
	b := &produceBatch{}
	for q.head < len(q.pending) {
		s := &q.pending[q.head]
		n, bytes, bad := fit(s.records, q.limit-b.bytes, b.count == 0)
		switch {
		case n > 0:
			b.add(s.head(n), bytes)
		case bad && b.count == 0:
			refused := s.head(1)
			refused.fail(q.failure(&refused, fmt.Errorf("%w: timestamp %d", ErrInvalidRecord, refused.records[0].Timestamp)))
		default:
			return b
		}
		if len(s.records) == 0 {
			q.pop()
		}
	}
	return b
}

// head cuts the first n records off s and returns them.
func (s *span) head(n int) span {
	first := *s
	first.records = s.records[:n]
	s.records = s.records[n:]
	s.from += n
	return first
}

// fit counts the records that have room in a batch, the first one in any
// case if the batch is empty. It stops at one that cannot be encoded, and
// says so if that is the first.
func fit(records []Record, room int, empty bool) (n, bytes int, bad bool) {
	for n = range records {
		r := &records[n]
		if r.Timestamp > maxTimestamp {
			return n, bytes, n == 0
		}
		size := r.Size()
		if bytes+size > room && (n > 0 || !empty) {
			return n, bytes, false
		}
		bytes += size
	}
	return len(records), bytes, false
}

// maxTimestamp is the latest time, in milliseconds, that sarama encodes: it
// computes in nanoseconds. It is in the year 2262.
const maxTimestamp = math.MaxInt64 / int64(time.Millisecond)

// acked reports the batch as written from base on.
func (q *produceQueue) acked(base int64) {
	b := q.batch
	q.batch = nil
	q.seat = q.seat.after(b.count)
	q.limit = min(q.limit+q.limit/64+1, q.maxLimit)
	for i := range b.spans {
		s := &b.spans[i]
		if !s.dead {
			s.succeed(base)
		}
		if base >= 0 {
			base += int64(len(s.records))
		}
	}
}

// refuse fails the batch.
func (q *produceQueue) refuse(err error) {
	b := q.batch
	q.batch = nil
	q.failSpans(b.spans, err)
}

// cut replaces the batch by its halves, which then stand alone; a single
// record fails. Nothing of it was written.
func (q *produceQueue) cut(err error, tooLarge bool) {
	b := q.batch
	if b.live() == 1 {
		q.refuse(err)
		return
	}
	if tooLarge {
		q.limit = min(q.limit, max(b.bytes/2, minLimit))
	}
	q.batch = nil
	q.pieces = append(b.halves(), q.pieces...)
}

// minLimit is how far batches shrink on their own: what is refused below it
// is a matter of its records.
const minLimit = 16 << 10

// live counts the records that nothing was reported of yet.
func (b *produceBatch) live() int {
	n := 0
	for i := range b.spans {
		if !b.spans[i].dead {
			n += len(b.spans[i].records)
		}
	}
	return n
}

func (b *produceBatch) halves() []*produceBatch {
	halves := []*produceBatch{{}, {}}
	left := (b.live() + 1) / 2
	for _, s := range b.spans {
		if s.dead {
			continue
		}
		if n := min(left, len(s.records)); n > 0 {
			first := s.head(n)
			halves[0].add(first, sizeOf(first.records))
			left -= n
		}
		if len(s.records) > 0 {
			halves[1].add(s, sizeOf(s.records))
		}
	}
	if halves[1].count == 0 {
		return halves[:1]
	}
	return halves
}

func sizeOf(records []Record) int {
	n := 0
	for i := range records {
		n += records[i].Size()
	}
	return n
}

// expire fails what is overdue. It reports whether a batch that may have
// been written was given up, after which the epoch must be renewed.
func (q *produceQueue) expire(now time.Time) (abandoned bool) {
	if q.batch != nil {
		if q.batch.handed {
			return false
		}
		if q.batch.expire(q, now); q.batch.live() > 0 {
			return false
		}
		abandoned = q.batch.doubt
		q.batch = nil
	}
	for len(q.pieces) > 0 {
		if q.pieces[0].expire(q, now); q.pieces[0].live() > 0 {
			return abandoned
		}
		q.pieces = q.pieces[1:]
	}
	for q.head < len(q.pending) && q.pending[q.head].overdue(now) {
		s := q.pending[q.head]
		q.pop()
		s.fail(q.failure(&s, ErrDeliveryTimeout))
	}
	return abandoned
}

// expire fails overdue spans. They stay in a batch that may have been
// written, because it must be repeated as it was; from others they go.
func (b *produceBatch) expire(q *produceQueue, now time.Time) {
	kept := b.spans[:0]
	for i := range b.spans {
		s := &b.spans[i]
		if !s.dead && s.overdue(now) {
			s.dead = true
			s.fail(q.failure(s, ErrDeliveryTimeout))
		}
		if s.dead && !b.doubt {
			b.count -= len(s.records)
			b.encoded = nil
			continue
		}
		kept = append(kept, *s)
	}
	b.spans = kept
}

// deadline is when something of the queue is overdue next, zero if nothing
// can be. What is overdue and cannot be failed yet is looked at again soon.
func (q *produceQueue) deadline(now time.Time) time.Time {
	first := q.first()
	if first == nil || first.deadline.IsZero() {
		return time.Time{}
	}
	if first.overdue(now) {
		return now.Add(backoffMin)
	}
	return first.deadline
}

func (q *produceQueue) first() *span {
	if q.batch != nil {
		for i := range q.batch.spans {
			if !q.batch.spans[i].dead {
				return &q.batch.spans[i]
			}
		}
	}
	if len(q.pieces) > 0 {
		return &q.pieces[0].spans[0]
	}
	if q.head < len(q.pending) {
		return &q.pending[q.head]
	}
	return nil
}

// failAll fails everything in the queue. No sender may hold its batch.
func (q *produceQueue) failAll(err error) {
	if q.batch != nil {
		q.refuse(err)
	}
	pieces := q.pieces
	q.pieces = nil
	for _, b := range pieces {
		q.failSpans(b.spans, err)
	}
	pending := q.pending[q.head:]
	q.pending, q.head = nil, 0
	q.failSpans(pending, err)
}

func (q *produceQueue) failSpans(spans []span, err error) {
	for i := range spans {
		if s := &spans[i]; !s.dead {
			s.fail(q.failure(s, err))
		}
	}
}

// failure places err: at the record's key if it concerns a single one.
func (q *produceQueue) failure(s *span, err error) error {
	e := &Error{TopicPartition: q.tp, Offset: -1, Err: err}
	if len(s.records) == 1 {
		e.Key = s.records[0].Key
	}
	return e
}
