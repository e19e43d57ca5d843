package task

import (
	"slices"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
)

// gapRead reads what somebody else wrote into a changelog of this task: a
// former owner that was paused and did not know that it had lost the
// partition. The values of the rows that it wrote are written again, so that
// the last word on each key is this task's.
type gapRead struct {
	kafka.TopicPartition
	store    *store
	number   int // which read it is; 0: waits for another one of its changelog
	from, to int64
}

// repair begins to read the gaps that an epoch found.
func (t *Task) repair(e *epoch) {
	for _, g := range e.strangers {
		s := t.stores[g.store]
		t.env.Log.Warn("another process wrote into this task's changelog; its rows are written again",
			zap.String("changelog", s.changelog.String()), zap.Int64("from", g.from), zap.Int64("to", g.to))
		if t.state != stateRunning {
			continue
		}
		r := &gapRead{TopicPartition: s.changelog, store: s, from: g.from, to: g.to}
		if !slices.ContainsFunc(t.gaps, func(o *gapRead) bool { return o.store == s }) {
			t.readGap(r)
		}
		t.gaps = append(t.gaps, r)
	}
}

// readGap follows the changelog over one gap. A changelog's gaps are read one
// after the other.
func (t *Task) readGap(g *gapRead) {
	t.gapReads++
	g.number = t.gapReads
	t.env.Restorer.Follow(kafka.Follow{TopicPartition: g.TopicPartition, TopicID: g.store.id, Position: g.from,
		Deliver: func(b *kafka.Batch) {
			if !t.box.Put(message{kind: msgGap, index: g.number, batch: b}) {
				b.Release()
			}
		}})
}

// gapBatch takes a batch of gap read number.
func (t *Task) gapBatch(number int, b *kafka.Batch) {
	defer b.Release()
	at := slices.IndexFunc(t.gaps, func(g *gapRead) bool { return g.number == number })
	if at < 0 {
		return // of a read that has ended
	}
	g := t.gaps[at]
	if b.Err != nil {
		t.fail(&kafka.Error{TopicPartition: g.TopicPartition, Offset: -1, Err: b.Err})
	}
	for i := range b.Records {
		if b.Records[i].Offset < g.to {
			t.rewrite(g.store, b.Records[i].Key)
		}
	}
	if b.Err == nil && b.Position < g.to {
		return
	}
	t.env.Restorer.Unfollow(g.TopicPartition)
	t.gaps = slices.Delete(t.gaps, at, at+1)
	if next := slices.IndexFunc(t.gaps, func(o *gapRead) bool { return o.store == g.store }); next >= 0 {
		t.readGap(t.gaps[next])
	}
}

// rewrite makes the present value of a key part of the next epoch.
func (t *Task) rewrite(s *store, key []byte) {
	if key == nil {
		return
	}
	value, time, ok, err := s.table.Get(key)
	if err != nil {
		t.fail(&StoreError{Store: s.name(), Err: err})
		return
	}
	if !ok {
		value, time = nil, t.env.Clock.Now().UnixMilli()
	} else {
		value = append([]byte{}, value...)
	}
	s.table.Set(key, value, time)
	t.moved()
}
