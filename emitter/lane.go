package emitter

// lane is one partition. It is guarded by the sink's lock.
type lane struct {
	partition int32
	open      *batch   // takes records; nil if none came
	full      []*batch // wait to be handed over, oldest first
	sent      int      // batches handed over and not resolved
	due       bool     // open has waited long enough
}

// maxSent is how many batches of a partition the producer has at a time: one
// that is in flight, one to go next.
const maxSent = 2

// seal ends the open batch.
func (l *lane) seal() {
	if l.open != nil {
		l.full = append(l.full, l.open)
		l.open = nil
	}
	l.due = false
}

// next takes the batch to hand over now, nil if there is none.
func (l *lane) next() *batch {
	if l.sent >= maxSent {
		return nil
	}
	if len(l.full) == 0 && l.due {
		l.seal()
	}
	if len(l.full) == 0 {
		return nil
	}
	b := l.full[0]
	l.full[0] = nil
	if l.full = l.full[1:]; len(l.full) == 0 {
		l.full = nil
	}
	l.sent++
	b.sent = true
	return b
}

// unsent takes all that was not handed over.
func (l *lane) unsent() []*batch {
	l.seal()
	out := l.full
	l.full = nil
	return out
}
