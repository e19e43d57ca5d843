package processor

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
)

// Every runs fn once an interval in each partition. In stream time it runs
// first as soon as there is time, after the first record; by the wall clock an
// interval after the partition has begun. From then on it keeps to that beat:
// what was missed, because time made a jump or nobody ran, is made up for by
// one call. When it is due next is part of the state.
//
// The context has no key. fn is given the time of its clock. An error ends the
// processor, or skips the call, as OnError says for the process phase.
func Every(name string, interval time.Duration, c Clock, fn func(ctx *Context, now time.Time) error) Edge {
	return edgeFunc(func(d *declaration) error {
		switch {
		case name == "":
			return fmt.Errorf("every: no name")
		case interval < time.Millisecond || interval%time.Millisecond != 0:
			return fmt.Errorf("every %q: interval %v, want whole milliseconds, more than 0", name, interval)
		case c != StreamTime && c != WallClock:
			return fmt.Errorf("every %q: clock %d", name, c)
		case fn == nil:
			return fmt.Errorf("every %q: no callback", name)
		}
		p, ok := d.periodic, d.periodic != nil
		if !ok {
			p = &periodic{}
			d.periodic = p
			p.slot = d.store(graph.Store{Name: periodicStore, Changelog: reka.ChangelogTopic(d.graph.Group, periodicStore), Timelines: []byte{lineStream, lineWall}, Of: "periodic calls"})
			d.begin = append(d.begin, p.begin)
		}
		for _, e := range p.all {
			if e.name == name {
				return fmt.Errorf("every %q is declared twice", name)
			}
		}
		if !p.has(c) {
			d.wait(c, &task.Timed{Name: periodicStore, Store: p.slot, Lines: []task.Line{{Prefix: beat(c)}}, Chunk: 1, Run: p.run, Skip: p.skip})
		}
		p.all = append(p.all, every{name, interval.Milliseconds(), c, fn})
		d.graph.Timers = append(d.graph.Timers, graph.Timer{Name: name, Clock: c.String(), Interval: interval.Milliseconds()})
		return nil
	})
}

// Rows of periodic calls have the keys
//
//	stream ‖ time ‖ name   due next in stream time; 0: as soon as there is any
//	wall ‖ time ‖ name     due next by the wall clock
//	name ‖ name            the time in the other row
const (
	periodicStore = "periodic"
	lineStream    = 1
	lineWall      = 2
	rowNextOf     = 3
)

func beat(c Clock) byte {
	if c == WallClock {
		return lineWall
	}
	return lineStream
}

// periodic are the periodic calls of a graph.
type periodic struct {
	slot int
	all  []every
}

type every struct {
	name     string
	interval int64 // milliseconds
	clock    Clock
	fn       func(*Context, time.Time) error
}

func (p *periodic) has(c Clock) bool {
	for _, e := range p.all {
		if e.clock == c {
			return true
		}
	}
	return false
}

// begin sets what is not set yet.
func (p *periodic) begin(r *task.Record) error {
	for i := range p.all {
		e := &p.all[i]
		now, next := r.StreamTime(), int64(0)
		if e.clock == WallClock {
			now, next = r.Time(), r.Time()+e.interval
		}
		was, ok := r.Get(p.slot, append([]byte{rowNextOf}, e.name...))
		if ok && len(was) == 8 {
			// One that is further ahead than an interval was set for a longer
			// one, or by a clock that was wrong.
			at := int64(binary.BigEndian.Uint64(was))
			if at <= max(0, now)+e.interval || at == maxTime {
				continue
			}
			r.Set(p.slot, append(append([]byte{beat(e.clock)}, was...), e.name...), nil)
			next = max(0, now) + e.interval
		}
		p.set(r, e, next)
	}
	return nil
}

func (p *periodic) set(r *task.Record, e *every, next int64) {
	at := binary.BigEndian.AppendUint64(nil, uint64(next))
	r.Set(p.slot, append(append([]byte{beat(e.clock)}, at...), e.name...), []byte{})
	r.Set(p.slot, append([]byte{rowNextOf}, e.name...), at)
}

// next moves a call on to its next beat. It returns nil if nobody declares it
// any more.
func (p *periodic) next(r *task.Record, due *task.Entry) *every {
	r.Set(p.slot, due.Key, nil)
	name := string(due.Key[timerHead:])
	for i := range p.all {
		e := &p.all[i]
		if e.name != name || beat(e.clock) != due.Key[0] {
			continue
		}
		now, next := r.Time(), r.Time()+e.interval
		if due.Time > 0 {
			next = due.Time + ((now-due.Time)/e.interval+1)*e.interval
		}
		if next < now {
			next = maxTime // the end of time: never
		}
		p.set(r, e, next)
		return e
	}
	r.Set(p.slot, append([]byte{rowNextOf}, name...), nil)
	return nil
}

func (p *periodic) run(r *task.Record, due []task.Entry) error {
	e := p.next(r, &due[0])
	if e == nil {
		return nil
	}
	return e.fn(contextOf(r), time.UnixMilli(r.Time()))
}

func (p *periodic) skip(r *task.Record, due []task.Entry) error {
	p.next(r, &due[0])
	return nil
}
