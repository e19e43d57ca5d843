package task

import (
	"time"

	"github.com/rekastream/reka/kafka"
)

// idle is how stream time follows the wall clock while there is no data: off
// unless Settings.IdleTime says so. Owned by the task.
//
// A tick looks whether every input is at its end, and has been for the idle
// time; then the brokers are asked whether it is so, and if it is, and no
// record has come meanwhile, time moves. So a partition that cannot be read
// for a while does not count as one without data.
type idle struct {
	timer  kafka.Timer
	since  time.Time // when the task was last seen to have something to do
	base   int64     // stream time then, of records
	asking bool
	moving bool // time moves because of the clock, not of a record
	worked int64
}

// idleTicks is how many times in the idle time the task looks.
const idleTicks = 4

// minIdleTick bounds how often it does.
const minIdleTick = 50 * time.Millisecond

// watchIdle begins to look.
func (t *Task) watchIdle() {
	if t.env.IdleTime <= 0 || t.state != stateRunning {
		return
	}
	if t.idle.since.IsZero() || t.idle.worked != t.count.records {
		t.idle.since, t.idle.base, t.idle.worked = t.env.Clock.Now(), t.recordTime, t.count.records
	}
	if t.idle.timer == nil {
		t.idle.timer = t.env.Clock.AfterFunc(max(t.env.IdleTime/idleTicks, minIdleTick), func() { t.box.Put(message{kind: msgIdle}) })
	}
}

// idleTick looks whether time may follow the clock.
func (t *Task) idleTick() {
	t.idle.timer = nil
	defer t.watchIdle()
	if t.state != stateRunning || t.idle.asking || t.recordTime < 0 || !t.atEnd() || t.idle.worked != t.count.records ||
		t.env.Clock.Now().Sub(t.idle.since) < t.env.IdleTime {
		return
	}
	parts := make([]kafka.TopicPartition, 0, len(t.inputs))
	for _, in := range t.inputs {
		parts = append(parts, in.TopicPartition)
	}
	t.idle.asking = true
	t.env.Ends(parts, func(ends map[kafka.TopicPartition]int64, err error) {
		t.box.Put(message{kind: msgEnds, ends: ends, err: err})
	})
}

// atEnd reports whether nothing is here to be processed, nor known to exist.
func (t *Task) atEnd() bool {
	for _, in := range t.inputs {
		if in.head() != nil || !in.loop && in.lastStable >= 0 && in.fetched < in.lastStable {
			return false
		}
	}
	return t.walk.phase == resting
}

// endsKnown moves time if the inputs' ends say that nothing is missing.
func (t *Task) endsKnown(ends map[kafka.TopicPartition]int64, err error) {
	t.idle.asking = false
	if err != nil || t.state != stateRunning || t.idle.worked != t.count.records || !t.atEnd() {
		return
	}
	for _, in := range t.inputs {
		if end, ok := ends[in.TopicPartition]; !ok || in.position < end {
			return
		}
	}
	elapsed := t.env.Clock.Now().Sub(t.idle.since) - t.env.IdleTime
	target := t.idle.base + elapsed.Milliseconds()
	if elapsed < 0 || target <= t.streamTime || !t.mayProcess() {
		return
	}
	t.idle.moving = true
	t.setTime(target)
	t.idle.moving = false
	t.moved()
	t.walk = walk{phase: before}
	t.afterToo = true
}
