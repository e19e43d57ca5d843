package processor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/assign"
	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// session is one Run. One goroutine owns it, for which Run waits: everything
// that happens reaches it as a message.
type session struct {
	p      *Processor
	spec   topology
	box    *work.Mailbox[message]
	ctx    context.Context // of everything that the session starts; ends when it gives up
	cancel context.CancelFunc

	store    storage.Store
	release  func() // of the claim on group and state
	mirrors  []*replica.Mirror
	loaded   int // mirrors that are ready
	fetcher  kafka.Fetcher
	restorer kafka.Fetcher
	producer kafka.Producer
	txn      kafka.Transactor // nil: without transactions
	member   kafka.Member
	instance string // of a static member
	lane     *task.Lane
	disk     *task.Worker
	errands  *task.Worker
	ended    *work.Mailbox[struct{}] // one of the helpers, which are mirrors and takeovers
	env      *task.Env

	// Owned by the goroutine.
	slots     map[int32]*slot
	assigned  bool // is a member with an assignment
	stopping  bool
	failure   error
	timedOut  bool
	helpers   int  // begun and not known to have ended
	rejoin    bool // once nothing is being released
	joined    bool // was a member of the group at some time
	stopTimer kafka.Timer
	released  bool        // something was written that was to be released, since the last join
	gathered  bool        // what is released need not wait for the rest any more
	gather    kafka.Timer // runs while something is being released, until then
	overdue   kafka.Timer // runs while something is being released
	awaiting  kafka.Timer // runs while others hold what was given to this member

	introduced bool // joined again because its identity was another program's
	watch      watch
	guard      guard

	mu     sync.Mutex
	share  assign.ShareData // guarded by mu; of the last adopted assignment
	claims []assign.Task    // guarded by mu; what the next join claims
	tasks  []*task.Task     // guarded by mu; running or restoring
	nonce  uint64           // guarded by mu
	asked  bool             // guarded by mu; a join is or was on its way
}

// slot is one partition that this member has, gets, or gives up.
type slot struct {
	partition int32
	task      *task.Task // nil while it is being taken over
	running   bool
	closing   bool
	written   bool
	since     time.Time // of closing
	wanted    bool      // closing, and assigned again meanwhile
	takeover  *takeover // as long as there is no task
}

type message struct {
	kind   messageKind
	event  task.Event
	assign kafka.Assignment
	starts []taken
	topics map[string]kafka.Topic
	err    error
}

type messageKind int8

const (
	msgStop     messageKind = iota // Run's context has ended
	msgFailed                      // err ends the session
	msgLoaded                      // a mirror is ready
	msgAssigned                    // a new assignment
	msgLost                        // no longer a member: err
	msgTaken                       // a takeover found where its tasks start
	msgEvent                       // something happened to a task
	msgTimeout                     // the stop timeout is over
	msgOverdue                     // what is being released has had its time
	msgGathered                    // what is released has waited for the rest
	msgAwaited                     // what others hold for this member has had its time
	msgLook                        // time to look at the topics
	msgLooked                      // topics, or why they were not found
	msgGuard                       // time to look at what is in the way of partitions
	msgGuarded                     // that look has ended: err
)

func newSession(p *Processor) *session {
	ctx, cancel := context.WithCancel(context.Background())
	return &session{
		p: p, ctx: ctx, cancel: cancel, box: work.NewMailbox[message](p.client.Driver().Work()),
		ended: work.NewMailbox[struct{}](p.client.Driver().Work()),
		slots: map[int32]*slot{}, release: func() {},
	}
}

// run is the session's life: prepare, work, drain, give back.
func (s *session) run(ctx context.Context) error {
	s.p.setStatus(Connecting)
	stop := context.AfterFunc(ctx, func() { s.box.Put(message{kind: msgStop}) })
	defer stop()
	defer s.cancel()
	err := s.prepare(ctx)
	if err == nil {
		s.watchTopics(watchInterval)
		s.loop()
		err = s.failure
	}
	s.p.setStatus(Stopping)
	s.giveBack()
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil // ended while it was still preparing: nothing to drain
	case s.timedOut:
		return errors.Join(reka.ErrStopTimeout, err)
	}
	return err
}

