package task

import (
	"time"

	"github.com/rekastream/reka/kafka"
)

// unfinished are the records that positions have moved past and that are not
// finished: those whose callbacks deferred them, and those of the same keys
// that came after them. See the package comment. Owned by the task.
type unfinished struct {
	n     int // of records
	bytes int // of their copies
	lines map[string]*line
	ready []*held // may go on, in the order in which they may

	resting map[*held]kafka.Timer // failed, and wait to be repeated
	lost    bool                  // the active epoch will not be sealed
}

// line are the unfinished records of a key in the order in which they came.
// The first one is at work, the others are parked.
type line struct {
	key     string
	records []*held
}

// held is an unfinished record: a copy, since its batch is released.
type held struct {
	in     *input
	record kafka.Record
	size   int
	line   *line // nil: no key
	time   int64 // of the callback's run that deferred it
	tries  int   // that failed

	waits *Deferred // what it waits for; nil: nothing

	// What a call has said; all zero: the callback is to run.
	called bool
	finish Handler
	err    error
}

// park holds a record back whose key has an unfinished one. It reports false
// if there is none.
func (t *Task) park(in *input, r *kafka.Record) bool {
	l := t.unfinished.lines[string(r.Key)]
	if l == nil || r.Key == nil {
		return false
	}
	t.hold(in, r, l)
	return true
}

// putOff holds the record at hand, whose callback has deferred it.
func (t *Task) putOff(in *input, r *kafka.Record, time int64) {
	d := t.rec.deferred
	t.rec.void()
	var l *line
	if r.Key != nil {
		l = &line{key: string(r.Key)}
		if t.unfinished.lines == nil {
			t.unfinished.lines = map[string]*line{}
		}
		t.unfinished.lines[l.key] = l
	}
	h := t.hold(in, r, l)
	h.tries, t.tries = t.tries, 0
	h.wait(d, time)
	t.streamTime = max(t.streamTime, time)
}

// hold moves past the head of in, of which it keeps a copy at the end of l.
func (t *Task) hold(in *input, r *kafka.Record, l *line) *held {
	h := &held{in: in, record: copyOf(r), size: r.Size() + rowOverhead, line: l}
	if l != nil {
		l.records = append(l.records, h)
	}
	t.unfinished.n++
	t.unfinished.bytes += h.size
	t.moved()
	in.next()
	return h
}

// copyOf returns a record with bytes of its own.
func copyOf(r *kafka.Record) kafka.Record {
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Value)
	}
	buf := make([]byte, 0, n)
	own := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		from := len(buf)
		buf = append(buf, b...)
		return buf[from:len(buf):len(buf)]
	}
	c := *r
	c.Key, c.Value, c.Headers = own(r.Key), own(r.Value), nil
	for i := range r.Headers {
		c.Headers = append(c.Headers, kafka.Header{Key: r.Headers[i].Key, Value: own(r.Headers[i].Value)})
	}
	return c
}

// wait says that h goes on when d is called.
func (h *held) wait(d *Deferred, time int64) {
	h.waits, h.time = d, time
	h.called, h.finish, h.err = false, nil, nil
	d.held = h
}

// mayStart reports whether a further record may become an unfinished one:
// there is room for it, and no seal waits for those that there are.
func (t *Task) mayStart() bool {
	u := &t.unfinished
	return !t.draining() && u.n < t.env.Unfinished && u.bytes < t.env.EpochBytes
}

// draining reports whether a seal waits until nothing is unfinished.
func (t *Task) draining() bool { return t.unfinished.n > 0 && t.sealDue && t.writing == nil }

// deferredCalled takes the call of a Deferred. One that nobody waits for is
// of a run that has failed.
func (t *Task) deferredCalled(d *Deferred) {
	h := d.held
	if h == nil || t.unfinished.lost {
		return
	}
	d.held, h.waits = nil, nil
	h.called, h.finish, h.err = true, d.finish, d.err
	t.unfinished.ready = append(t.unfinished.ready, h)
}

