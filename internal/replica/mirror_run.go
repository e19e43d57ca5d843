package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// Pauses between tries to reach a topic.
const (
	minPause = 500 * time.Millisecond
	maxPause = 30 * time.Second
)

// minPatience is how long the brokers are waited for without a word.
const minPatience = 10 * time.Second

// maxFlushes is how many flushes of a mirror run at once: a store writes one
// after the other, and a second one keeps it busy.
const maxFlushes = 2

// mirrorRun is what the owner goroutine of a Mirror owns: all fields are its
// own. Workers (opening, asking the brokers, flushing) hand their results back
// through the mailbox, as functions that the owner calls.
type mirrorRun struct {
	m       *Mirror
	ctx     context.Context // of the workers; ends when stopping begins
	cancel  context.CancelFunc
	store   storage.Store
	fetcher kafka.Fetcher
	parts   []*mirrorPart
	topicID kafka.TopicID
	local   bool // the local copy was complete before this run

	workers   int
	flushes   int
	dialing   bool // a connect worker is under way, or its timer
	connected bool // the topic was found, and is being followed
	everReady bool
	pause     time.Duration
	tries     int       // to reach the topic since it was last there
	missing   time.Time // since when the topic is not there; zero: it is
	waiting   time.Time // since when the brokers are waited for; zero: they are not
	patience  time.Duration

	probing   bool
	probedAt  time.Time // when the probe under way began
	silent    bool      // the brokers have not answered it for long
	lastState MirrorState

	stopping bool
	timedOut bool
	failed   error
}

func newMirrorRun(m *Mirror) *mirrorRun {
	r := &mirrorRun{m: m, pause: minPause}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// run is what the owner goroutine does.
func (r *mirrorRun) run(ctx context.Context) error {
	unhook := context.AfterFunc(ctx, func() { r.m.box.Put(r.stop) })
	defer unhook()
	r.setState(MirrorConnecting)
	r.open()
	r.tick()
	r.loop(func() bool { return r.stopping })
	return r.shutdown()
}

// loop works until done.
func (r *mirrorRun) loop(done func() bool) {
	busy := false
	for !done() {
		var todo []func()
		if busy {
			todo = r.m.box.TryTake()
		} else {
			todo, _ = r.m.box.Take()
		}
		for _, f := range todo {
			f()
		}
		busy = r.applySome()
		r.refresh()
	}
}

func (r *mirrorRun) stop() { r.stopping = true }

// fail ends the run with an error.
func (r *mirrorRun) fail(err error) {
	if r.failed == nil {
		r.failed = err
	}
	r.stopping = true
}

// spawn runs f in a goroutine of its own and what it returns on the owner's.
// It ends with f, at the latest soon after r.ctx; shutdown waits for it.
func (r *mirrorRun) spawn(f func() func()) {
	r.workers++
	work.Go(r.m.cfg.Client.Driver().Work(), func() {
		then := f()
		r.m.box.Put(func() {
			r.workers--
			then()
		})
	})
}

// after calls f on the owner's goroutine, d from now.
func (r *mirrorRun) after(d time.Duration, f func()) kafka.Timer {
	return r.m.clock.AfterFunc(d, func() { r.m.box.Put(f) })
}

// tick comes every probe interval: it asks the brokers, notices their silence,
// and starts flushes that have become due by age.
func (r *mirrorRun) tick() {
	if r.stopping {
		return
	}
	for _, p := range r.parts {
		r.flushIfDue(p)
	}
	r.probe()
	r.warnOfSilence()
	r.after(r.m.cfg.Probe, r.tick)
}

// warnOfSilence says, at growing intervals, that the brokers are waited for.
func (r *mirrorRun) warnOfSilence() {
	now := r.m.clock.Now()
	switch {
	case r.lastState != MirrorConnecting || !r.missing.IsZero():
		r.waiting = time.Time{}
	case r.waiting.IsZero():
		r.waiting, r.patience = now, minPatience
	case now.Sub(r.waiting) >= r.patience:
		r.m.log.Warn("table waits for its brokers", zap.Duration("for", now.Sub(r.waiting)))
		r.patience *= 2
	}
}

// refresh derives the state from what is so, and tells if it changed.
func (r *mirrorRun) refresh() {
	if r.stopping {
		return
	}
	complete, usable := len(r.parts) > 0, len(r.parts) > 0
	for _, p := range r.parts {
		p.mu.Lock()
		complete = complete && p.rep.state == Live
		usable = usable && p.usable
		p.mu.Unlock()
	}
	state := MirrorReady
	switch {
	case !r.connected || r.silent:
		state = MirrorConnecting
	case !complete:
		state = MirrorRestoring
	}
	r.everReady = r.everReady || state == MirrorReady
	r.setReadable(usable && (r.everReady || r.local && r.m.cfg.LocalFirst))
	r.setState(state)
}

func (r *mirrorRun) setReadable(yes bool) {
	if r.m.readable.Swap(yes) == yes {
		return
	}
	r.m.mu.Lock()
	r.m.wake()
	r.m.mu.Unlock()
}

func (r *mirrorRun) setState(s MirrorState) {
	if s == r.lastState {
		return
	}
	if s == MirrorConnecting && r.lastState != MirrorIdle {
		r.m.log.Warn("table lost its brokers or its topic: reads are answered from the local copy")
	} else if r.lastState == MirrorConnecting {
		r.m.log.Info("table is connected", zap.Stringer("state", s))
	}
	r.lastState = s
	r.m.mu.Lock()
	r.m.state = s
	r.m.wake()
	r.m.mu.Unlock()
	if r.m.cfg.OnState != nil {
		r.m.cfg.OnState(s)
	}
}

// shutdown ends the following, waits for workers and scans, writes what is not
// durable and gives the store back.
func (r *mirrorRun) shutdown() error {
	r.cancel()
	r.m.closing.Store(true)
	r.m.readable.Store(false)
	if r.fetcher != nil {
		if err := r.fetcher.Close(); err != nil && r.failed == nil {
			r.failed = err
		}
	}
	for _, p := range r.parts {
		r.dropQueue(p)
	}
	timer := r.after(r.m.cfg.StopTimeout, func() { r.timedOut = true })
	defer timer.Stop()
	r.loop(func() bool { return r.timedOut || r.workers == 0 })
	if !r.timedOut && r.store != nil {
		r.spawn(func() func() {
			err := r.writeAll()
			return func() { r.failed = firstError(r.failed, err) }
		})
		r.loop(func() bool { return r.timedOut || r.workers == 0 && r.m.scanning() == 0 })
	}
	r.m.box.Close()
	for _, f := range r.m.box.TryTake() {
		f() // releases what was delivered too late
	}
	if r.timedOut {
		// Who still reads or writes would find a store that is gone.
		r.setState(MirrorIdle)
		return errors.Join(r.failed, fmt.Errorf("table %s: %w", r.m.cfg.Topic, ErrStopTimeout))
	}
	err := r.closeAll()
	r.setState(MirrorIdle)
	return firstError(r.failed, err)
}

func (r *mirrorRun) writeAll() error {
	var errs []error
	for _, p := range r.parts {
		p.mu.Lock()
		err := p.rep.t.FlushNow()
		p.mu.Unlock()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *mirrorRun) closeAll() error {
	r.m.parts.Store(nil)
	var errs []error
	for _, p := range r.parts {
		p.mu.Lock()
		errs = append(errs, p.rep.t.Close())
		p.mu.Unlock()
	}
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	return errors.Join(errs...)
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