// loop works until everything has ended after a stop or a failure.
func (s *session) loop() {
	for {
		messages, ok := s.box.Take()
		if !ok {
			return
		}
		for i := range messages {
			s.handle(&messages[i])
		}
		s.publish()
		s.keepGuard()
		if s.stopping && len(s.slots) == 0 || s.timedOut {
			return
		}
	}
}

func (s *session) handle(m *message) {
	switch m.kind {
	case msgStop:
		s.stop()
	case msgFailed:
		s.suspect(m.err)
	case msgLoaded:
		if s.loaded++; s.loaded == len(s.mirrors) && !s.stopping {
			s.member.Start()
		}
	case msgAssigned:
		s.adopt(m.assign)
	case msgLost:
		s.lost(m.err)
	case msgTaken:
		s.begin(m.starts)
	case msgEvent:
		s.taskEvent(m.event)
	case msgTimeout:
		s.timedOut = true
	case msgOverdue:
		s.dropOverdue()
	case msgGathered:
		s.gathered = true
		s.maybeRejoin()
	case msgAwaited:
		s.stillAwaiting()
	case msgLook:
		s.look()
	case msgLooked:
		s.looked(m.topics, m.err)
	case msgGuard:
		s.guardLook()
	case msgGuarded:
		s.guarded(m.err)
	}
}

// stop begins to drain.
func (s *session) stop() {
	if s.stopping {
		return
	}
	s.stopping = true
	s.p.setStatus(Stopping)
	s.stopTimer = s.p.client.Driver().Clock().AfterFunc(s.p.cfg.stop, func() { s.box.Put(message{kind: msgTimeout}) })
	for _, sl := range s.slots {
		s.close(sl, false)
	}
}

func (s *session) fail(err error) {
	if s.failure == nil {
		s.failure = err
	}
	s.stop()
}

// close ends a slot: a takeover at once, a task when it has written.
func (s *session) close(sl *slot, drop bool) {
	sl.wanted = false
	if sl.task == nil {
		sl.takeover.giveUp()
		delete(s.slots, sl.partition)
		s.released = true
		return
	}
	if !sl.closing {
		sl.closing, sl.since = true, s.env.Clock.Now()
	}
	sl.task.Close(drop)
}

// taskEvent follows a task's own account of itself.
func (s *session) taskEvent(e task.Event) {
	sl := s.slots[e.Task.Partition()]
	if sl == nil || sl.task != e.Task {
		if e.Kind == task.Failed {
			s.p.log.Warn("a task that was given up failed", zap.Error(e.Err))
		}
		return
	}
	switch e.Kind {
	case task.Running:
		sl.running = true
		if f := s.p.cfg.observer.Running; f != nil && !sl.closing {
			f(sl.partition)
		}
	case task.Failed:
		if s.isGone(e.Err) {
			s.failGone(e.Err)
			return
		}
		s.fail(e.Err)
	case task.Disowned:
		s.p.log.Warn("a partition had another owner meanwhile; it is taken over anew",
			zap.String("group", s.p.graph.spec.Group), zap.Int32("partition", sl.partition))
		wanted := !sl.closing || sl.wanted
		s.close(sl, true)
		sl.wanted = wanted
	case task.Written:
		sl.written, s.released = true, true
		s.maybeRejoin()
	case task.Closed:
		delete(s.slots, sl.partition)
		if f := s.p.cfg.observer.Revoked; f != nil {
			f([]int32{sl.partition})
		}
		s.maybeRejoin()
		if sl.wanted && !s.stopping {
			s.take([]int32{sl.partition})
		}
	}
}

// publish renews what other goroutines see: claims, tasks, status.
func (s *session) publish() {
	s.mu.Lock()
	s.claims, s.tasks = s.claims[:0:0], s.tasks[:0:0]
	ready := s.assigned
	for _, sl := range s.slots {
		if !sl.written {
			s.claims = append(s.claims, assign.Task{Subgraph: subgraph, Partition: sl.partition})
		}
		if sl.task != nil && !sl.closing {
			s.tasks = append(s.tasks, sl.task)
		}
		ready = ready && (sl.running || sl.closing && !sl.wanted)
	}
	slices.SortFunc(s.tasks, func(a, b *task.Task) int { return int(a.Partition() - b.Partition()) })
	s.mu.Unlock()
	switch {
	case s.stopping:
	case ready:
		s.p.setStatus(Serving)
	case s.assigned:
		s.p.setStatus(Restoring)
	default:
		s.p.setStatus(Connecting)
	}
}