// rested has a record repeated whose backoff is over.
func (t *Task) rested(h *held) {
	if t.unfinished.resting[h] == nil {
		return // given up
	}
	delete(t.unfinished.resting, h)
	t.unfinished.ready = append(t.unfinished.ready, h)
}

// resume lets unfinished records go on that can, and returns how many. They
// are not held up by what stops the start of records, full tables say: until
// they are finished nothing is sealed, and until then no table has room
// again. They are bounded by their number.
func (t *Task) resume() (n int) {
	u := &t.unfinished
	for n < turnRecords && len(u.ready) > 0 && !t.hurry.Load() && t.mayWrite() {
		h := u.ready[0]
		u.ready[0] = nil
		u.ready = u.ready[1:]
		t.goOn(h)
		n++
		if t.active.bytes >= t.env.EpochBytes && !t.sealDue {
			t.seal()
		}
	}
	if u.n == 0 && t.sealDue && t.writing == nil {
		t.seal()
	}
	t.sendOutputs(false)
	return n
}

// goOn runs what is to run of an unfinished record.
func (t *Task) goOn(h *held) {
	if h.in.join >= 0 {
		t.setJoined(h.in, &h.record)
		t.release(h, h.record.Timestamp)
		return
	}
	time, err := t.rerun(h)
	switch {
	case err != nil:
		t.heldFailed(h, err)
	case t.rec.deferred != nil:
		d := t.rec.deferred
		t.rec.void()
		h.wait(d, time)
		t.streamTime = max(t.streamTime, time)
	default:
		t.release(h, time)
	}
}

// rerun runs the function given to Finish, or the callback.
func (t *Task) rerun(h *held) (time int64, err error) {
	switch {
	case h.err != nil:
		return h.time, h.err
	case !h.called:
		return t.run(h.in, &h.record)
	}
	t.rec.begin(h.in, &h.record, h.time)
	if h.finish != nil {
		if err := t.call(h.finish); err != nil {
			t.rec.void()
			return h.time, err
		}
	}
	if t.rec.deferred == nil {
		t.rec.keep()
		t.count.bytes += int64(len(h.record.Key) + len(h.record.Value))
	}
	return h.time, nil
}

// heldFailed decides what becomes of an unfinished record that failed.
func (t *Task) heldFailed(h *held, err error) {
	h.called, h.finish, h.err = false, nil, nil
	switch what, wait := t.judge(failure{in: h.in, record: &h.record, tries: h.tries, err: err}); what {
	case passed:
		t.release(h, h.record.Timestamp)
	case unread:
		t.release(h, noTime)
	case repeated:
		h.tries++
		t.rest(h, wait)
	case fatal:
	}
}

// rest has a record repeated after a while. A task that is closing does not
// wait for that: the record is tried by the next owner.
func (t *Task) rest(h *held, wait time.Duration) {
	if t.state != stateRunning {
		t.loseUnfinished()
		return
	}
	if t.unfinished.resting == nil {
		t.unfinished.resting = map[*held]kafka.Timer{}
	}
	t.unfinished.resting[h] = t.env.Clock.AfterFunc(wait, func() { t.box.Put(message{kind: msgRested, held: h}) })
}

// release counts h as finished and lets the next record of its key go on.
func (t *Task) release(h *held, time int64) {
	t.counted(time)
	u := &t.unfinished
	u.n--
	u.bytes -= h.size
	l := h.line
	if l == nil {
		return
	}
	l.records[0] = nil
	if l.records = l.records[1:]; len(l.records) > 0 {
		u.ready = append(u.ready, l.records[0])
		return
	}
	delete(u.lines, l.key)
}

// loseUnfinished gives up what is not finished, and with it the active epoch,
// whose positions have moved past it: it comes again, to whoever has the task
// next. The count stays, so that nothing is sealed.
func (t *Task) loseUnfinished() {
	u := &t.unfinished
	if u.n == 0 {
		return
	}
	for _, timer := range u.resting {
		timer.Stop()
	}
	u.lines, u.ready, u.resting, u.lost = nil, nil, nil, true
}
