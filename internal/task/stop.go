package task

import (
	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
)

// close begins to close: no record is started any more. What is finished is
// sealed unless the task is dropped. Unfinished records are waited for, but
// not those that have failed and wait to be repeated.
func (t *Task) close() {
	if t.state == stateClosed {
		return
	}
	if t.state != stateClosing {
		was := t.state
		t.state = stateClosing
		t.stopReading(was)
		t.abortVisits()
		if t.retrying != nil {
			t.retrying.Stop()
			t.retrying = nil
		}
	}
	if t.dropped.Load() || len(t.unfinished.resting) > 0 {
		t.loseUnfinished()
	}
	t.advanceClose()
}

// stopReading unfollows everything and releases what waits.
func (t *Task) stopReading(was taskState) {
	if was == stateRunning {
		parts := make([]kafka.TopicPartition, 0, len(t.inputs))
		for _, in := range t.inputs {
			parts = append(parts, in.TopicPartition)
		}
		t.env.Fetcher.Unfollow(parts...)
	}
	for _, in := range t.inputs {
		in.drop()
	}
	for _, r := range t.restoring {
		if !r.done && r.replica != nil {
			t.env.Restorer.Unfollow(r.store.changelog)
		}
		r.release()
		r.done = true
	}
	for _, g := range t.gaps {
		t.env.Restorer.Unfollow(g.TopicPartition)
	}
	t.gaps = nil
}

// advanceClose takes the next step of closing that can be taken: write, tell,
// flush, give back.
func (t *Task) advanceClose() {
	if !t.written {
		if !t.dropped.Load() {
			if t.writing == nil {
				t.seal()
			}
			if t.writing != nil || t.sealDue {
				return // committed, a look at the lease, or the last unfinished record, comes back here
			}
		}
		t.written = true
		t.event(Written, nil)
		t.flush(true)
	}
	if t.flushes > 0 {
		return // flushEnded comes back here
	}
	if t.flushMore() {
		return
	}
	t.giveBack()
	t.state = stateClosed
}

// flushMore begins the flushes that had to wait for one under way.
func (t *Task) flushMore() bool {
	for _, s := range append(append([]*store(nil), t.stores...), t.joins...) {
		if s.table != nil && !s.broken && s.table.Unflushed() > 0 {
			t.beginFlush(s)
		}
	}
	return t.flushes > 0
}

func (t *Task) giveBack() {
	for _, timer := range []kafka.Timer{t.timer, t.flushTimer, t.retrying, t.leaseWait, t.idle.timer, t.wall.timer} {
		if timer != nil {
			timer.Stop()
		}
	}
	for _, s := range append(append([]*store(nil), t.stores...), t.joins...) {
		if s.table == nil {
			continue
		}
		if err := s.table.Close(); err != nil {
			t.env.Log.Warn("closing a table failed", zap.String("store", s.name()), zap.Int32("partition", t.partition), zap.Error(err))
		}
	}
}
