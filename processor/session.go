package processor

import (
	"context"
	"errors"
	"slices"
	"sync"

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
	clock  kafka.Clock
	work   work.Counter
	print  uint64 // fingerprint of the graph
	spec   topology
	box    *work.Mailbox[message]
	ctx    context.Context // of everything that the session starts; ends when it gives up
	cancel context.CancelFunc

	process  string // its id
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
	epochs   *replica.Epochs

	subgraphs []*subgraph // in order of the graph's parts

	// Owned by the goroutine.
	slots     map[assign.Task]*slot
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
	tasks  []liveTask       // guarded by mu; running or restoring
	nonce  uint64           // guarded by mu
	asked  bool             // guarded by mu; a join is or was on its way
}

type message struct {
	kind   messageKind
	event  task.Event
	of     *subgraph // whose task tells the event
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
	driver := p.client.Driver()
	return &session{
		p: p, clock: driver.Clock(), work: driver.Work(), print: p.graph.fingerprint(),
		ctx: ctx, cancel: cancel, box: work.NewMailbox[message](driver.Work()), ended: work.NewMailbox[struct{}](driver.Work()),
		slots: map[assign.Task]*slot{}, release: func() {},
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
		s.taskEvent(m.of, m.event)
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
	s.stopTimer = s.clock.AfterFunc(s.p.cfg.stop, func() { s.box.Put(message{kind: msgTimeout}) })
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
		delete(s.slots, sl.id)
		s.released = true
		return
	}
	if !sl.closing {
		sl.closing, sl.since = true, s.clock.Now()
	}
	sl.task.Close(drop)
}

// taskEvent follows a task's own account of itself.
func (s *session) taskEvent(of *subgraph, e task.Event) {
	sl := s.slots[assign.Task{Subgraph: of.spec.Subgraph, Partition: e.Task.Partition()}]
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
			f(sl.id.Partition)
		}
	case task.Failed:
		if s.isGone(e.Err) {
			s.failGone(e.Err)
			return
		}
		s.fail(sl.placed(e.Err))
	case task.Disowned:
		s.p.log.Warn("a partition had another owner meanwhile; it is taken over anew", sl.fields()...)
		wanted := !sl.closing || sl.wanted
		s.close(sl, true)
		sl.wanted = wanted
	case task.Written:
		sl.written, s.released = true, true
		s.maybeRejoin()
	case task.Closed:
		delete(s.slots, sl.id)
		if f := s.p.cfg.observer.Revoked; f != nil {
			f([]int32{sl.id.Partition})
		}
		s.maybeRejoin()
		if sl.wanted && !s.stopping {
			s.take([]assign.Task{sl.id})
		}
	}
}

// publish renews what other goroutines see: claims, tasks, status.
func (s *session) publish() {
	s.mu.Lock()
	s.claims, s.tasks = s.claims[:0:0], s.tasks[:0:0]
	var live []*slot
	ready := s.assigned
	for _, sl := range s.slots {
		if !sl.written {
			s.claims = append(s.claims, sl.id)
		}
		if sl.task != nil && !sl.closing {
			live = append(live, sl)
		}
		ready = ready && (sl.running || sl.closing && !sl.wanted)
	}
	slices.SortFunc(live, func(a, b *slot) int { return s.compareTasks(a.id, b.id) })
	for _, sl := range live {
		s.tasks = append(s.tasks, liveTask{sl.of.part, sl.task})
	}
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
func (s *session) snapshot() []liveTask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tasks)
}
