package task

import (
	"errors"
	"sync/atomic"
)

var (
	// errDeferredEffects: what a callback did that deferred its record.
	errDeferredEffects = errors.New("a callback that defers its record changes and emits nothing itself: that is for the function given to Finish")
	// errVisitorDefers: a visitor has no record to come back to.
	errVisitorDefers = errors.New("a visitor cannot defer: there is no record to finish")
	// errNoError is the error of a record that was failed without one.
	errNoError = errors.New("failed, with a nil error")
)

// Deferred finishes a record some time after its callback has returned. It
// belongs to one run of the callback: when that fails after all, or is
// repeated, nobody waits for it any more.
type Deferred struct {
	task   *Task
	called atomic.Bool

	// Written by the one call that counts, before the task hears of it.
	finish Handler // nil: there is nothing left to do
	err    error   // not nil: the record failed

	held *held // owned by the task's goroutine; nil: nobody waits
}

// Defer says that the record will not be finished when its callback returns.
// Further calls from the same callback return the same.
func (r *Record) Defer() *Deferred {
	switch {
	case !r.active:
		r.task.misuse(ErrInactive)
		return &Deferred{task: r.task}
	case r.in == nil:
		r.Stick(errVisitorDefers)
		return &Deferred{task: r.task}
	case r.deferred == nil:
		r.deferred = &Deferred{task: r.task}
	}
	return r.deferred
}

// Finish has fn run on the task's goroutine, as the end of the record's
// callback. Any goroutine may call it. Only the first call of Finish or Fail
// counts.
func (d *Deferred) Finish(fn Handler) {
	if d.called.CompareAndSwap(false, true) {
		d.finish = fn
		d.tell()
	}
}

// Fail fails the record as if its callback had returned err. Any goroutine
// may call it. Only the first call of Finish or Fail counts.
func (d *Deferred) Fail(err error) {
	if d.called.CompareAndSwap(false, true) {
		if d.err = err; err == nil {
			d.err = errNoError
		}
		d.tell()
	}
}

// tell hands the call over. A task that has ended does not hear it.
func (d *Deferred) tell() { d.task.box.Put(message{kind: msgDeferred, deferred: d}) }
