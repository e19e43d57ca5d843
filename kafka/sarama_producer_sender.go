package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// produceSender writes to one broker. Its goroutine, work, connects, builds
// record batches, and compresses and writes them within AsyncProduce. It
// does one job at a time; meanwhile more records come in for the next one.
type produceSender struct {
	p    *saramaProducer
	addr string
	jobs chan senderJob // capacity 1: run sends when the sender is not busy, and closes it

	// Owned by the producer's run.
	ready    []*produceQueue
	busy     bool
	inFlight int
	broker   *sarama.Broker // nil: to be connected

	// Owned by work, and reused: nothing refers to the records of a batch
	// once they are encoded, and of the pointers only their number counts.
	records  []sarama.Record
	pointers []*sarama.Record
	headers  []sarama.RecordHeader
	headerAt []*sarama.RecordHeader
	keys     []byte // of headers
}

// senderJob is a request to send, or to connect if there is none.
type senderJob struct {
	req *produceRequest
}

// produceRequest is what one ProduceRequest carries.
type produceRequest struct {
	broker   *sarama.Broker
	parts    []producePart
	answered bool
}

type producePart struct {
	q       *produceQueue
	b       *produceBatch
	seat    seat
	doubted bool // before this try
}

func (p *saramaProducer) sender(addr string) *produceSender {
	s := p.senders[addr]
	if s == nil {
		s = &produceSender{p: p, addr: addr, jobs: make(chan senderJob, 1)}
		p.senders[addr] = s
		p.wg.Go(s.work) // ends when run closes jobs
	}
	return s
}

// feed gives the sender its next job if it is free.
func (p *saramaProducer) feed(s *produceSender) {
	if s.busy || len(s.ready) == 0 || s.inFlight == maxInFlight {
		return
	}
	if s.broker == nil {
		s.busy = true
		s.jobs <- senderJob{}
		return
	}
	if req := p.assemble(s); req != nil {
		s.busy = true
		s.inFlight++
		s.jobs <- senderJob{req: req}
	}
}

// assemble takes batches of the queues that are ready, in turn, up to about
// one full batch: large batches travel alone, so that the next is compressed
// while the broker writes this one, and small ones together.
func (p *saramaProducer) assemble(s *produceSender) *produceRequest {
	req := &produceRequest{broker: s.broker}
	bytes, taken := 0, 0
	for _, q := range s.ready {
		if bytes >= p.cfg.BatchBytes {
			break
		}
		if q.seat.id < 0 || p.missing(q) { // its epochs were used up, or its transaction ended, meanwhile
			taken++
			q.state = queueIdle
			p.advance(q)
			continue
		}
		b := q.next()
		if b != nil && b.alone && len(req.parts) > 0 {
			break
		}
		taken++
		if b == nil {
			q.state = queueIdle
			continue
		}
		q.state = queueSent
		req.parts = append(req.parts, producePart{q: q, b: b, seat: q.seat, doubted: b.doubt})
		b.handed, b.doubt = true, true
		bytes += b.bytes
		if b.alone {
			break
		}
	}
	s.ready = slices.Delete(s.ready, 0, taken)
	if len(req.parts) == 0 {
		return nil
	}
	return req
}

// work does the jobs.
func (s *produceSender) work() {
	for job := range s.jobs {
		if job.req == nil {
			broker, err := s.connect()
			s.p.mail.Put(produceEvent{do: func() { s.connected(broker, err) }})
			continue
		}
		err := s.send(job.req)
		s.p.mail.Put(produceEvent{do: func() { s.sent(job.req, err) }})
	}
}

func (s *produceSender) connect() (*sarama.Broker, error) {
	s.p.conns.drop(s.addr)
	ctx, cancel := context.WithTimeout(s.p.ctx, connectTimeout)
	defer cancel()
	broker, err := s.p.conns.broker(ctx, s.addr)
	if err != nil && ctx.Err() != nil && s.p.ctx.Err() == nil {
		err = fmt.Errorf("broker %s: no connection within %s", s.addr, connectTimeout)
	}
	return broker, err
}

// send builds what is not built yet and writes the request. The answer comes
// to answered unless there is an error; then nothing was written.
func (s *produceSender) send(req *produceRequest) error {
	fresh := s.build(req)
	wire := &sarama.ProduceRequest{
		Version: produceVersion(s.p.d.cfg.Version), RequiredAcks: sarama.WaitForAll,
		Timeout: int32(produceTimeout / time.Millisecond), TransactionalID: s.p.transactionalID(),
	}
	for _, part := range req.parts {
		e := part.b.encoded
		e.ProducerID, e.ProducerEpoch, e.FirstSequence = part.seat.id, part.seat.epoch, part.seat.seq
		wire.AddBatch(part.q.tp.Topic, part.q.tp.Partition, e)
	}
	err := req.broker.AsyncProduce(wire, func(answer *sarama.ProduceResponse, err error) { // on sarama's reader
		s.p.mail.Put(produceEvent{do: func() { s.answered(req, answer, err) }})
	})
	if err != nil {
		for _, b := range fresh { // maybe not encoded, and the records will be reused
			b.encoded = nil
		}
	}
	s.clear()
	return err
}

func produceVersion(v sarama.KafkaVersion) int16 {
	switch {
	case v.IsAtLeast(sarama.V3_7_0_0):
		return 10
	case v.IsAtLeast(sarama.V2_8_0_0):
		return 9
	}
	return 8
}

