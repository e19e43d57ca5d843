package tester

import (
	"bytes"
	"errors"
	"slices"

	"github.com/rekastream/reka/kafka"
)

// txnQueue is what waits for one partition, in order, guarded by world.mu.
// At most one request for it is on its way.
type txnQueue struct {
	tp    kafka.TopicPartition
	items []kafka.Outgoing // the first one is on its way if busy
	busy  bool
	held  bool // until the transaction before has ended: busy, but nothing is on its way
	added bool // the partition is part of the transaction
	quit  bool // what is on its way is the last
	over  bool // given up: answers do not matter any more
}

// Produce implements kafka.Transactor.
func (t *transactor) Produce(o kafka.Outgoing) {
	if len(o.Records) == 0 {
		return
	}
	w := t.inc.w
	w.mu.Lock()
	if err := t.refused(); err != nil {
		w.mu.Unlock()
		failAll(o, t.wrap("produce in", err))
		return
	}
	i := slices.IndexFunc(t.queues, func(q *txnQueue) bool { return q.tp == o.TopicPartition })
	if i < 0 {
		i = len(t.queues)
		t.queues = append(t.queues, &txnQueue{tp: o.TopicPartition})
	}
	q := t.queues[i]
	q.items = append(q.items, o)
	t.left++
	w.mu.Unlock()
	t.send(q)
}

// drain sends what waits for any partition.
func (t *transactor) drain() {
	w := t.inc.w
	w.mu.Lock()
	queues := slices.Clone(t.queues)
	w.mu.Unlock()
	for _, q := range queues {
		t.send(q)
	}
}

// send makes requests for a queue until it is empty or one of them takes
// time.
func (t *transactor) send(q *txnQueue) {
	w := t.inc.w
	for {
		w.mu.Lock()
		if q.busy || q.over || t.inc.paused || len(q.items) == 0 {
			w.mu.Unlock()
			return
		}
		q.busy = true
		added, o, epoch, number := q.added, q.items[0], t.epoch, t.numbers[q.tp]
		c := w.coordination(t.cfg.ID)
		w.mu.Unlock()
		call := Call{Op: OpAddPartitions, Topic: q.tp.Topic, Partition: q.tp.Partition}
		if !added {
			t.post(q, t.decide(call), func(half bool) error {
				if half {
					return nil
				}
				return c.addPartition(epoch, q.tp)
			}, func(err error) { t.onAdded(q, err) })
			continue
		}
		call.Op = OpProduce
		a := t.decide(call)
		if a.kind == delayed || a.kind == late {
			o.Records = cloneRecords(o.Records) // their owner may have them back before they arrive
		}
		var runs []kafka.Run
		t.post(q, a, func(half bool) (err error) {
			runs, err = t.write(c, o, request{epoch, number, half})
			return err
		}, func(err error) { t.onProduced(q, o, runs, err) })
	}
}

// post makes a request for a queue, which goes on after the answer.
func (t *transactor) post(q *txnQueue, a Action, effect func(half bool) error, answer func(error)) {
	if a.kind != delayed {
		t.now(a, effect, answer)
		return
	}
	w := t.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arm(nil, a.delay, false, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		err := effect(false)
		w.arm(t.inc, 0, false, func() { // when its process is not paused
			answer(err)
			t.send(q)
		})
	})
}

// onAdded takes in the answer to an AddPartitionsToTxn.
func (t *transactor) onAdded(q *txnQueue, err error) {
	w := t.inc.w
	w.mu.Lock()
	if q.over {
		w.mu.Unlock()
		return
	}
	if errors.Is(err, errConcurrent) {
		again := func() { // still busy until then
			w.arm(t.inc, 0, false, func() {
				w.mu.Lock()
				q.busy, q.held = false, false
				w.mu.Unlock()
				t.send(q)
			})
		}
		q.held = true
		if c := w.coordination(t.cfg.ID); c.ended() {
			c.waiting = append(c.waiting, again)
		} else {
			again()
		}
		w.mu.Unlock()
		return
	}
	q.added = err == nil
	quit := q.quit
	w.mu.Unlock()
	t.added(err)
	if err == nil && quit {
		err = kafka.ErrAbortable
	}
	if err != nil {
		err = abortable(err)
		t.fail(err)
		t.pop(q, len(q.items), func(o kafka.Outgoing) { failAll(o, t.wrap("add partitions to", err)) })
		return
	}
	t.pop(q, 0, nil)
}

