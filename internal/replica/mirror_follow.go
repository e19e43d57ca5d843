package replica

import (
	"errors"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
)

// applyChunk is how many records are applied while readers of the partition
// wait.
const applyChunk = 256

// follow begins to read p from its position.
func (r *mirrorRun) follow(p *mirrorPart) {
	p.term++
	p.following = true
	f, term := p.rep.Follow(), p.term
	f.Deliver = func(b *kafka.Batch) {
		if !r.m.box.Put(func() { r.delivered(p, term, b) }) {
			b.Release()
		}
	}
	r.fetcher.Follow(f)
}

func (r *mirrorRun) unfollow(p *mirrorPart) {
	if p.following {
		r.fetcher.Unfollow(kafka.TopicPartition{Topic: r.m.cfg.Topic, Partition: p.id})
	}
	r.dropQueue(p)
}

// dropQueue forgets what was delivered and what is still on its way.
func (r *mirrorRun) dropQueue(p *mirrorPart) {
	p.following = false
	p.term++
	for _, b := range p.queue {
		b.Release()
	}
	p.queue = nil
}

func (r *mirrorRun) delivered(p *mirrorPart, term uint64, b *kafka.Batch) {
	if term != p.term || r.stopping {
		b.Release()
		return
	}
	p.queue = append(p.queue, b)
}

// applySome applies one batch of each partition that can take one. It reports
// whether there may be more to do at once.
func (r *mirrorRun) applySome() bool {
	more := false
	for _, p := range r.parts {
		if len(p.queue) == 0 || r.stopping {
			continue
		}
		p.mu.Lock()
		full := p.rep.t.Full()
		p.mu.Unlock()
		if full {
			r.flushIfDue(p) // its end wakes us
			continue
		}
		b := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		r.apply(p, b)
		b.Release()
		r.flushIfDue(p)
		more = more || len(p.queue) > 0
	}
	return more
}

func (r *mirrorRun) apply(p *mirrorPart, b *kafka.Batch) {
	p.mu.Lock()
	restoring := p.rep.state == Restoring
	again, err := p.rep.admit(b)
	if again || err != nil {
		p.usable = p.usable && !again
		r.note(p)
		p.mu.Unlock()
		r.interrupted(p, again, err)
		return
	}
	for recs := b.Records; len(recs) > 0; {
		chunk := recs[:min(applyChunk, len(recs))]
		recs = recs[len(chunk):]
		p.rep.applyRecords(chunk)
		if r.m.cfg.OnRow != nil || len(recs) > 0 {
			p.mu.Unlock()
			r.tell(chunk, restoring)
			p.mu.Lock()
		}
	}
	p.rep.settle(b)
	if p.rep.state == Live && !p.usable {
		p.usable = true
		r.note(p)
		p.rep.t.Advance(p.rep.Checkpoint())
	}
	p.mu.Unlock()
}

// tell shows records to OnRow.
func (r *mirrorRun) tell(recs []kafka.Record, restoring bool) {
	if r.m.cfg.OnRow == nil {
		return
	}
	for i := range recs {
		if recs[i].Key != nil {
			r.m.cfg.OnRow(&recs[i], restoring)
		}
	}
}

// interrupted goes on after a partition could not simply be read on.
func (r *mirrorRun) interrupted(p *mirrorPart, again bool, err error) {
	switch {
	case again && err == nil:
		r.dropQueue(p)
		r.follow(p)
	case errors.Is(err, kafka.ErrUnknownTopic), errors.Is(err, kafka.ErrTopicChanged):
		r.dropQueue(p)
		r.connected = false
		r.connect(r.pause)
	default:
		var placed *kafka.Error
		if !errors.As(err, &placed) {
			err = &kafka.Error{
				TopicPartition: kafka.TopicPartition{Topic: r.m.cfg.Topic, Partition: p.id},
				Offset:         p.rep.Position(), Err: err,
			}
		}
		r.fail(err)
	}
}

// accept sees each record that would become a row. p.mu is held.
func (r *mirrorRun) accept(p *mirrorPart, rec *kafka.Record) bool {
	n := int32(len(r.parts))
	if n > 1 && !r.m.cfg.Anywhere && !r.m.misplaced.Load() {
		if want := r.m.cfg.Client.Partitioner().Partition(rec.Key, n); want != p.id {
			r.m.misplaced.Store(true)
			r.note(p)
			r.m.log.Warn("table has keys in other partitions than where this client places them: reads look everywhere, which is slower; see kafka.WithPartitioner",
				zap.String("key", kafka.QuoteKey(rec.Key)), zap.Int32("found in", p.id), zap.Int32("expected in", want),
				zap.Stringer("partitioner", r.m.cfg.Client.Partitioner()))
		}
	}
	return r.m.cfg.Accept == nil || r.m.cfg.Accept(rec)
}

// flushIfDue starts a flush in a goroutine of its own.
func (r *mirrorRun) flushIfDue(p *mirrorPart) {
	if p.flushing || r.stopping || r.flushes >= maxFlushes {
		return
	}
	p.mu.Lock()
	var f *Flush
	if p.rep.t.FlushDue(r.m.clock.Now()) {
		f = p.rep.t.BeginFlush()
	}
	p.mu.Unlock()
	if f == nil {
		return
	}
	p.flushing = true
	r.flushes++
	r.spawn(func() func() {
		err := f.Run()
		return func() {
			p.flushing = false
			r.flushes--
			p.mu.Lock()
			p.rep.t.EndFlush(f, err)
			p.mu.Unlock()
			if err != nil {
				r.fail(err)
				return
			}
			for _, other := range r.parts { // some may have waited for their turn
				r.flushIfDue(other)
			}
		}
	})
}
