package tester

import (
	"cmp"
	"context"
	"slices"

	"github.com/rekastream/reka/kafka"
)

// Writers implements kafka.Admin.
func (a admin) Writers(ctx context.Context, tps ...kafka.TopicPartition) (map[kafka.TopicPartition][]kafka.Writer, error) {
	out := map[kafka.TopicPartition][]kafka.Writer{}
	if len(tps) == 0 {
		return out, nil
	}
	c := Call{Op: OpWriters, Topic: tps[0].Topic, Partition: tps[0].Partition}
	err := a.inc.call(ctx, c, func(bool) error {
		w := a.inc.w
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, tp := range tps {
			_, l := w.log(tp)
			if l == nil {
				return &kafka.Error{TopicPartition: tp, Offset: -1, Err: kafka.ErrUnknownTopic}
			}
			if len(l.spans) > 0 {
				out[tp] = l.writers()
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// writers are those of the open transactions. mu is held.
func (l *partitionLog) writers() []kafka.Writer {
	var ws []kafka.Writer
	for _, s := range l.spans {
		ws = append(ws, kafka.Writer{TransactionalID: s.by.id, ProducerID: s.by.number, ProducerEpoch: s.epoch, Start: s.first})
	}
	slices.SortFunc(ws, func(x, y kafka.Writer) int { return cmp.Compare(x.Start, y.Start) })
	return ws
}

// GroupWriters implements kafka.Admin.
func (a admin) GroupWriters(ctx context.Context, group string) ([]kafka.Writer, error) {
	var ws []kafka.Writer
	err := a.inc.call(ctx, Call{Op: OpWriters, Partition: -1, Group: group}, func(bool) error {
		w := a.inc.w
		w.mu.Lock()
		defer w.mu.Unlock()
		if g := w.groups[group]; g != nil {
			ws = g.writers()
		}
		return nil
	})
	return ws, err
}

// writers are those who have offsets pending, by the order in which they
// came. mu is held.
func (g *group) writers() []kafka.Writer {
	var ws []kafka.Writer
	for c, pending := range g.undecided {
		if len(pending) == 0 {
			continue
		}
		w := kafka.Writer{TransactionalID: c.id, ProducerID: c.number, Start: -1}
		for _, o := range pending {
			if w.Start < 0 || o.seq < w.Start {
				w.Start = o.seq
			}
			w.ProducerEpoch = o.epoch
		}
		ws = append(ws, w)
	}
	slices.SortFunc(ws, func(x, y kafka.Writer) int { return cmp.Compare(x.Start, y.Start) })
	return ws
}
