package tester

import (
	"context"
	"slices"

	"github.com/rekastream/reka/kafka"
)

// epochStart is where in a log a leader epoch begins. A log has those that
// can be told from what is left of it, oldest first; the last one is the
// leader's, which begins at the end of the log if it took nothing in yet.
type epochStart struct {
	epoch int32
	start int64
}

// epoch is the leader's. mu is held.
func (l *partitionLog) epoch() int32 { return l.epochs[len(l.epochs)-1].epoch }

// dropEpochs forgets the epochs of what was deleted at the beginning. mu is
// held.
func (l *partitionLog) dropEpochs(start int64) {
	for len(l.epochs) > 1 && l.epochs[1].start <= start {
		l.epochs = l.epochs[1:]
	}
	l.epochs[0].start = max(l.epochs[0].start, start)
}

// epochEnd is an OffsetForLeaderEpoch request. mu is held.
func (l *partitionLog) epochEnd(asked int32) (epoch int32, end int64) {
	switch {
	case asked == kafka.NewestEpoch:
		return l.epoch(), l.end
	case asked > l.epoch():
		return -1, -1
	}
	epoch = asked // of one older than all
	for _, e := range l.epochs {
		if e.epoch > asked {
			return epoch, e.start
		}
		epoch = e.epoch
	}
	return epoch, l.end
}

// EpochEnd implements kafka.Admin.
func (a admin) EpochEnd(ctx context.Context, tp kafka.TopicPartition, leaderEpoch int32) (epoch int32, end int64, err error) {
	epoch, end = -1, -1
	err = a.inc.call(ctx, Call{Op: OpEpochEnd, Topic: tp.Topic, Partition: tp.Partition}, func(half bool) error {
		w := a.inc.w
		w.mu.Lock()
		defer w.mu.Unlock()
		_, l := w.log(tp)
		switch {
		case l == nil:
			return &kafka.Error{TopicPartition: tp, Offset: -1, Err: kafka.ErrUnknownTopic}
		case !half:
			epoch, end = l.epochEnd(leaderEpoch)
		}
		return nil
	})
	return epoch, end, err
}

// Truncate is an unclean election: a replica that has nothing from an offset
// on becomes the leader of the partition, in a new leader epoch. What was
// there is lost, with what the leader knew of producers and with the ends of
// transactions, which are open again then and stay open. At the end of the
// log it is an ordinary election, in which nothing is lost. The records, if
// any, are written to the new leader before anybody can look.
func (t *Tester) Truncate(topic string, partition int32, offset int64, records ...kafka.Record) {
	t.tb.Helper()
	t.enter()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	tp := kafka.TopicPartition{Topic: topic, Partition: partition}
	tt, l := t.w.log(tp)
	switch {
	case l == nil:
		t.tb.Fatalf("tester: truncate %s: %v", tp, kafka.ErrUnknownTopic)
	case offset < l.start || offset > l.end:
		t.tb.Fatalf("tester: truncate %s to %d: the log holds [%d, %d)", tp, offset, l.start, l.end)
	}
	l.truncate(offset)
	t.w.append(tt, l, records)
}

// truncate is called with mu held.
func (l *partitionLog) truncate(offset int64) {
	if offset < l.end {
		l.cut(offset)
	}
	next := l.epoch() + 1
	l.epochs = slices.DeleteFunc(l.epochs, func(e epochStart) bool { return e.start >= offset })
	l.epochs = append(l.epochs, epochStart{next, offset})
}

// cut removes the end of the log. mu is held.
func (l *partitionLog) cut(offset int64) {
	l.entries = slices.Clone(l.entries[:l.from(offset)])
	l.end = offset
	l.sequences = nil
	l.spans = slices.DeleteFunc(l.spans, func(s *span) bool { return s.first >= offset })
	for i := range l.entries {
		if s := l.entries[i].span; s != nil && s.marker >= offset {
			s.marker, s.aborted = -1, false
			l.spans = append(l.spans, s)
		}
	}
}