// onProduced takes in the answer to a Produce.
func (t *transactor) onProduced(q *txnQueue, o kafka.Outgoing, runs []kafka.Run, err error) {
	w := t.inc.w
	w.mu.Lock()
	if q.over {
		w.mu.Unlock()
		return
	}
	if err == nil || errors.Is(err, errUnanswered) {
		t.numbers[q.tp]++
	}
	w.mu.Unlock()
	if err = abortable(err); err != nil {
		runs = []kafka.Run{{To: len(o.Records), Base: -1, Err: t.wrap("produce in", err)}}
	}
	for _, r := range runs {
		t.fail(r.Err)
	}
	t.pop(q, 1, func(o kafka.Outgoing) {
		for _, r := range runs {
			o.Done(r)
		}
	})
}

// pop tells the first n of a queue their fate and lets it go on.
func (t *transactor) pop(q *txnQueue, n int, done func(kafka.Outgoing)) {
	w := t.inc.w
	w.mu.Lock()
	n = min(n, len(q.items)) // it may have been given up just now
	items := q.items[:n]
	q.items, q.busy = q.items[n:], false
	w.mu.Unlock()
	for _, o := range items {
		done(o)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.left -= n; t.left == 0 && t.finisher != nil {
		w.wakeWaiter(t.finisher, nil)
	}
}

// fail notes why the transaction cannot be committed, if err is an error.
// That it is fenced outranks what was noted before.
func (t *transactor) fail(err error) {
	w := t.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && (t.failed == nil || errors.Is(err, kafka.ErrFenced) && !errors.Is(t.failed, kafka.ErrFenced)) {
		t.failed = err
	}
}

// giveUp fails everything that is queued, and with sent also what is on its
// way, which may still arrive.
func (t *transactor) giveUp(err error, sent bool) {
	w := t.inc.w
	w.mu.Lock()
	var all []kafka.Outgoing
	for _, q := range t.queues {
		keep := 0
		if under := q.busy && !q.held && len(q.items) > 0; under && !sent {
			keep = 1
		} else if under {
			t.inDoubt = true
		}
		all = append(all, q.items[keep:]...)
		q.items, q.quit, q.over = slices.Clip(q.items[:keep]), true, keep == 0
	}
	w.mu.Unlock()
	for _, o := range all {
		t.fail(err)
		failAll(o, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.left -= len(all); t.left == 0 && t.finisher != nil {
		w.wakeWaiter(t.finisher, nil)
	}
}

// cloneRecords copies records and their bytes.
func cloneRecords(rs []kafka.Record) []kafka.Record {
	out := slices.Clone(rs)
	for i := range out {
		r := &out[i]
		r.Key, r.Value, r.Headers = bytes.Clone(r.Key), bytes.Clone(r.Value), slices.Clone(r.Headers)
		for j := range r.Headers {
			r.Headers[j].Value = bytes.Clone(r.Headers[j].Value)
		}
	}
	return out
}

// request is what a Produce carries besides its records.
type request struct {
	epoch  int32
	number int64
	half   bool // only the first half of the records arrives
}

// write is a Produce request. mu is held.
func (t *transactor) write(c *coordination, o kafka.Outgoing, r request) ([]kafka.Run, error) {
	w := t.inc.w
	tt, l := w.log(o.TopicPartition)
	if l == nil {
		return nil, &kafka.Error{TopicPartition: o.TopicPartition, Offset: -1, Err: kafka.ErrUnknownTopic}
	}
	if err := c.mayWrite(r.epoch, slices.Contains(c.partitions, o.TopicPartition)); err != nil {
		return nil, err
	}
	again, err := l.receive(c, r.epoch, r.number)
	switch {
	case err != nil:
		return nil, err
	case again:
		return []kafka.Run{{To: len(o.Records), Base: -1}}, nil
	}
	n := len(o.Records)
	if r.half {
		n /= 2
	}
	return w.write(tt, l, produced{o.TopicPartition, o.Records[:n], t.cfg.BatchBytes, c}), nil
}
