package task

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rekastream/reka/kafka"
)

// Without transactions: the changelog rows of an epoch that is ready are sent
// (writing); when they are acked its offsets are committed together with those
// of the others. Before each of these steps an epoch of a dropped task is let
// go.

// writeAll sends the changelog rows of the epochs that wait.
func (l *Lane) writeAll() {
	ready := l.waiting
	l.waiting = nil
	for i, e := range ready {
		switch {
		case e.dropped():
			l.finish(e, errDropped)
		case l.leaseOver():
			l.waiting = append(l.waiting, ready[i:]...)
			l.later(commitRetry)
			return
		default:
			l.write(e)
		}
	}
}

// write sends an epoch's changelog rows.
func (l *Lane) write(e *epoch) {
	rows := e.changelog()
	if len(rows) == 0 {
		l.commit = append(l.commit, e)
		return
	}
	w := &changelogWrite{lane: l, epoch: e}
	for i := range rows {
		w.left += len(rows[i].records)
	}
	for i := range rows {
		l.env.Producer.Produce(kafka.Outgoing{TopicPartition: rows[i].to, Records: rows[i].records, Done: w.done(&rows[i])})
	}
}

// changelogWrite counts the answers of one epoch's changelog records. The
// producer's goroutines report to it.
type changelogWrite struct {
	lane  *Lane
	epoch *epoch

	mu   sync.Mutex
	left int   // records without an answer
	err  error // the first refusal
}

func (w *changelogWrite) done(rows *changelogRows) func(kafka.Run) {
	return func(run kafka.Run) {
		w.mu.Lock()
		if run.Err != nil && w.err == nil {
			w.err = rows.refused(run)
		}
		if run.Err == nil {
			rows.reportGap(run)
			rows.report(run)
		}
		w.left -= run.To - run.From
		last, err := w.left == 0, w.err
		w.mu.Unlock()
		if last {
			w.lane.box.Put(laneMessage{kind: laneWritten, epoch: w.epoch, err: err})
		}
	}
}

// commitAll commits what is written, in one request.
func (l *Lane) commitAll() {
	if len(l.commit) == 0 || l.retry != nil {
		return
	}
	id := l.Identity()
	l.commit = l.live(l.commit)
	var offsets []kafka.CommittedOffset
	for _, e := range l.commit {
		offsets = append(offsets, e.positions...)
	}
	if len(offsets) == 0 {
		for _, e := range l.commit {
			l.finish(e, nil)
		}
		l.commit = l.commit[:0]
		return
	}
	if id.Member == nil {
		return // no generation to commit in: the next Adopt comes back here
	}
	err := id.Member.Commit(l.ctx, id.MemberID, id.Generation, offsets)
	switch {
	case err == nil:
		l.settle(offsets)
	case l.ctx.Err() != nil:
	case betweenGenerations(err):
		// The next assignment says which tasks are still ours; dropped ones
		// leave above.
		l.later(commitRetry)
	default:
		for _, e := range l.commit {
			l.finish(e, fmt.Errorf("commit offsets: %w", err))
		}
		l.commit = l.commit[:0]
	}
}

// betweenGenerations reports whether the group refuses only what is not in
// the name of its present generation. A fenced instance is a name that this
// member had before it joined again; if another process has it, the member is
// told, and ends.
func betweenGenerations(err error) bool {
	return errors.Is(err, kafka.ErrRebalanceInProgress) || errors.Is(err, kafka.ErrIllegalGeneration) || errors.Is(err, kafka.ErrUnknownMember) ||
		errors.Is(err, kafka.ErrFencedInstance)
}

// settle tells the tasks whose offsets were all accepted, and keeps the
// others for another try.
func (l *Lane) settle(offsets []kafka.CommittedOffset) {
	keep := l.commit[:0]
	at := 0
	for _, e := range l.commit {
		again, refused := answers(offsets[at : at+len(e.positions)])
		at += len(e.positions)
		switch {
		case refused != nil:
			l.finish(e, refused)
		case again != nil:
			keep = append(keep, e)
		default:
			l.finish(e, nil)
		}
	}
	clear(l.commit[len(keep):])
	if l.commit = keep; len(keep) > 0 {
		l.later(commitRetry)
	}
}

// answers reads the answers about one epoch's offsets and clears them: what
// may pass, and what will not.
func answers(offsets []kafka.CommittedOffset) (again, refused error) {
	for i := range offsets {
		o := &offsets[i]
		switch {
		case o.Err == nil:
		case errors.Is(o.Err, kafka.ErrUnknownTopic) || kafka.Permanent(o.Err):
			refused = &kafka.Error{TopicPartition: o.TopicPartition, Offset: o.Offset, Err: fmt.Errorf("commit offset: %w", o.Err)}
		default:
			again = o.Err
		}
		o.Err = nil
	}
	return again, refused
}
