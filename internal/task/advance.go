package task

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/kafka"
)

// walk is the way through the steps around a record. It can stop between two
// runs, for a seal or a message, and goes on where it was. Owned by the task.
//
//	resting ── a record brings time ──▶ before ── done ──▶ resting: the record runs
//	resting ── a record is finished ──▶ after ── done ──▶ resting
//
// While it is under way no record is started. What it is at is committed with
// the stream time (see Mark), and so is the stream time that clocks show which
// have not been raised yet: a restart takes the same steps, and who stands
// behind what these release sees the same time.
type walk struct {
	phase phase
	at    int // next step
}

// undo is how time was before the record at hand, which released nothing.
type undo struct {
	ok                     bool
	streamTime, recordTime int64
}

// phase is which steps are being taken.
type phase int8

const (
	resting phase = iota
	before        // an advance releases what is due, upstream first; the record has not run
	after         // the record has run

	// between is of marks only: time has been raised, and the steps after the
	// record are still to come.
	between
)

// timeless is the time of a clock that has not been raised.
const timeless = -1

// makeClocks sets the clocks to what they showed at the last commit.
func (t *Task) makeClocks() {
	t.timed = len(t.env.Before)+len(t.env.After)+len(t.env.Wall)+len(t.env.Begin) > 0
	t.clocks = make([]int64, len(t.env.Holds))
	m := t.start.Mark
	t.recordTime, t.afterTime, t.afterToo = m.StreamTime, m.StreamTime, m.alone
	early := m.StreamTime
	if m.phase != resting {
		t.afterTime = m.from
	}
	switch m.phase {
	case before:
		t.walk.phase, early = before, m.from
	case after:
		t.walk.phase = after
	default:
	}
	t.setClocks(early)
}

// setClocks sets the clocks that are raised before a record to a stream time,
// those that are raised after it to the one when that was done last.
func (t *Task) setClocks(early int64) {
	for i := range t.clocks {
		t.clocks[i] = t.held(i, early)
	}
	for i := range t.env.After {
		if c := t.env.After[i].Raise; c >= 0 {
			t.clocks[c] = t.held(c, t.afterTime)
		}
	}
}

// stand tells a mark which steps are being taken.
func (t *Task) stand(m *Mark) {
	if m.phase = t.walk.phase; m.phase == resting && t.timed && t.afterTime != t.streamTime {
		m.phase = between
	}
	if m.phase != resting {
		m.from, m.alone = t.afterTime, t.afterToo
	}
}

// held is what clock i shows at a stream time.
func (t *Task) held(i int, time int64) int64 {
	if time < 0 {
		return timeless
	}
	return max(timeless, time-t.env.Holds[i])
}

// begins is called with the head of an input: if it brings time, what is due
// before it is released. It reports false if the record must wait, for the
// rest of that or because the task has failed.
func (t *Task) begins(in *input, r *kafka.Record) bool {
	t.undo.ok = false
	time := r.Timestamp
	if time < 0 {
		if in.slot < 0 || !t.env.Graph.Inputs[in.slot].WallTime {
			return true // fails, or is a row without a time
		}
		time = t.env.Clock.Now().UnixMilli()
	}
	if time <= t.streamTime {
		return true
	}
	if t.tooFar(in, time) {
		return true
	}
	was := t.streamTime
	due, err := t.anythingDue(time)
	switch {
	case err != nil:
		t.fail(err)
		return false
	case due && !t.decodable(in, r):
		return true // its failure says nothing about time
	case !due:
		t.undo = undo{ok: true, streamTime: was, recordTime: t.recordTime}
	}
	t.setTime(time)
	t.walk = walk{phase: before}
	return t.walkOn()
}

// setTime raises the stream time. It goes into the next commit.
func (t *Task) setTime(time int64) {
	t.streamTime = time
	if t.idle.moving {
		return
	}
	t.recordTime = time
}

// takeBack takes back the time of a record that could not be decoded, which
// has released nothing.
func (t *Task) takeBack() {
	if !t.undo.ok {
		return
	}
	t.streamTime, t.recordTime = t.undo.streamTime, t.undo.recordTime
	t.setClocks(t.streamTime)
	t.undo.ok = false
}

