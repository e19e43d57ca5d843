package tester

import (
	"slices"

	"github.com/rekastream/reka/kafka"
)

// span is what one transaction wrote to one partition, guarded by world.mu.
// It is open until its marker is written.
type span struct {
	first   int64
	marker  int64 // offset of its marker, -1: open
	aborted bool
	by      *coordination
	epoch   int32 // of the producer
}

// aborted reports whether the entry's transaction was aborted.
func (e *entry) aborted() bool { return e.span != nil && e.span.aborted }

// stable is the last stable offset. mu is held.
func (l *partitionLog) stable() int64 {
	stable := l.end
	for _, s := range l.spans {
		stable = min(stable, s.first)
	}
	return max(stable, l.start)
}

// marker is a control record that is to be written: in one partition, or in
// the offsets of one group.
type marker struct {
	c      *coordination
	commit bool
	kafka.TopicPartition
	group string

	waiting bool // a delay runs
	decided bool // its delay is over
}

// nextMarker returns the next marker that may be written. mu is held.
func (w *world) nextMarker() *marker {
	for _, m := range w.markers {
		if !m.waiting {
			return m
		}
	}
	return nil
}

// writeMarker asks the faults and writes. Only the pump calls it.
func (w *world) writeMarker(m *marker) {
	a := Proceed
	if !m.decided {
		a = w.decide(Call{Op: OpMarker, Topic: m.Topic, Partition: m.Partition, Group: m.group,
			Transaction: m.c.id, Commit: m.commit})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.kind == delayed {
		m.waiting, m.decided = true, true
		w.arm(nil, a.delay, false, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			m.waiting = false
			w.changed()
		})
		return
	}
	w.markers = slices.DeleteFunc(w.markers, func(x *marker) bool { return x == m })
	if m.group != "" {
		w.group(m.group).endTransaction(m.c, m.commit)
	} else if _, l := w.log(m.TopicPartition); l != nil {
		w.endSpan(m.c, l, m.commit)
	}
	m.c.marked(m.commit)
}

// endSpan writes a transaction's control record to a partition. It tells the
// leader the producer's epoch, in which numbers begin at 0. mu is held.
func (w *world) endSpan(c *coordination, l *partitionLog, commit bool) {
	if s := c.spans[l]; s != nil {
		s.aborted, s.marker = !commit, l.end
		l.spans = slices.DeleteFunc(l.spans, func(x *span) bool { return x == s })
	}
	if s, known := l.sequences[c]; !known || s.epoch != c.epoch {
		l.note(c, sequence{epoch: c.epoch})
	}
	w.appendControl(l)
}

// sequence is what a partition's leader knows of a transactional producer.
type sequence struct {
	epoch int32
	next  int64 // number of its next request
}

// receive checks the number of a produce request. It reports whether the
// request was here before. mu is held.
func (l *partitionLog) receive(c *coordination, epoch int32, number int64) (again bool, err error) {
	s, known := l.sequences[c]
	if known && s.epoch != epoch {
		s = sequence{} // numbers begin again
	} else if !known {
		s.next = number // the leader remembers nothing
	}
	switch {
	case number < s.next:
		return true, nil
	case number > s.next:
		return false, errSequence
	}
	l.note(c, sequence{epoch, number + 1})
	return false, nil
}

func (l *partitionLog) note(c *coordination, s sequence) {
	if l.sequences == nil {
		l.sequences = map[*coordination]sequence{}
	}
	l.sequences[c] = s
}

// span returns that of the ongoing transaction in a partition, which begins
// here if there is none.
func (c *coordination) span(l *partitionLog) *span {
	s := c.spans[l]
	if s == nil || !slices.Contains(l.spans, s) { // or it was lost with the end of the log
		s = &span{first: l.end, marker: -1, by: c, epoch: c.epoch}
		c.spans[l] = s
		l.spans = append(l.spans, s)
	}
	return s
}
