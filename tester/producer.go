package tester

import (
	"slices"

	"github.com/rekastream/reka/kafka"
)

// producer is a kafka.Producer. Records are written, and Done is called,
// from within Produce, unless the process is paused or a fault delays them:
// then they queue.
type producer struct {
	inc *incarnation
	cfg kafka.ProducerConfig

	// Guarded by world.mu.
	closed bool
	queues map[kafka.TopicPartition]*queue
}

// queue is what waits for one partition, in order.
type queue struct {
	waiting bool // a delay of the first one runs
	ready   bool // its delay is over
	items   []kafka.Outgoing
}

// Produce implements kafka.Producer.
func (p *producer) Produce(o kafka.Outgoing) {
	if len(o.Records) == 0 {
		return
	}
	w := p.inc.w
	w.mu.Lock()
	if p.closed || p.inc.dead || p.inc.closed {
		w.mu.Unlock()
		failAll(o, kafka.ErrClosed)
		return
	}
	if q := p.queues[o.TopicPartition]; q != nil || p.inc.paused {
		if q == nil {
			q = &queue{}
			p.queues[o.TopicPartition] = q
		}
		q.items = append(q.items, o)
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	p.send(o)
}

// send asks the faults and writes.
func (p *producer) send(o kafka.Outgoing) {
	inc := p.inc
	a := inc.w.decide(Call{Op: OpProduce, Instance: inc.name, Topic: o.Topic, Partition: o.Partition})
	switch a.kind {
	case failBefore:
		failAll(o, a.err)
	case failAfter:
		p.write(o, len(o.Records))
		failAll(o, a.err)
	case crashBefore:
		inc.kill()
		failAll(o, kafka.ErrClosed)
	case crashWithin, crashAfter:
		n := len(o.Records)
		if a.kind == crashWithin {
			n /= 2
		}
		p.write(o, n)
		inc.kill()
		failAll(o, kafka.ErrClosed)
	case delayed:
		p.delay(o, a)
	default:
		for _, r := range p.write(o, len(o.Records)) {
			o.Done(r)
		}
	}
}

// delay puts o at the head of its partition's queue until its time comes.
func (p *producer) delay(o kafka.Outgoing, a Action) {
	w := p.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	q := p.queues[o.TopicPartition]
	if q == nil {
		q = &queue{}
		p.queues[o.TopicPartition] = q
	}
	q.items = slices.Insert(q.items, 0, o)
	q.waiting = true
	d, late := a.delay, p.cfg.DeliveryTimeout > 0 && a.delay > p.cfg.DeliveryTimeout
	if late {
		d = p.cfg.DeliveryTimeout
	}
	w.arm(p.inc, d, false, func() {
		w.mu.Lock()
		if len(q.items) == 0 { // failed meanwhile
			w.mu.Unlock()
			return
		}
		q.waiting, q.ready = false, true
		if late {
			q.items = q.items[1:]
			q.ready = false
		}
		w.mu.Unlock()
		if late {
			failAll(o, kafka.ErrDeliveryTimeout)
		}
		p.drain(o.TopicPartition)
	})
}

// drain sends what waits for a partition, up to the next delay.
func (p *producer) drain(tp kafka.TopicPartition) {
	w := p.inc.w
	for {
		w.mu.Lock()
		q := p.queues[tp]
		if q == nil || q.waiting || p.inc.paused {
			w.mu.Unlock()
			return
		}
		if len(q.items) == 0 {
			delete(p.queues, tp)
			w.mu.Unlock()
			return
		}
		o, ready := q.items[0], q.ready
		q.items, q.ready = q.items[1:], false
		w.mu.Unlock()
		if !ready {
			p.send(o)
			continue
		}
		for _, r := range p.write(o, len(o.Records)) {
			o.Done(r)
		}
	}
}

// resume sends what was queued while the process was paused.
func (p *producer) resume() {
	w := p.inc.w
	w.mu.Lock()
	tps := make([]kafka.TopicPartition, 0, len(p.queues))
	for tp := range p.queues {
		tps = append(tps, tp)
	}
	w.mu.Unlock()
	slices.SortFunc(tps, compare)
	for _, tp := range tps {
		p.drain(tp)
	}
}

// write appends the first n records of o and returns their runs.
func (p *producer) write(o kafka.Outgoing, n int) []kafka.Run {
	w := p.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	t, l := w.log(o.TopicPartition)
	if l == nil {
		return []kafka.Run{{To: n, Base: -1, Err: &kafka.Error{TopicPartition: o.TopicPartition, Offset: -1, Err: kafka.ErrUnknownTopic}}}
	}
	return w.write(t, l, produced{o.TopicPartition, o.Records[:n], p.cfg.BatchBytes, nil})
}

// produced are records on their way into a log.
type produced struct {
	kafka.TopicPartition
	records    []kafka.Record
	batchBytes int
	in         *coordination // of the transaction; nil: none
}

// write appends records in batches. A record that the topic does not take
// fails alone. mu is held.
func (w *world) write(t *topic, l *partitionLog, p produced) []kafka.Run {
	var runs []kafka.Run
	for from := 0; from < len(p.records); {
		if err := t.check(&p.records[from]); err != nil {
			err = &kafka.Error{TopicPartition: p.TopicPartition, Offset: -1, Key: p.records[from].Key, Err: err}
			runs = append(runs, kafka.Run{From: from, To: from + 1, Base: -1, Err: err})
			from++
			continue
		}
		to, size := from, 0
		for to < len(p.records) && (to == from || size+p.records[to].Size() <= p.batchBytes) && t.check(&p.records[to]) == nil {
			size += p.records[to].Size()
			to++
		}
		var s *span
		if p.in != nil {
			s = p.in.span(l)
		}
		runs = append(runs, kafka.Run{From: from, To: to, Base: w.appendTo(s, t, l, p.records[from:to])})
		from = to
	}
	return runs
}

// check is what a broker checks of a record.
func (t *topic) check(r *kafka.Record) error {
	if r.Size()+batchOverhead > t.maxMessage {
		return kafka.ErrTooLarge
	}
	if t.compacted && r.Key == nil {
		return kafka.ErrInvalidRecord
	}
	return nil
}

// Close implements kafka.Producer.
func (p *producer) Close() error {
	w := p.inc.w
	w.mu.Lock()
	p.closed = true
	if i := slices.Index(p.inc.producers, p); i >= 0 {
		p.inc.producers = slices.Delete(slices.Clone(p.inc.producers), i, i+1)
	}
	w.mu.Unlock()
	p.fail(kafka.ErrClosed)
	return nil
}

// fail fails all that is queued.
func (p *producer) fail(err error) {
	w := p.inc.w
	w.mu.Lock()
	var all []kafka.Outgoing
	for _, q := range p.queues {
		all = append(all, q.items...)
		q.items = nil
	}
	clear(p.queues)
	w.mu.Unlock()
	slices.SortStableFunc(all, func(a, b kafka.Outgoing) int { return compare(a.TopicPartition, b.TopicPartition) })
	for _, o := range all {
		failAll(o, err)
	}
}

func failAll(o kafka.Outgoing, err error) {
	o.Done(kafka.Run{To: len(o.Records), Base: -1, Err: err})
}