// decodable reports whether the record's value can be decoded.
func (t *Task) decodable(in *input, r *kafka.Record) bool {
	if in.slot < 0 || in.slot >= len(t.env.Decodes) || t.env.Decodes[in.slot] == nil || r.Value == nil {
		return true
	}
	return t.env.Decodes[in.slot](r.Value) == nil
}

// tooFar reports whether an input refuses a time because it is too far ahead
// of the clock.
func (t *Task) tooFar(in *input, time int64) bool {
	if in.slot < 0 || t.env.Graph.Inputs[in.slot].MaxFuture == 0 {
		return false
	}
	return time > t.env.Clock.Now().UnixMilli()+t.env.Graph.Inputs[in.slot].MaxFuture
}

// anythingDue reports whether an advance to time would run something before
// the record.
func (t *Task) anythingDue(time int64) (bool, error) {
	for i := range t.env.Before {
		s := t.env.Before[i].Run
		if s == nil {
			continue
		}
		if due, err := t.anyDue(s, t.held(s.Clock, time)); due || err != nil {
			return due, err
		}
	}
	return false, nil
}

// ended takes the steps after a record. It reports false if they are not
// done yet.
func (t *Task) ended() bool {
	t.walk = walk{phase: after}
	return t.walkOn()
}

// walkOn takes steps until there are none left, or it must stop for now: then
// it reports false.
func (t *Task) walkOn() bool {
	steps := t.env.Before
	if t.walk.phase == after {
		steps = t.env.After
	}
	if len(t.clocks) > 0 {
		t.clocks[0] = max(t.clocks[0], t.streamTime) // has no hold, and no step
	}
	for ; t.walk.at < len(steps); t.walk.at++ {
		s := &steps[t.walk.at]
		if s.Raise >= 0 {
			t.clocks[s.Raise] = max(t.clocks[s.Raise], t.held(s.Raise, t.streamTime))
		}
		if s.Run != nil && !t.runDue(s.Run, t.clockOf(s.Run)) {
			return false
		}
	}
	if t.walk.phase == after {
		t.afterTime = t.streamTime
	}
	t.walk = walk{}
	return true
}

func (t *Task) clockOf(s *Timed) int64 {
	if s.Clock == WallClock {
		return t.env.Clock.Now().UnixMilli()
	}
	return t.clocks[s.Clock]
}

// anyDue reports whether an entry of a Timed is due.
func (t *Task) anyDue(s *Timed, now int64) (bool, error) {
	for i := range s.Lines {
		l := &s.Lines[i]
		key, err := t.stores[s.Store].line(l.Prefix).next()
		if err != nil {
			return false, &StoreError{Store: t.stores[s.Store].name(), Err: err}
		}
		if key != nil && isDue(timeOfKey(key), l.Lag, now) {
			return true, nil
		}
	}
	return false, nil
}

// isDue says: time + lag ≤ now, without overflow: neither lag nor now is
// negative, but for a clock without time.
func isDue(time, lag, now int64) bool { return time <= now-lag }

// runDue runs what is due of s. It reports false if it stops before all is
// done: for room, for a message, or because the task has failed.
func (t *Task) runDue(s *Timed, now int64) bool {
	chunk := s.Chunk
	if chunk <= 0 {
		chunk = 64
	}
	for {
		entries, err := t.takeDue(s, now, chunk)
		if err != nil {
			t.fail(err)
			return false
		}
		if len(entries) == 0 {
			return true
		}
		if !t.runEntries(s, entries, now) {
			return false
		}
		if s.Lazy {
			t.leftover = true
			return true
		}
		if t.active.bytes >= t.env.EpochBytes && !t.makeRoom() || t.hurry.Load() || t.dropped.Load() {
			return false
		}
	}
}

// runEntries runs s for entries, as one record's effects.
func (t *Task) runEntries(s *Timed, entries []Entry, now int64) bool {
	t.timedRecord = kafka.Record{Offset: -1, Timestamp: max(0, now)}
	t.rec.begin(nil, &t.timedRecord, max(0, now))
	head := entries[0]
	err := t.call(func(r *Record) error { return s.Run(r, entries) })
	if err != nil && t.maySkip(s, err) {
		t.rec.void()
		t.note("skipped what was due", fmt.Errorf("operator %s, time %d, key %s: %w", s.Name, head.Time, kafka.QuoteKey(head.Key[timeAt+timeLen:]), err))
		t.count.skipped++
		t.rec.begin(nil, &t.timedRecord, max(0, now))
		err = t.call(func(r *Record) error { return s.Skip(r, entries) })
	}
	if err != nil {
		t.rec.void()
		t.fail(fmt.Errorf("operator %s: %w", s.Name, err))
		return false
	}
	t.rec.keep()
	t.moved()
	k, err := t.stores[s.Store].line(s.Lines[head.Line].Prefix).next()
	switch {
	case err != nil:
		t.fail(&StoreError{Store: t.stores[s.Store].name(), Err: err})
	case bytes.Equal(k, head.Key):
		t.fail(fmt.Errorf("operator %s has left what was due in place", s.Name))
	default:
		return true
	}
	return false
}

