package task

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// ErrVisitAborted says that a visit ended before it had seen every key: a
// task was lost, or the processor stopped.
var ErrVisitAborted = errors.New("visit aborted")

// visitKeys is how many keys a visit takes before inputs get their turn.
const visitKeys = 256

// Visit runs a visitor over the keys that the group table of some tasks
// holds. It ends when everything it did is committed.
type Visit struct {
	Visitor int // index of Graph.Visitors
	Arg     any

	mu        sync.Mutex
	left      int   // tasks that have not finished
	n         int64 // keys
	err       error
	cancelled bool // guarded by mu
	ended     func(n int64, err error)

	place map[*Task]*visitPlace // guarded by mu; entries owned by their task
}

// visitPlace is how far one task is.
type visitPlace struct {
	begun bool
	after []byte // the last key visited
	keys  [][]byte
	done  bool
	epoch uint64 // that has the last effects
}

// NewVisit returns a visit of tasks, which calls ended once, from any
// goroutine, with the number of keys visited.
func NewVisit(visitor int, arg any, tasks []*Task, ended func(int64, error)) *Visit {
	v := &Visit{Visitor: visitor, Arg: arg, left: len(tasks), ended: ended, place: map[*Task]*visitPlace{}}
	for _, t := range tasks {
		v.place[t] = &visitPlace{}
	}
	return v
}

// Cancel ends the visit as soon as its tasks notice, and returns the count so
// far. It may be called from any goroutine.
func (v *Visit) Cancel() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cancelled = true
	return v.n
}

// Visit runs v on the task, between its records.
func (t *Task) Visit(v *Visit) {
	if !t.box.Put(message{kind: msgVisit, visit: v}) {
		v.finish(ErrVisitAborted)
	}
}

// finish counts one task out.
func (v *Visit) finish(err error) {
	v.mu.Lock()
	if v.err == nil {
		v.err = err
	}
	v.left--
	last, n, err := v.left == 0, v.n, v.err
	v.mu.Unlock()
	if last {
		v.ended(n, err)
	}
}

func (t *Task) beginVisit(v *Visit) {
	if t.state > stateRunning || t.failed != nil {
		v.finish(ErrVisitAborted)
		return
	}
	t.visits = append(t.visits, v)
}

func (t *Task) abortVisits() {
	err := ErrVisitAborted
	if t.failed != nil {
		err = fmt.Errorf("%w: %w", ErrVisitAborted, t.failed)
	}
	for _, v := range append(t.visits, t.visited...) {
		v.finish(err)
	}
	t.visits, t.visited = nil, nil
}

// endVisits ends those whose last effects are committed.
func (t *Task) endVisits(epoch uint64) {
	keep := t.visited[:0]
	for _, v := range t.visited {
		if v.place[t].epoch <= epoch {
			v.finish(nil)
		} else {
			keep = append(keep, v)
		}
	}
	t.visited = keep
}

// visitSome visits the next keys of the first visit, and reports how many.
func (t *Task) visitSome() int {
	v := t.visits[0]
	p := v.place[t]
	if len(p.keys) == 0 {
		t.nextKeys(p)
	}
	v.mu.Lock()
	cancelled := v.cancelled
	v.mu.Unlock()
	if cancelled {
		t.visits = t.visits[1:]
		v.finish(ErrVisitAborted)
		return 1
	}
	n := 0
	for len(p.keys) > 0 && t.mayProcess() && !t.hurry.Load() {
		if !t.visitKey(v, p.keys[0]) {
			break
		}
		p.after, p.keys = p.keys[0], p.keys[1:]
		n++
	}
	v.mu.Lock()
	v.n += int64(n)
	v.mu.Unlock()
	t.inputsTurn = len(p.keys) == 0
	if len(p.keys) == 0 && p.done {
		t.visits = t.visits[1:]
		p.epoch = t.active.epoch.number
		if !t.active.moved && t.writing == nil {
			v.finish(nil)
			return n + 1
		}
		t.moved()
		t.visited = append(t.visited, v)
	}
	return n + 1
}

// nextKeys reads the keys after the last one visited.
func (t *Task) nextKeys(p *visitPlace) {
	rng := storage.Range{}
	if p.begun {
		rng.From = append(append([]byte{}, p.after...), 0)
	}
	p.begun = true
	for row, err := range t.stores[0].table.Scan(rng) {
		if err != nil {
			t.fail(&StoreError{Store: t.stores[0].name(), Err: err})
			return
		}
		p.keys = append(p.keys, append([]byte{}, row.Key...))
		if len(p.keys) == visitKeys {
			return
		}
	}
	p.done = true
}

// visitKey runs the visitor for one key. A failure ends the processor.
func (t *Task) visitKey(v *Visit, key []byte) bool {
	r := &kafka.Record{Key: key, Offset: -1, Timestamp: t.env.Clock.Now().UnixMilli()}
	t.rec.begin(nil, r, r.Timestamp)
	t.rec.arg = v.Arg
	if err := t.call(t.env.Visitors[v.Visitor]); err != nil {
		t.rec.void()
		t.fail(fmt.Errorf("visitor %q at key %s: %w", t.env.Graph.Visitors[v.Visitor], kafka.QuoteKey(key), err))
		return false
	}
	t.rec.keep()
	t.moved()
	t.count.visited++
	return true
}
