package task

import (
	"context"
	"errors"
	"slices"
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
	InstanceID string // empty: a dynamic member
	Generation int32
}

// Lane writes the sealed epochs of its tasks and commits them, all that wait
// together. One goroutine owns it; it ends with Close. See the package comment
// for what becomes of an epoch in it.
type Lane struct {
	env LaneEnv
	box *work.Mailbox[laneMessage]

	began time.Time // ticks count from here

	ctx    context.Context // of commits; ends with Close
	cancel context.CancelFunc
	done   *work.Mailbox[struct{}] // closed when the goroutine has ended

	// Owned by the goroutine.
	waiting []*epoch // ready to be written
	commit  []*epoch // without transactions: written, not committed
	retry   kafka.Timer
	retryAt time.Time // when retry fires
	txn     txnState

	mu sync.Mutex
	id Identity // guarded by mu
}

// LaneEnv is what a lane works with.
type LaneEnv struct {
	Clock    kafka.Clock
	Work     work.Counter
	Log      *zap.Logger
	Producer kafka.Producer // of changelogs, without transactions

	// Transactor, if not nil, writes everything. It is initialised, and the
	// lane's until Close.
	Transactor kafka.Transactor
	Group      string        // with transactions
	ProcessID  string        // whose marks are this lane's
	Timeout    time.Duration // of transactions
}

type laneMessage struct {
	kind  laneKind
	epoch *epoch
	err   error
}

type laneKind int8

const (
	laneReady   laneKind = iota // sealed, and acked what left before
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
	l := &Lane{env: env, box: work.NewMailbox[laneMessage](env.Work), began: env.Clock.Now(), ctx: ctx, cancel: cancel, done: work.NewMailbox[struct{}](env.Work)}
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

// untilTick returns the time until the next tick of an interval. The tasks of
// a lane seal at ticks, so that their epochs go into one transaction and
// none waits for that of another; the ticks of different processes differ.
func (l *Lane) untilTick(interval time.Duration) time.Duration {
	return interval - l.env.Clock.Now().Sub(l.began)%interval
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

// ready is called from any goroutine when an epoch is sealed and what left
// before is acked.
func (l *Lane) ready(e *epoch) { l.box.Put(laneMessage{kind: laneReady, epoch: e}) }

func (l *Lane) loop() {
	defer l.done.Close()
	for {
		messages, ok := l.box.Take()
		if !ok {
			l.forsakeClaims()
			return
		}
		l.handle(messages)
		if l.env.Transactor != nil {
			l.transact()
		} else {
			l.writeAll()
			l.commitAll()
		}
	}
}

func (l *Lane) handle(messages []laneMessage) {
	for i := range messages {
		m := &messages[i]
		switch m.kind {
		case laneReady:
			l.waiting = append(l.waiting, m.epoch)
		case laneWritten:
			if m.err != nil {
				l.finish(m.epoch, m.err)
				continue
			}
			l.commit = append(l.commit, m.epoch)
		case laneAgain, laneMember:
			if l.retry != nil {
				l.retry.Stop()
				l.retry = nil
			}
		}
	}
}

// live lets the epochs of dropped tasks go and returns the others.
func (l *Lane) live(epochs []*epoch) []*epoch {
	return slices.DeleteFunc(epochs, func(e *epoch) bool {
		if !e.dropped() {
			return false
		}
		l.finish(e, errDropped)
		return true
	})
}

// finish tells the task what became of its epoch.
func (l *Lane) finish(e *epoch, err error) {
	if errors.Is(err, errCommitted) {
		err = nil
	}
	if e.claim != nil {
		e.claim.answer.Put(err)
		return
	}
	e.task.box.Put(message{kind: msgCommitted, epoch: e, err: err})
}

// later has the lane look again in a while, or before.
func (l *Lane) later(d time.Duration) {
	at := l.env.Clock.Now().Add(d)
	if l.retry != nil {
		if !at.Before(l.retryAt) {
			return
		}
		l.retry.Stop()
	}
	l.retryAt = at
	l.retry = l.env.Clock.AfterFunc(d, func() { l.box.Put(laneMessage{kind: laneAgain}) })
}

var (
	// errDropped says that an epoch was let go because its task was dropped.
	errDropped = errors.New("epoch dropped: the task is no longer this member's")
	// errTenure says that somebody else had the task since it was taken over.
	errTenure = errors.New("epoch dropped: the task had another owner meanwhile")
)
