package task

import (
	"runtime/debug"

	"github.com/rekastream/reka/kafka"
)

// This file holds a turn of the task: which records it processes, and how one
// is.

// prefetchKeys is how many keys ahead rows are loaded.
const prefetchKeys = 16

// turnRecords is how many records are processed before messages are looked
// at again.
const turnRecords = 1024

// process runs records for one turn. It reports whether more can be done at
// once.
func (t *Task) process() (more bool) {
	if t.timed && !t.keepTime() {
		return t.mayProcess() && t.mayWrite()
	}
	n := 0
	if len(t.unfinished.ready) > 0 {
		n = t.resume()
	}
	for n < turnRecords && !t.hurry.Load() {
		if !t.mayProcess() {
			return false
		}
		in, limit, inclusive := pick(t.inputs)
		if len(t.visits) > 0 && (in == nil || !t.inputsTurn) {
			n += t.visitSome()
			continue
		}
		t.inputsTurn = false
		if in == nil || !t.mayWrite() {
			return in == nil && t.lateWork()
		}
		some, ok := t.stretch(in, limit, inclusive)
		if n += some; !ok {
			return false
		}
		t.sendOutputs(false)
	}
	return true
}

// stretch processes the records of an input that come before those of all
// others. It returns how many they were, and false if the turn is over.
func (t *Task) stretch(in *input, limit int64, inclusive bool) (n int, ok bool) {
	for r := in.head(); r != nil && n < turnRecords && !t.dropped.Load() && !t.hurry.Load() && (r.Timestamp < limit || inclusive && r.Timestamp == limit); r = in.head() {
		if in.index >= in.ahead {
			t.prefetch(in)
		}
		if !t.one(in, r) || t.timed && !t.ended() || t.active.bytes >= t.env.EpochBytes && !t.makeRoom() {
			return n, false
		}
		n++
	}
	return n, true
}

// prefetch has the rows of the next few keys of an input loaded: those of the
// group table and of joined tables, which callbacks read at the record's own
// key.
func (t *Task) prefetch(in *input) {
	records := in.queue[0].Records[in.index:]
	records = records[:min(len(records), len(t.next))]
	in.ahead = in.index + len(records)
	if len(t.stores)+len(t.joins) == 0 {
		return
	}
	for i := range records {
		t.next[i] = records[i].Key
	}
	if len(t.stores) > 0 {
		t.stores[0].table.Prefetch(t.next[:len(records)])
	}
	for _, s := range t.joins {
		s.table.Prefetch(t.next[:len(records)])
	}
	clear(t.next[:len(records)])
}

// mayWrite reports whether the task is still this member's as far as it can
// know. If the lease is over it looks again in a moment: the group answers, or
// the task is dropped.
func (t *Task) mayWrite() bool {
	if t.dropped.Load() {
		return false
	}
	if !t.env.Lane.leaseOver() {
		return true
	}
	if t.leaseWait == nil {
		t.leaseWait = t.env.Clock.AfterFunc(commitRetry, func() { t.box.Put(message{kind: msgLease}) })
	}
	return false
}

// mayProcess reports whether a record may be started.
func (t *Task) mayProcess() bool {
	if t.state != stateRunning || t.failed != nil || t.retrying != nil || t.active.bytes >= 2*t.env.EpochBytes || t.flooded() {
		return false
	}
	if t.unfinished.n > 0 && !t.mayStart() {
		return false
	}
	for _, s := range t.stores {
		if s.table.Full() {
			return false
		}
	}
	for _, s := range t.joins {
		if s.table.Full() {
			return false
		}
	}
	return true
}

// makeRoom seals an epoch that has become large. It reports whether the task
// may go on.
func (t *Task) makeRoom() bool {
	t.seal()
	return t.active.bytes < 2*t.env.EpochBytes && !t.draining()
}

// one processes the head of an input. It reports false if no further record
// may be started.
func (t *Task) one(in *input, r *kafka.Record) bool {
	if t.unfinished.n > 0 && t.park(in, r) {
		return t.mayStart()
	}
	if t.timed && !t.begins(in, r) {
		return false
	}
	if in.join >= 0 {
		if err := t.runJoined(in, r); err != nil {
			return t.recordFailed(in, r, err)
		}
		t.finished(in, r.Timestamp)
		return true
	}
	time, err := t.run(in, r)
	switch {
	case err != nil:
		return t.recordFailed(in, r, err)
	case t.rec.deferred != nil:
		t.putOff(in, r, time)
		return t.mayStart()
	}
	t.finished(in, time)
	return true
}

// run runs the callback of a record, unless it is one to pass over, and keeps
// what it did, unless it deferred the record.
func (t *Task) run(in *input, r *kafka.Record) (time int64, err error) {
	decl := &t.env.Graph.Inputs[in.slot]
	if time = r.Timestamp; time < 0 {
		if !decl.WallTime {
			return noTime, &DecodeError{Err: errNoTimestamp}
		}
		time = t.env.Clock.Now().UnixMilli()
	}
	switch {
	case decl.MaxFuture > 0 && t.tooFar(in, time):
		t.refuseFuture(in, r)
		return noTime, nil
	case r.Value == nil && !decl.Nulls:
		t.count.nullValues++
		return time, nil
	case r.Key == nil && !decl.NullKeys:
		t.count.nullKeys++
		return time, nil
	}
	t.rec.begin(in, r, time)
	if err := t.call(t.env.Inputs[in.slot]); err != nil {
		t.rec.void()
		return time, err
	}
	if t.rec.deferred == nil {
		t.rec.keep()
		t.count.bytes += int64(len(r.Key) + len(r.Value))
	}
	return time, nil
}

// call runs a handler on t.rec.
func (t *Task) call(h Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	err = h(&t.rec)
	if t.rec.err != nil {
		return t.rec.err
	}
	if err == nil && t.rec.deferred != nil && len(t.rec.staged)+len(t.rec.emitted) > 0 {
		return errDeferredEffects
	}
	return err
}

// finished moves past the head of in.
func (t *Task) finished(in *input, time int64) {
	t.tries = 0
	t.counted(time)
	in.next()
}

// counted notes that a record is finished.
func (t *Task) counted(time int64) {
	t.streamTime = max(t.streamTime, time)
	t.moved()
	t.active.records++
	t.count.records++
}

// runJoined calls the handler of a joined table with a row, if there is one,
// and takes the row in.
func (t *Task) runJoined(in *input, r *kafka.Record) error {
	if in.join < len(t.env.Joins) && t.env.Joins[in.join] != nil {
		t.rec.begin(in, r, max(0, r.Timestamp))
		if err := t.call(t.env.Joins[in.join]); err != nil {
			t.rec.void()
			return err
		}
		t.rec.keep()
	}
	t.setJoined(in, r)
	return nil
}

// setJoined takes a row of a joined table in at its turn.
func (t *Task) setJoined(in *input, r *kafka.Record) {
	if r.Key == nil {
		t.count.nullKeys++
	} else {
		t.joins[in.join].table.Set(r.Key, r.Value, r.Timestamp)
		t.active.bytes += len(r.Key) + len(r.Value) + rowOverhead
	}
}

// rowOverhead is what a row costs in an epoch beside its bytes.
const rowOverhead = 48
