package task

import (
	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
)

// gapRead reads what somebody else wrote into a changelog of this task: a
// former owner that was paused and did not know that it had lost the
// partition. The values of the rows that it wrote are written again, so that
// the last word on each key is this task's.
type gapRead struct {
	kafka.TopicPartition
	store *store
	to    int64
}

// repair begins to read the gaps that an epoch found.
func (t *Task) repair(e *epoch) {
	for _, g := range e.strangers {
		s := t.stores[g.store]
		t.env.Log.Warn("another process wrote into this task's changelog; its rows are written again",
			zap.String("changelog", s.changelog.String()), zap.Int64("from", g.from), zap.Int64("to", g.to))
		r := &gapRead{TopicPartition: s.changelog, store: s, to: g.to}
		if t.state != stateRunning {
			continue
		}
		t.gaps = append(t.gaps, r)
		t.env.Restorer.Follow(kafka.Follow{TopicPartition: r.TopicPartition, TopicID: s.id, Position: g.from,
			Deliver: func(b *kafka.Batch) {
				if !t.box.Put(message{kind: msgGap, batch: b}) {
					b.Release()
				}
			}})
	}
}

func (t *Task) gapBatch(b *kafka.Batch) {
	defer b.Release()
	keep := t.gaps[:0]
	for _, g := range t.gaps {
		if g.TopicPartition != b.TopicPartition {
			keep = append(keep, g)
			continue
		}
		if b.Err != nil {
			t.fail(&kafka.Error{TopicPartition: g.TopicPartition, Offset: -1, Err: b.Err})
			continue
		}
		for i := range b.Records {
			if b.Records[i].Offset < g.to {
				t.rewrite(g.store, b.Records[i].Key)
			}
		}
		if b.Position < g.to {
			keep = append(keep, g)
		} else {
			t.env.Restorer.Unfollow(g.TopicPartition)
		}
	}
	t.gaps = keep
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
	t.active.moved = true
}