// build makes record batches of those that have none, in the sender's own
// slabs, and returns them.
func (s *produceSender) build(req *produceRequest) (fresh []*produceBatch) {
	total := 0
	for _, part := range req.parts {
		if part.b.encoded == nil {
			total += part.b.count
			fresh = append(fresh, part.b)
		}
	}
	if cap(s.records) < total {
		s.records = make([]sarama.Record, 0, total)
		s.pointers = make([]*sarama.Record, total)
		for i := range s.pointers {
			s.pointers[i] = &s.records[:total][i]
		}
	}
	for _, b := range fresh {
		s.encode(b)
	}
	return fresh
}

func (s *produceSender) encode(b *produceBatch) {
	first, now := len(s.records), int64(-1)
	base, latest := int64(-1), int64(0)
	for _, span := range b.spans {
		for i := range span.records {
			r := &span.records[i]
			at := r.Timestamp
			if at < 0 {
				if now < 0 {
					now = max(s.p.d.clock.Now().UnixMilli(), 0)
				}
				at = now
			}
			if base < 0 {
				base = at
			}
			latest = max(latest, at)
			s.records = append(s.records, sarama.Record{
				Key: r.Key, Value: r.Value, Headers: s.encodeHeaders(r.Headers),
				OffsetDelta: int64(len(s.records) - first), TimestampDelta: time.Duration(at-base) * time.Millisecond,
			})
		}
	}
	n := len(s.records) - first
	b.encoded = &sarama.RecordBatch{
		Version: 2, Codec: s.p.codec, CompressionLevel: sarama.CompressionLevelDefault, IsTransactional: s.p.txn != nil,
		LastOffsetDelta: int32(n - 1), FirstTimestamp: time.UnixMilli(base), MaxTimestamp: time.UnixMilli(latest),
		Records: s.pointers[first : first+n : first+n],
	}
}

// encodeHeaders returns nil for none. The slabs may move when they grow;
// what was cut from the old ones stays good.
func (s *produceSender) encodeHeaders(headers []Header) []*sarama.RecordHeader {
	if len(headers) == 0 {
		return nil
	}
	first := len(s.headerAt)
	for i := range headers {
		at := len(s.keys)
		s.keys = append(s.keys, headers[i].Key...)
		key := s.keys[at:len(s.keys):len(s.keys)]
		if key == nil {
			key = []byte{} // nil would be a null, which no broker accepts
		}
		s.headers = append(s.headers, sarama.RecordHeader{Key: key, Value: headers[i].Value})
		s.headerAt = append(s.headerAt, &s.headers[len(s.headers)-1])
	}
	return s.headerAt[first:len(s.headerAt):len(s.headerAt)]
}

// clear empties the slabs, so that they hold none of the caller's bytes.
func (s *produceSender) clear() {
	clear(s.records)
	clear(s.headers)
	clear(s.headerAt)
	s.records, s.headers, s.headerAt, s.keys = s.records[:0], s.headers[:0], s.headerAt[:0], s.keys[:0]
}

// The rest runs on the producer's run.

func (s *produceSender) connected(broker *sarama.Broker, err error) {
	s.busy = false
	if err == nil {
		s.broker = broker
		return
	}
	ready := s.ready
	s.ready = nil
	for _, q := range ready {
		q.state = queueIdle
		switch {
		case retriable(err):
			s.p.tryLater(q, err)
		case !errors.Is(err, ErrClosed) && s.p.ctx.Err() == nil:
			s.p.failAll(q, err)
		}
	}
}

// sent notes that the sender is free again, and that the records are no
// longer read.
func (s *produceSender) sent(req *produceRequest, err error) {
	s.busy = false
	if err == nil {
		for i := range req.parts {
			if !req.answered {
				req.parts[i].b.handed = false
			}
		}
		return
	}
	s.inFlight--
	var encoding sarama.PacketEncodingError
	if !errors.As(err, &encoding) {
		s.broken(req.broker)
	}
	for _, part := range req.parts {
		part.b.handed, part.b.doubt = false, part.doubted
		if part.q.batch != part.b {
			continue
		}
		part.q.state = queueIdle
		switch {
		case errors.As(err, &encoding) && len(req.parts) > 1:
			part.b.alone = true
			s.p.advance(part.q)
		case errors.As(err, &encoding): // larger than any request may be
			s.p.cut(part, fmt.Errorf("%w (%w)", ErrTooLarge, err), true)
		case retriable(err):
			s.p.tryLater(part.q, connectionError(s.addr, err))
		default:
			s.p.refuse(part, connectionError(s.addr, err))
		}
	}
}

func (s *produceSender) broken(broker *sarama.Broker) {
	if s.broker == broker {
		s.broker = nil
	}
}

// answered settles the parts of a request. An error means that nobody knows
// what became of it.
func (s *produceSender) answered(req *produceRequest, answer *sarama.ProduceResponse, err error) {
	s.inFlight--
	req.answered = true
	if err != nil {
		s.broken(req.broker)
		s.p.unanswered()
		err = connectionError(s.addr, err)
	}
	for _, part := range req.parts {
		part.b.handed = false
		if part.q.batch != part.b {
			continue // it was given up
		}
		part.q.state = queueIdle
		var block *sarama.ProduceResponseBlock
		if err == nil {
			block = answer.GetBlock(part.q.tp.Topic, part.q.tp.Partition)
		}
		switch {
		case block != nil:
			s.p.settle(part, block.Err, block.Offset)
		case err == nil:
			s.p.tryLater(part.q, fmt.Errorf("broker %s: %w", s.addr, sarama.ErrIncompleteResponse))
		default:
			s.p.tryLater(part.q, err)
		}
	}
}
