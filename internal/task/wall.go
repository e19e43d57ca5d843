package task

import (
	"fmt"
	"time"

	"github.com/rekastream/reka/kafka"
)

// wall is what waits for the wall clock: one timer for the first of all.
// Owned by the task.
type wall struct {
	timer kafka.Timer
	at    time.Time // of timer
	due   bool      // the timer has run out
}

// watchWall sees to it that the task wakes when something is due.
func (t *Task) watchWall() {
	if len(t.env.Wall) == 0 || t.state != stateRunning || t.failed != nil || t.wall.due {
		return
	}
	first := int64(-1)
	for _, s := range t.env.Wall {
		for _, l := range s.Lines {
			key, err := t.stores[s.Store].line(l.Prefix).next()
			if err != nil {
				t.fail(&StoreError{Store: t.stores[s.Store].name(), Err: err})
				return
			}
			if key != nil && (first < 0 || timeOfKey(key)+l.Lag < first) {
				first = timeOfKey(key) + l.Lag
			}
		}
	}
	if first < 0 {
		return
	}
	at := time.UnixMilli(first)
	if t.wall.timer != nil {
		if !at.Before(t.wall.at) {
			return
		}
		t.wall.timer.Stop()
	}
	t.wall.at = at
	t.wall.timer = t.env.Clock.AfterFunc(max(0, at.Sub(t.env.Clock.Now())), func() { t.box.Put(message{kind: msgWall}) })
}

// keepTime finishes the steps under way and runs what the wall clock has made
// due. It reports false if it is not done.
func (t *Task) keepTime() bool {
	if t.walk.phase == resting && !t.wall.due && !t.afterToo && t.begun {
		return true
	}
	if !t.mayProcess() || !t.mayWrite() || !t.begin() {
		return false
	}
	if t.walk.phase != resting && !t.walkOn() {
		return false
	}
	for _, s := range t.env.Wall {
		if t.wall.due && !t.runDue(s, t.env.Clock.Now().UnixMilli()) {
			return false
		}
	}
	t.afterToo = t.afterToo || t.wall.due
	t.wall.due = false
	if !t.afterToo {
		return true
	}
	t.afterToo = false
	return t.ended()
}

// refuseFuture passes over a record whose time is too far ahead.
func (t *Task) refuseFuture(in *input, r *kafka.Record) {
	t.count.future++
	t.note("record refused: its timestamp is too far in the future (MaxFuture)", &kafka.Error{
		TopicPartition: in.TopicPartition, Offset: r.Offset, Key: r.Key, Err: fmt.Errorf("timestamp %v", time.UnixMilli(r.Timestamp).UTC()),
	})
}
