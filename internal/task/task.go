package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// Task is one partition of a graph. See the package comment.
type Task struct {
	// Fixed after New.
	env       *Env
	partition int32
	start     Start
	ctx       context.Context // of callbacks; ends with the task, or when it is dropped
	cancel    context.CancelFunc
	box       *work.Mailbox[message]
	done      chan struct{} // closed when the goroutine has ended

	dropped atomic.Bool  // nothing may be written any more
	flying  atomic.Int64 // bytes of outputs that the producer has and has not answered
	stalled atomic.Bool  // the task waits for flying to fall
	hurry   atomic.Bool  // a message waits that must not wait for the turn's end

	// Owned by the goroutine.
	state       taskState
	inputs      []*input // joined tables first, then streams in order of declaration
	stores      []*store
	joins       []*store
	restoring   []*restore
	rec         Record
	active      active
	writing     *epoch      // sealed and not yet committed
	sealDue     bool        // seal again as soon as nothing is being written
	timer       kafka.Timer // seals
	lazy        bool        // timer waits longer than for changes
	flushTimer  kafka.Timer
	flushes     int // under way
	streamTime  int64
	unfinished  unfinished
	tries       int // of the record at the head of its input
	retrying    kafka.Timer
	leaseWait   kafka.Timer // runs while the lease is over and something waits for it
	failed      error
	gaps        []*gapRead
	gapReads    int         // counts them
	visits      []*Visit    // being run
	inputsTurn  bool        // between two handfuls of visited keys
	visited     []*Visit    // run, not committed
	written     bool        // closing: everything is written, or dropped
	outboxes    [][]*outbox // by target, by partition
	turns       uint32      // places records without a key
	timed       bool        // there are steps around records
	clocks      []int64     // by index of Env.Holds
	walk        walk
	afterToo    bool  // no record comes between the steps before and those after
	afterTime   int64 // the stream time when the steps after a record were taken last
	undo        undo
	recordTime  int64 // stream time as records say; behind while idle time moves it
	begun       bool  // Env.Begin was run
	leftover    bool  // something lazy was not done
	idle        idle
	wall        wall
	due         []Entry // of takeDue
	dueBytes    []byte
	timedRecord kafka.Record         // what a timed operator stands at
	counters    []int64              // by index of Env.Counters
	next        [prefetchKeys][]byte // keys to prefetch
	noted       int                  // log lines about skipped records

	mu    sync.Mutex
	stats Stats // guarded by mu; published between turns
	count counts
}

// active is what belongs to the epoch that is not sealed yet.
type active struct {
	epoch   *epoch
	bytes   int
	records int
	moved   bool // a record was finished
	slid    bool // positions moved over nothing that had an effect
}

type taskState int8

const (
	stateCreated taskState = iota
	stateRestoring
	stateRunning
	stateClosing
	stateClosed
)

// String returns the state's name.
func (s taskState) String() string {
	return [...]string{"created", "restoring", "running", "closing", "closed"}[s]
}

// message is what reaches a task's goroutine.
type message struct {
	kind     messageKind
	index    int // of input, restore, gap read
	term     int // of a restore
	batch    *kafka.Batch
	epoch    *epoch
	refusals []*refusal
	flushed  *flushed
	visit    *Visit
	deferred *Deferred
	held     *held
	ends     map[kafka.TopicPartition]int64
	err      error
}

type messageKind int8

const (
	msgInput     messageKind = iota // batch of input index
	msgRestore                      // batch of restore index
	msgGap                          // batch of a gap read
	msgSeal                         // the commit interval is over
	msgCommitted                    // epoch is committed, or not: err
	msgRefused                      // outputs of epoch were refused
	msgFlushed                      // a flush has ended
	msgFlush                        // the flush age is over
	msgRetry                        // the backoff is over
	msgLease                        // time to look at the lease again
	msgRoom                         // outputs were answered that the task waited for
	msgVisit                        // run a visitor
	msgDeferred                     // a deferred record is to be finished, or failed
	msgRested                       // the backoff of an unfinished record is over
	msgIdle                         // time to look whether there is no data
	msgEnds                         // ends of the inputs, or err
	msgWall                         // something may be due by the wall clock
	msgClose                        // close; the drop flag says how
)

// New returns a task that does nothing yet.
func New(env *Env, partition int32, start Start) *Task {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Task{
		env: env, partition: partition, start: start, ctx: ctx, cancel: cancel,
		box: work.NewMailbox[message](env.Work), done: make(chan struct{}),
		streamTime: start.Mark.StreamTime,
	}
	t.rec.task = t
	t.active.epoch = newEpoch(t, start.Mark.Epoch+1)
	t.outboxes = newOutboxes(env)
	t.counters = make([]int64, len(env.Counters))
	t.makeInputs()
	t.makeClocks()
	if env.Attach != nil {
		env.Attach(&t.rec)
	}
	return t
}

// Partition returns the task's partition.
func (t *Task) Partition() int32 { return t.partition }

// Run starts the task's goroutine. It ends after Close; Event Closed is the
// last thing that it tells.
func (t *Task) Run() { work.Go(t.env.Work, t.loop) }

// Close ends the task: what is finished is written and committed first, or,
// with drop, forgotten. Any goroutine may call it, again with drop after
// without.
func (t *Task) Close(drop bool) {
	if drop {
		t.dropped.Store(true)
		t.cancel()
	}
	t.urge(msgClose)()
}

// urge returns what sends a message that is handled after the record at hand.
func (t *Task) urge(kind messageKind) func() {
	return func() {
		t.box.Put(message{kind: kind})
		t.hurry.Store(true) // after it: whoever takes it back has seen the message
	}
}