// snapshot returns the tasks that there are. Any goroutine may call it.
func (s *session) snapshot() []*task.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tasks)
}

// Bounds of what leaving the group may take after all is written, or after the
// stop timeout or before the first assignment, when it is most likely the
// brokers that do not answer.
const (
	leaveTimeout     = 5 * time.Second
	lateLeaveTimeout = time.Second
)

// giveBack ends everything that prepare and the loop have started, in the
// order in which it depends on each other.
func (s *session) giveBack() {
	for _, t := range []kafka.Timer{s.stopTimer, s.gather, s.overdue, s.awaiting, s.watch.timer, s.guard.timer} {
		if t != nil {
			t.Stop()
		}
	}
	stuck := s.abandon()
	s.cancel()
	if s.lane != nil {
		s.lane.Close()
	}
	s.closeConnections()
	for _, sl := range stuck {
		s.awaitStuck(sl)
	}
	for _, w := range []*task.Worker{s.disk, s.errands} {
		if w != nil {
			w.Close()
		}
	}
	for s.helpers > 0 {
		ended, _ := s.ended.Take()
		s.helpers -= len(ended)
	}
	s.box.Close()
	if s.store != nil {
		s.closeQuietly("store", s.store.Close)
	}
	s.release()
}

// abandon drops the tasks that were not drained in time, and returns them.
func (s *session) abandon() (stuck []*slot) {
	if !s.timedOut {
		return nil
	}
	for _, sl := range s.slots {
		if sl.task != nil {
			sl.task.Close(true)
			stuck = append(stuck, sl)
		}
	}
	return stuck
}

// closeConnections leaves the group and ends everything that talks to
// brokers.
func (s *session) closeConnections() {
	if s.member != nil {
		s.mu.Lock()
		known := s.asked
		s.mu.Unlock()
		if known && !s.p.cfg.stay {
			s.leave()
		}
		s.closeQuietly("member", s.member.Close)
	}
	for _, f := range []kafka.Fetcher{s.fetcher, s.restorer} {
		if f != nil {
			s.closeQuietly("fetcher", f.Close)
		}
	}
	if s.producer != nil {
		s.closeQuietly("producer", s.producer.Close)
	}
	if s.txn != nil {
		s.closeQuietly("transactor", s.txn.Close)
	}
}

// leave leaves the group, so that others need not wait for the session's end.
func (s *session) leave() {
	patience := leaveTimeout
	if s.timedOut || !s.joined {
		patience = lateLeaveTimeout
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	late := s.p.client.Driver().Clock().AfterFunc(patience, cancel)
	defer late.Stop()
	if err := s.member.Leave(ctx); err != nil && !errors.Is(err, kafka.ErrClosed) {
		s.p.log.Warn("leaving the group failed", zap.String("group", s.p.graph.spec.Group), zap.Error(err))
	}
}

// awaitStuck gives a task that did not end in time a last moment: everything
// that it could wait for has ended, so only a callback can hold it.
func (s *session) awaitStuck(sl *slot) {
	for range 100 {
		select {
		case <-sl.task.Done():
			return
		default:
		}
		if err := s.p.client.Driver().Clock().Sleep(context.Background(), 10*time.Millisecond); err != nil {
			return // the driver has ended, and time with it
		}
	}
	s.p.log.Error("a callback does not return; its goroutine is left behind",
		zap.String("group", s.p.graph.spec.Group), zap.Int32("partition", sl.partition))
}

func (s *session) closeQuietly(what string, f func() error) {
	if err := f(); err != nil && !errors.Is(err, kafka.ErrClosed) {
		s.p.log.Warn("closing the "+what+" failed", zap.String("group", s.p.graph.spec.Group), zap.Error(err))
	}
}
