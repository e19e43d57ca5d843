package task

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// seal makes an epoch of what was done and hands it to the lane. If one is
// still being written it is done as soon as that one is committed, and if
// records are unfinished as soon as there are none: none is started until
// then.
func (t *Task) seal() {
	if t.writing != nil {
		t.sealDue = true
		return
	}
	if t.unfinished.n > 0 {
		t.sealDue = !t.unfinished.lost
		return
	}
	t.sealDue = false
	if !t.active.moved && !t.active.slid || t.dropped.Load() {
		return
	}
	if !t.mayWrite() { // its outputs cannot leave
		t.sealDue = true
		return
	}
	if t.sendOutputs(true); t.env.HoldOutputs {
		t.holdOutputs(t.active.epoch)
	}
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	e := t.active.epoch
	e.records, e.bytes = t.active.records, t.active.bytes
	e.ends = make([]int64, len(t.stores))
	for i, s := range t.stores {
		e.ends[i] = s.end
		if l := s.table.Seal(); l != nil {
			e.layers = append(e.layers, layer{store: i, layer: l})
		}
	}
	for i, s := range t.joins {
		in := t.inputs[i]
		if in.head() == nil && !in.lagging() {
			s.atEnd = t.env.Clock.Now()
		}
		if in.position != in.committed {
			e.joins = append(e.joins, layer{store: i, layer: s.table.Seal(), position: in.position})
		}
	}
	t.positions(e)
	t.writing = e
	t.active = active{epoch: newEpoch(t, e.number+1)}
	e.acked(1)
}

// positions sets the offsets to commit: those that moved, and always that of
// the partition which carries the mark.
func (t *Task) positions(e *epoch) {
	e.positions = make([]kafka.CommittedOffset, 0, len(t.inputs))
	first := t.env.Graph.Marked()
	for _, in := range t.inputs {
		marked := in.Topic == first
		if in.position == in.committed && !marked {
			continue
		}
		o := kafka.CommittedOffset{TopicPartition: in.TopicPartition, Offset: in.position, LeaderEpoch: -1, Metadata: in.metadata}
		if marked {
			e.mark = len(e.positions)
			m := Mark{Topic: in.id, Writer: t.env.ProcessID, Epoch: e.number, StreamTime: t.streamTime, Fingerprint: t.env.Fingerprint}
			t.stand(&m)
			o.Metadata = m.Encode()
		}
		in.committed = in.position
		e.positions = append(e.positions, o)
	}
}

// committed receives the answer of the lane.
func (t *Task) committed(e *epoch, err error) {
	if e != t.writing {
		return
	}
	t.writing = nil
	if err != nil {
		switch {
		case errors.Is(err, errTenure):
			t.disowned()
			return
		case !errors.Is(err, errDropped):
			t.fail(err)
		}
		if t.failed == nil && !t.dropped.Load() {
			t.fail(errors.New("an output was refused while the task was ending"))
		}
		t.dropped.Store(true) // what follows this epoch must not be committed
		return
	}
	for _, s := range e.outputs {
		s.free()
	}
	e.outputs = nil
	t.settle(e)
	t.count.epochs++
	t.count.lastCommit = t.env.Clock.Now()
	t.purge(e)
	t.repair(e)
	t.endVisits(e.number)
	t.flush(false)
	if t.sealDue {
		t.seal()
	}
}

// disowned gives up: somebody else had the task since it was taken over, so
// nothing that it did since its last commit counts.
func (t *Task) disowned() {
	t.dropped.Store(true)
	t.cancel()
	t.event(Disowned, nil)
}

// settle makes the epoch's rows committed ones.
func (t *Task) settle(e *epoch) {
	at := func(s *store, position int64, atEnd time.Time) storage.Checkpoint {
		return storage.Checkpoint{Position: position, LeaderEpoch: -1, TopicID: s.id, AtEnd: atEnd}
	}
	now := t.env.Clock.Now() // nobody else writes to our own changelogs
	for _, l := range e.layers {
		s := t.stores[l.store]
		s.end = e.ends[l.store]
		s.table.Commit(l.layer, at(s, s.end, now))
	}
	for _, l := range e.joins {
		s := t.joins[l.store]
		s.table.Commit(l.layer, at(s, l.position, s.atEnd))
	}
}

// purge deletes the records of internal topics that are committed now. It is
// asked for and not waited for: what stays is deleted by the next one.
func (t *Task) purge(e *epoch) {
	for _, in := range t.inputs {
		if !in.internal {
			continue
		}
		for _, o := range e.positions {
			if o.TopicPartition == in.TopicPartition && o.Offset >= in.purged+purgeRecords {
				in.purged = o.Offset
				t.env.Purge(in.TopicPartition, o.Offset)
			}
		}
	}
}

// purgeRecords is how many committed records an internal topic may keep.
const purgeRecords = 1000

// flush begins to write committed rows to the store: where it is due, or
// everywhere.
func (t *Task) flush(all bool) {
	now := t.env.Clock.Now()
	waits := false
	each := func(s *store) {
		if s.table == nil {
			return
		}
		if all || s.table.FlushDue(now) {
			t.beginFlush(s)
		}
		waits = waits || s.table.Unflushed() > 0
	}
	for _, s := range t.stores {
		each(s)
	}
	for _, s := range t.joins {
		each(s)
	}
	if waits && t.flushTimer == nil && t.state != stateClosing {
		t.flushTimer = t.env.Clock.AfterFunc(t.env.FlushAge, func() { t.box.Put(message{kind: msgFlush}) })
	}
}

func (t *Task) beginFlush(s *store) {
	f := s.table.BeginFlush()
	if f == nil {
		return
	}
	t.flushes++
	done := &flushed{store: s, flush: f}
	if !t.env.Disk.Do(func() {
		done.err = f.Run()
		t.box.Put(message{kind: msgFlushed, flushed: done})
	}) {
		done.err = context.Canceled
		t.flushEnded(done)
	}
}

func (t *Task) flushEnded(f *flushed) {
	t.flushes--
	f.store.table.EndFlush(f.flush, f.err)
	if f.err != nil {
		f.store.broken = true
		t.fail(&StoreError{Store: f.store.name(), Err: f.err})
		if !errors.Is(f.err, storage.ErrClosed) { // closed under us: who did that knows
			t.env.Log.Error("flush failed", zap.String("store", f.store.name()), zap.Int32("partition", t.partition), zap.Error(f.err))
		}
		return
	}
	if t.state < stateClosing {
		t.flush(false) // what came meanwhile may be enough for the next one
	}
	if t.state == stateRestoring {
		t.resumeRestores()
	}
}