// maySkip reports whether the error policy lets what has failed go.
func (t *Task) maySkip(s *Timed, err error) bool {
	return s.Skip != nil && t.forgives(err)
}

// forgives reports whether the error policy lets something fail that is no
// record: skipping is all that can become of it, there is nothing to be
// repeated or sent anywhere.
func (t *Task) forgives(err error) bool {
	if _, ok := errors.AsType[*StoreError](err); ok || errors.Is(err, ErrInactive) {
		return false
	}
	if steer, ok := errors.AsType[*SteerError](err); ok && !steer.Retry {
		return steer.Action != graph.Fail
	}
	return t.env.Graph.OnProcess.Action != graph.Fail
}

// begin runs what goes before the first record.
func (t *Task) begin() bool {
	if t.begun {
		return true
	}
	t.begun = true
	for _, f := range t.env.Begin {
		now := t.env.Clock.Now().UnixMilli()
		t.timedRecord = kafka.Record{Offset: -1, Timestamp: now}
		t.rec.begin(nil, &t.timedRecord, now)
		if err := t.call(f); err != nil {
			t.rec.void()
			t.fail(err)
			return false
		}
		if len(t.rec.staged) > 0 {
			t.moved()
		}
		t.rec.keep()
	}
	return true
}

// takeDue returns the next entries that are due, at most n. They stay in
// their timelines. The result is valid until the next call.
func (t *Task) takeDue(s *Timed, now int64, n int) ([]Entry, error) {
	t.due = t.due[:0]
	st := t.stores[s.Store]
	places := make([]place, len(s.Lines)) // next of each line
	for i := range s.Lines {
		if _, err := st.line(s.Lines[i].Prefix).next(); err != nil {
			return nil, &StoreError{Store: st.name(), Err: err}
		}
	}
	for len(t.due) < n {
		best, bestTime := -1, int64(math.MaxInt64)
		for i := range s.Lines {
			l := st.line(s.Lines[i].Prefix)
			key := l.keys.at(places[i])
			if key == nil {
				if l.horizon != nil {
					return t.withValues(st) // more may follow: what is here first
				}
				continue
			}
			if at := timeOfKey(key); isDue(at, s.Lines[i].Lag, now) && at < bestTime {
				best, bestTime = i, at
			}
		}
		if best < 0 {
			break
		}
		l := st.line(s.Lines[best].Prefix)
		t.due = append(t.due, Entry{Line: best, Time: bestTime, Key: l.keys.at(places[best])})
		places[best] = l.keys.after(places[best])
	}
	return t.withValues(st)
}

// withValues reads the rows of the entries in t.due.
func (t *Task) withValues(st *store) ([]Entry, error) {
	t.dueBytes = t.dueBytes[:0]
	for i := range t.due {
		e := &t.due[i]
		value, time, ok, err := st.table.Get(e.Key)
		if err != nil {
			return nil, &StoreError{Store: st.name(), Err: err}
		}
		if !ok {
			return nil, &StoreError{Store: st.name(), Err: fmt.Errorf("the row at time %d that was to be waited for is gone", e.Time)}
		}
		e.RowTime = time
		from := len(t.dueBytes)
		t.dueBytes = append(t.dueBytes, value...)
		e.Value = t.dueBytes[from:len(t.dueBytes):len(t.dueBytes)]
	}
	return t.due, nil
}

// lateWork does a little of what may wait, while there is no record. It
// reports whether there was any.
func (t *Task) lateWork() bool {
	if !t.leftover || t.walk.phase != resting {
		return false
	}
	t.leftover = false
	for i := range t.env.After {
		if s := t.env.After[i].Run; s != nil && s.Lazy && !t.runDue(s, t.clockOf(s)) {
			return true
		}
	}
	return true
}
