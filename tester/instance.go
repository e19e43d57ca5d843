package tester

import (
	"context"
	"errors"
	"runtime/pprof"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// Instance is one process of an application: what build made, run as reka.Run
// does, with a client and a storage of its own. It can be crashed, paused and
// started again; its storage outlives that.
type Instance struct {
	t     *Tester
	name  string
	build func(*Instance) ([]reka.Runner, error)
	store storage.Builder
	inc   *incarnation
	live  *kafka.Client
	over  bool  // inc has ended and was waited for
	err   error // of inc, if it ended by itself or by Stop
	asked bool  // somebody looked at err
}

// Start starts an instance and settles. build makes its runners from the
// instance's Client and Storage; it is called now and at each Restart, and
// its error fails the test.
func (t *Tester) Start(name string, build func(*Instance) ([]reka.Runner, error)) *Instance {
	t.tb.Helper()
	t.enter()
	inst := &Instance{t: t, name: name, build: build, store: storage.Memory()}
	t.instances = append(t.instances, inst)
	inst.launch()
	t.Settle()
	return inst
}

// launch starts an incarnation.
func (i *Instance) launch() {
	t := i.t
	t.tb.Helper()
	life := 1
	if i.inc != nil {
		life = i.inc.life + 1
	}
	i.inc, i.over, i.err, i.asked = t.w.newIncarnation(i.name, life), false, nil, false
	var err error
	if i.live, err = t.newClient(i.inc); err != nil {
		t.tb.Fatalf("tester: start %s: %v", i.name, err)
	}
	pprof.Do(context.Background(), pprof.Labels(processLabel, i.inc.label()), func(context.Context) {
		var rs []reka.Runner
		if rs, err = i.build(i); err == nil {
			i.inc.run(rs)
		}
	})
	if err != nil {
		i.inc.kill()
		t.tb.Fatalf("tester: start %s: %v", i.name, err)
	}
}

// Name returns the instance's name.
func (i *Instance) Name() string { return i.name }

// Client returns the client of the instance, another one after a Restart.
func (i *Instance) Client() *kafka.Client { return i.live }

// Storage returns the instance's storage. It lives in memory and survives
// Crash and Restart, as a disk does.
func (i *Instance) Storage() storage.Builder { return i.Guard(i.store) }

// Guard makes a storage the instance's own: after a crash nothing of what the
// dead process does reaches it, and it is let go for the next one. For code
// that needs a real directory: Guard(badgerstore.In(dir)).
func (i *Instance) Guard(b storage.Builder) storage.Builder { return guardBuilder{i.inc, b} }

// Crash kills the process: at once none of its calls has an effect any more.
// It returns when its goroutines have ended and the world has settled, and
// fails the test if they do not end. The rest of the world is not told: a group waits for the session
// timeout, or for a Restart of a static member.
func (i *Instance) Crash() {
	i.t.tb.Helper()
	i.t.enter()
	if !i.over {
		i.inc.kill()
		i.bury()
	}
}

// Crashed reports whether the process is dead, by Crash or by a fault.
func (i *Instance) Crashed() bool { return i.inc.isDead() }

// bury waits for the end of a dead process.
func (i *Instance) bury() {
	i.t.tb.Helper()
	i.wait("after its crash", false)
	i.inc.reap()
	i.over = true
}

// report fails the test if the instance ended with an error that nobody asked
// for.
func (i *Instance) report() {
	i.t.tb.Helper()
	if i.err != nil && !i.asked {
		i.t.tb.Errorf("tester: instance %s ended with: %v", i.name, i.err)
	}
}

// Restart starts the instance again and settles. One that runs is stopped
// before; one that a fault has crashed is waited for.
func (i *Instance) Restart() {
	i.t.tb.Helper()
	i.t.enter()
	i.end()
	i.report()
	i.launch()
	i.t.Settle()
}

// Stop stops the instance in order, as a cancelled context does, and returns
// what its runners returned. Time passes if they need it to.
func (i *Instance) Stop() error {
	i.t.tb.Helper()
	i.t.enter()
	i.asked = true
	i.end()
	return i.err
}

// end brings the incarnation to an end in the way it is due.
func (i *Instance) end() {
	i.t.tb.Helper()
	switch {
	case i.over:
		return
	case i.Crashed():
		i.bury()
		return
	}
	i.t.w.mu.Lock()
	cancel := i.inc.cancel
	i.t.w.mu.Unlock()
	if !i.t.tb.Failed() {
		i.t.Settle() // so that the end is the same on every run
	}
	cancel()
	i.wait("after it was stopped", true)
	if i.Crashed() { // by a fault, on the way
		i.bury()
		return
	}
	i.err, i.over = i.inc.err, true
	_ = i.live.Close() // never fails
	i.inc.reap()
}

// Err returns the error with which the instance ended by itself, nil while it
// runs, and kafka.ErrClosed after a crash. It settles first.
func (i *Instance) Err() error {
	i.t.tb.Helper()
	i.t.Settle()
	i.asked = true
	if i.Crashed() {
		return kafka.ErrClosed
	}
	for deadline := time.Now().Add(i.t.patience); !i.inc.runnersRest() && time.Now().Before(deadline); {
		pauseReal(100 * time.Microsecond)
	}
	if i.inc.failed.Load() {
		i.wait("after one of its runners had failed", true)
	}
	select {
	case <-i.inc.done:
		return errors.Join(i.inc.err)
	default:
		return nil
	}
}

// Pause stops the process as SIGSTOP does: its calls wait, nothing is
// delivered to it, its timers stand still and its sessions run out.
func (i *Instance) Pause() {
	i.t.enter()
	w := i.t.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if i.inc.paused || i.inc.dead || i.inc.closed {
		return
	}
	i.inc.paused = true
	for _, m := range i.inc.members {
		m.silence()
	}
}

// Resume lets a paused process go on.
func (i *Instance) Resume() {
	i.t.enter()
	w := i.t.w
	w.mu.Lock()
	if !i.inc.paused {
		w.mu.Unlock()
		return
	}
	i.inc.paused = false
	for _, m := range i.inc.members {
		m.speak()
	}
	for wt := range w.waiters {
		if wt.inc == i.inc && wt.pause {
			w.wakeWaiter(wt, nil)
		}
	}
	producers := append([]*producer(nil), i.inc.producers...)
	transactors := append([]*transactor(nil), i.inc.transactors...)
	w.changed()
	w.mu.Unlock()
	for _, p := range producers {
		p.resume()
	}
	for _, t := range transactors {
		t.drain()
	}
	w.wake()
}

// wait waits until the runners have returned and their goroutines are gone.
func (i *Instance) wait(when string, time bool) {
	t := i.t
	t.tb.Helper()
	release := t.w.hold(time)
	defer release()
	done := i.inc.done
	if done == nil {
		return
	}
	t.await(done, "instance "+i.name+" did not end "+when)
	if left := i.leaked(); left != "" {
		t.tb.Errorf("tester: instance %s left goroutines behind %s:\n%s", i.name, when, left)
	}
	// The others went on meanwhile, for a time that differs from run to run.
	t.await(t.w.settle(), "did not settle")
}

// leakPatience is how long, in real time, goroutines may take to end when
// their process has.
const leakPatience = 2 * time.Second

// leaked returns the goroutines that the process left behind, after a moment
// in which they may end.
func (i *Instance) leaked() string {
	deadline := time.Now().Add(min(leakPatience, i.t.patience))
	for {
		left := leftovers(i.inc.label())
		if left == "" || time.Now().After(deadline) {
			return left
		}
		pauseReal(time.Millisecond)
	}
}

// pauseReal gives goroutines a moment of real time to end.
func pauseReal(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}
