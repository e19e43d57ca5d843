package processor

import (
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/storage"
)

// Clock says which time something waits for.
type Clock int8

// Clocks.
const (
	// StreamTime is the highest timestamp of a partition's records. It moves
	// with data only (see WithIdleTime), and is the same on every run.
	StreamTime Clock = iota
	// WallClock is the time of the machine. It moves without data, too.
	WallClock
)

// String returns the clock's name.
func (c Clock) String() string {
	if c == WallClock {
		return "wall clock"
	}
	return "stream time"
}

// Timers is the handle of a set of timers, one a key. A timer is part of the
// state: it survives crashes and moves, and what its callback does takes effect
// together with its end.
//
// Timers in stream time run after the record that has brought the time, in
// order of their times, then of their keys; one that is set to a time in the
// past runs after the record at hand. Those of the wall clock run when there is
// no data, too.
type Timers struct {
	timers string
	clock  Clock
	binding
}

// Timer declares a set of timers. The declaration is complete with its
// callback, see On. Its changes go to reka.ChangelogTopic(group, name).
func Timer(name string, c Clock) *Timers { return &Timers{timers: name, clock: c} }

// Rows of timers have the keys
//
//	due ‖ time ‖ key    waits
//	key ‖ key           the time that the key's timer is set to
const (
	lineDue    = 1
	rowTimerOf = 2
)

// On binds the callback: it runs at the key of a timer and the time that this
// was set to. An error ends the processor, or skips the timer, as OnError says
// for the process phase.
func (t *Timers) On(fn func(ctx *Context, at time.Time) error) Edge {
	return edgeFunc(func(d *declaration) error {
		if fn == nil {
			return fmt.Errorf("%s: no callback", t.what())
		}
		if err := t.declare(d); err != nil {
			return err
		}
		if d.bound[t] {
			return fmt.Errorf("%s: On is declared twice", t.what())
		}
		d.bound[t] = true
		slot := d.slots[t]
		timed := &task.Timed{
			Name: t.timers, Store: slot, Lines: []task.Line{{Prefix: lineDue}}, Chunk: 1,
			Run: func(r *task.Record, due []task.Entry) error {
				endTimer(r, slot, &due[0])
				ctx := contextOf(r)
				r.Stand(due[0].Key[timerHead:], due[0].Time)
				ctx.ringing = due[0].Key
				defer func() { ctx.ringing = nil }()
				return fn(ctx, time.UnixMilli(due[0].Time))
			},
			Skip: func(r *task.Record, due []task.Entry) error {
				endTimer(r, slot, &due[0])
				return nil
			},
		}
		d.wait(t.clock, timed)
		return nil
	})
}

// timerHead is what stands before the key in a timer's row.
const timerHead = 1 + 8

func endTimer(r *task.Record, slot int, e *task.Entry) {
	r.Set(slot, e.Key, nil)
	r.Set(slot, append([]byte{rowTimerOf}, e.Key[timerHead:]...), nil)
}

func (t *Timers) what() string {
	if t == nil {
		return "timer"
	}
	return fmt.Sprintf("timer %q", t.timers)
}

func (t *Timers) declare(d *declaration) error {
	switch {
	case t == nil:
		return fmt.Errorf("timer: nil handle")
	case t.timers == "":
		return fmt.Errorf("timer: no name")
	case t.clock != StreamTime && t.clock != WallClock:
		return fmt.Errorf("%s: clock %d", t.what(), t.clock)
	}
	if d.seen[t] {
		return nil
	}
	d.seen[t] = true
	d.unbound(t, t.what())
	d.slots[t] = d.store(graph.Store{Name: t.timers, Changelog: reka.ChangelogTopic(d.graph.Group, t.timers), Timelines: []byte{lineDue}, Of: "timers", Details: t.clock.String()})
	d.graph.Timers = append(d.graph.Timers, graph.Timer{Name: t.timers, Clock: t.clock.String()})
	return nil
}

// Set sets the timer of the record's key, to the millisecond, instead of the
// time that it was set to. In a timer's own callback it is set to a later time
// than the one that it runs for.
func (t *Timers) Set(ctx *Context, at time.Time) { t.set(ctx, ctx.rec.Key(), at) }

// SetKey is Set for another key. Its callback runs in the partition of the
// record at hand.
func (t *Timers) SetKey(ctx *Context, key string, at time.Time) { t.set(ctx, []byte(key), at) }

// Cancel takes the timer of the record's key off, if there is one.
func (t *Timers) Cancel(ctx *Context) { t.cancel(ctx, ctx.rec.Key()) }

// CancelKey is Cancel for another key.
func (t *Timers) CancelKey(ctx *Context, key string) { t.cancel(ctx, []byte(key)) }

// Get returns the time that the timer of a key is set to, and whether it is.
func (t *Timers) Get(ctx *Context, key string) (at time.Time, ok bool) {
	slot, ok := t.slot(ctx, t, t.what())
	if !ok {
		return at, false
	}
	raw, ok := ctx.rec.Get(slot, append([]byte{rowTimerOf}, key...))
	if !ok || len(raw) != 8 {
		return at, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(raw))), true
}

// All yields the timers of this partition in order of their times, then of
// their keys. They must not be changed from within the loop.
func (t *Timers) All(ctx *Context) iter.Seq2[string, time.Time] {
	return func(yield func(string, time.Time) bool) {
		slot, ok := t.slot(ctx, t, t.what())
		if !ok {
			return
		}
		for row, err := range ctx.rec.Scan(slot, storage.Prefix([]byte{lineDue})) {
			if err != nil || !yield(string(row.Key[timerHead:]), time.UnixMilli(int64(binary.BigEndian.Uint64(row.Key[1:])))) {
				return
			}
		}
	}
}

func (t *Timers) set(ctx *Context, key []byte, at time.Time) {
	slot, ok := t.slot(ctx, t, t.what())
	if !ok {
		return
	}
	t.cancel(ctx, key)
	ms := max(0, at.UnixMilli())
	if at.Unix() > maxTime/1000 {
		ms = maxTime - 1
	}
	if ring := ctx.ringing; ring != nil && string(ring[timerHead:]) == string(key) {
		ms = max(ms, int64(binary.BigEndian.Uint64(ring[1:]))+1)
	}
	due := binary.BigEndian.AppendUint64([]byte{lineDue}, uint64(ms))
	ctx.rec.Set(slot, append(due, key...), []byte{})
	ctx.rec.Set(slot, append([]byte{rowTimerOf}, key...), binary.BigEndian.AppendUint64(nil, uint64(ms)))
}

func (t *Timers) cancel(ctx *Context, key []byte) {
	slot, ok := t.slot(ctx, t, t.what())
	if !ok {
		return
	}
	of := append([]byte{rowTimerOf}, key...)
	raw, ok := ctx.rec.Get(slot, of)
	if !ok || len(raw) != 8 {
		return
	}
	due := append([]byte{lineDue}, raw...)
	ctx.rec.Set(slot, append(due, key...), nil)
	ctx.rec.Set(slot, of, nil)
}