// Cancel ends the context of a callback that is running.
func (t *Task) Cancel() { t.cancel() }

// Done is closed when nothing of the task runs any more.
func (t *Task) Done() <-chan struct{} { return t.done }

func (t *Task) loop() {
	defer t.exit()
	if t.state == stateCreated {
		t.state = stateRestoring
		if err := t.open(); err != nil {
			t.fail(err)
		}
	}
	more := t.state == stateRunning // with nothing to restore it runs at once: timers may be due
	for t.state != stateClosed {
		var messages []message
		t.hurry.Store(false)
		if more {
			messages = t.box.TryTake()
		} else {
			messages, _ = t.box.Take()
		}
		for i := range messages {
			t.handle(&messages[i])
		}
		more = t.process()
		t.endTurn(more)
	}
}

// exit ends the task. A callback may have ended the goroutine before that
// (runtime.Goexit): then another one goes on in its place, and closes what
// there is in order.
func (t *Task) exit() {
	if t.state != stateClosed {
		t.rec.void()
		t.fail(errors.New("a callback has ended its goroutine (runtime.Goexit)"))
		work.Go(t.env.Work, t.loop) // ends as the first one should have
		return
	}
	defer close(t.done)
	t.cancel()
	t.box.Close()
	for _, m := range t.box.TryTake() {
		m.discard()
	}
	t.publish()
	t.event(Closed, nil)
}

// discard gives back what a message holds that nobody will handle.
func (m *message) discard() {
	switch m.kind {
	case msgInput, msgRestore, msgGap:
		m.batch.Release()
	case msgRefused:
		m.epoch.lost.Store(true)
		m.epoch.answered(m.refusals)
	case msgVisit:
		m.visit.finish(ErrVisitAborted)
	default:
	}
}

func (t *Task) handle(m *message) {
	switch m.kind {
	case msgInput:
		t.take(t.inputs[m.index], m.batch)
	case msgRestore:
		t.restoreBatch(t.restoring[m.index], m.term, m.batch)
	case msgGap:
		t.gapBatch(m.index, m.batch)
	case msgSeal:
		t.timer = nil
		t.seal()
	case msgCommitted:
		t.committed(m.epoch, m.err)
	case msgRefused:
		t.outputsRefused(m.epoch, m.refusals)
	case msgFlushed:
		t.flushEnded(m.flushed)
	case msgFlush:
		t.flushTimer = nil
		t.flush(false)
	case msgRetry:
		t.retrying = nil
	case msgRoom: // the next turn goes on
	case msgLease:
		t.leaseWait = nil
		if t.sealDue && t.writing == nil {
			t.seal()
		}
	case msgVisit:
		t.beginVisit(m.visit)
	case msgDeferred:
		t.deferredCalled(m.deferred)
	case msgRested:
		t.rested(m.held)
	case msgIdle:
		t.idleTick()
	case msgEnds:
		t.endsKnown(m.ends, m.err)
	case msgWall:
		t.wall.timer, t.wall.due = nil, true
	case msgClose:
		t.close()
	}
}

// take receives a batch of an input.
func (t *Task) take(in *input, b *kafka.Batch) {
	if b.Err != nil && t.state == stateRunning {
		b.Release()
		t.fail(&kafka.Error{TopicPartition: in.TopicPartition, Offset: in.fetched, Err: b.Err})
		return
	}
	if t.state != stateRunning || t.failed != nil {
		b.Release()
		return
	}
	before := in.position
	in.push(b)
	if in.position != before {
		t.active.slid = true
	}
}

// endTurn lets outputs go and sees to it that what was done is sealed.
func (t *Task) endTurn(more bool) {
	if t.state == stateClosed {
		return
	}
	if !more {
		t.sendOutputs(true)
	}
	switch {
	case t.state == stateClosing:
		t.advanceClose()
	case t.active.slid && !t.active.moved && t.timer == nil && !t.sealDue:
		t.timer, t.lazy = t.env.Clock.Linger(lazyCommit*t.env.CommitInterval, t.urge(msgSeal)), true
	}
	t.watchWall()
	if !more {
		t.watchIdle()
	}
	t.publish()
}

// moved notes that the active epoch has something in it. From the first of it
// the commit interval runs, also while the turn goes on.
func (t *Task) moved() {
	if t.active.moved {
		return
	}
	t.active.moved = true
	if t.timer != nil && t.lazy {
		t.timer.Stop()
		t.timer = nil
	}
	if t.timer == nil && !t.sealDue {
		t.timer, t.lazy = t.env.Clock.Linger(t.env.Lane.untilTick(t.env.CommitInterval), t.urge(msgSeal)), false
	}
}

// lazyCommit is how many commit intervals positions may wait that moved over
// control records only.
const lazyCommit = 20

func (t *Task) event(kind EventKind, err error) {
	t.env.Event(Event{Task: t, Kind: kind, Err: err})
}

// fail reports what ends the processor. The task starts no further record,
// and waits for Close. What goes wrong because the task was dropped (a callback
// whose context has ended, a table that was not waited for) concerns nobody.
func (t *Task) fail(err error) {
	if t.failed != nil {
		return
	}
	t.failed = fmt.Errorf("task %d: %w", t.partition, err)
	t.loseUnfinished()
	if store, ok := errors.AsType[*StoreError](err); t.dropped.Load() && (!ok || errors.Is(store, context.Canceled)) {
		t.env.Log.Info("a task that was given up failed", zap.Error(t.failed))
		return
	}
	if _, ok := errors.AsType[*PanicError](err); ok {
		t.env.Log.Error("a callback panicked", zap.String("group", t.env.Graph.Group), zap.Error(t.failed), stackOf(err))
	}
	t.event(Failed, t.failed)
}
