package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// Identity is in whose name offsets are committed: the last adopted
// assignment.
type Identity struct {
	Member     kafka.Member
	MemberID   string
	Generation int32
}

// Lane writes the sealed epochs of its tasks and commits them: all that wait
// are committed by one request. One goroutine owns it; it ends with Close.
//
// An epoch in the lane: its outputs are acked when it comes (ready); then its
// changelog rows are sent (writing); when they are acked its offsets are
// committed together with those of the others (committing); then the task is
// told. Before each of these steps an epoch of a dropped task is let go.
type Lane struct {
	env LaneEnv
	box *work.Mailbox[laneMessage]

	ctx    context.Context // of commits; ends with Close
	cancel context.CancelFunc
	done   *work.Mailbox[struct{}] // closed when the goroutine has ended

	// Owned by the goroutine.
	commit  []*epoch // written, not committed
	waiting []*epoch // ready, but the lease is over
	retry   kafka.Timer

	mu sync.Mutex
	id Identity // guarded by mu
}

// LaneEnv is what a lane works with.
type LaneEnv struct {
	Clock    kafka.Clock
	Work     work.Counter
	Log      *zap.Logger
	Producer kafka.Producer
}

type laneMessage struct {
	kind  laneKind
	epoch *epoch
	err   error
}

type laneKind int8

const (
	laneReady   laneKind = iota // sealed, outputs acked
	laneWritten                 // changelog acked, or refused with err
	laneAgain                   // time to try what did not go
	laneMember                  // the identity changed
)

// commitRetry is how long a commit waits that the group refused because it
// is between two generations.
const commitRetry = 50 * time.Millisecond

// NewLane starts a lane.
func NewLane(env LaneEnv) *Lane {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Lane{env: env, box: work.NewMailbox[laneMessage](env.Work), ctx: ctx, cancel: cancel, done: work.NewMailbox[struct{}](env.Work)}
	work.Go(env.Work, l.loop) // ends with Close, which waits
	return l
}

// Adopt sets the identity for commits from now on. It may be called from any
// goroutine.
func (l *Lane) Adopt(id Identity) {
	l.mu.Lock()
	l.id = id
	l.mu.Unlock()
	l.box.Put(laneMessage{kind: laneMember})
}

// Identity returns the last adopted one.
func (l *Lane) Identity() Identity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// leaseOver reports that the member may not trust any more that its session
// stands.
func (l *Lane) leaseOver() bool {
	id := l.Identity()
	return id.Member != nil && l.env.Clock.Now().After(id.Member.Lease())
}

// Close ends the lane; epochs that are under way are not committed.
func (l *Lane) Close() {
	l.cancel()
	l.box.Close()
	l.done.Take()
}

// ready is called from any goroutine when an epoch is sealed and its outputs
// are acked.
func (l *Lane) ready(e *epoch) { l.box.Put(laneMessage{kind: laneReady, epoch: e}) }

func (l *Lane) loop() {
	defer l.done.Close()
	for {
		messages, ok := l.box.Take()
		if !ok {
			return
		}
		for i := range messages {
			l.handle(&messages[i])
		}
		l.commitAll()
	}
}

func (l *Lane) handle(m *laneMessage) {
	switch m.kind {
	case laneReady:
		l.write(m.epoch)
	case laneWritten:
		if m.err != nil {
			l.finish(m.epoch, m.err)
			return
		}
		l.commit = append(l.commit, m.epoch)
	case laneAgain, laneMember:
		if l.retry != nil {
			l.retry.Stop()
			l.retry = nil
		}
		again := l.waiting
		l.waiting = nil
		for _, e := range again {
			l.write(e)
		}
	}
}

// write sends an epoch's changelog rows.
func (l *Lane) write(e *epoch) {
	if e.lost.Load() || e.task.dropped.Load() {
		l.finish(e, errDropped)
		return
	}
	if l.leaseOver() {
		l.waiting = append(l.waiting, e)
		l.later()
		return
	}
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
			w.err = &kafka.Error{TopicPartition: rows.to, Offset: -1, Key: rows.records[run.From].Key, Err: run.Err}
		}
		if run.Err == nil {
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
	live := l.commit[:0]
	var offsets []kafka.CommittedOffset
	for _, e := range l.commit {
		if e.lost.Load() || e.task.dropped.Load() {
			l.finish(e, errDropped)
			continue
		}
		live = append(live, e)
		offsets = append(offsets, e.positions...)
	}
	l.commit = live
	if len(offsets) == 0 {
		for _, e := range live {
			l.finish(e, nil)
		}
		l.commit = l.commit[:0]
		return
	}
	id := l.Identity()
	if id.Member == nil {
		return // no generation to commit in: the next Adopt comes back here
	}
	err := id.Member.Commit(l.ctx, id.MemberID, id.Generation, offsets)
	switch {
	case err == nil:
		l.settle(offsets)
	case l.ctx.Err() != nil:
	case errors.Is(err, kafka.ErrRebalanceInProgress), errors.Is(err, kafka.ErrIllegalGeneration), errors.Is(err, kafka.ErrUnknownMember):
		// The next assignment says which tasks are still ours; dropped ones
		// leave above.
		l.later()
	default:
		for _, e := range l.commit {
			l.finish(e, fmt.Errorf("commit offsets: %w", err))
		}
		l.commit = l.commit[:0]
	}
}

// settle tells the tasks whose offsets were all accepted, and keeps the
// others for another try.
func (l *Lane) settle(offsets []kafka.CommittedOffset) {
	keep := l.commit[:0]
	at := 0
	for _, e := range l.commit {
		var again, refused error
		for range e.positions {
			o := &offsets[at]
			at++
			switch {
			case o.Err == nil:
			case errors.Is(o.Err, kafka.ErrUnknownTopic) || kafka.Permanent(o.Err):
				refused = &kafka.Error{TopicPartition: o.TopicPartition, Offset: o.Offset, Err: fmt.Errorf("commit offset: %w", o.Err)}
			default:
				again = o.Err
			}
			o.Err = nil
		}
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
		l.later()
	}
}

// finish tells the task what became of its epoch.
func (l *Lane) finish(e *epoch, err error) {
	e.task.box.Put(message{kind: msgCommitted, epoch: e, err: err})
}

func (l *Lane) later() {
	if l.retry == nil {
		l.retry = l.env.Clock.AfterFunc(commitRetry, func() { l.box.Put(laneMessage{kind: laneAgain}) })
	}
}

// errDropped says that an epoch was let go because its task was dropped.
var errDropped = errors.New("epoch dropped: the task is no longer this member's")
