package stream

import (
	"strconv"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

// Headers of records that are handed to a late output.
const (
	// LateWindows lists the windows that a record missed, as "start-end" in
	// milliseconds, with commas between.
	LateWindows = "reka-late-windows"
	// LateStreamTime is the stream time that closed them, in milliseconds.
	LateStreamTime = "reka-late-stream-time"
)

// lateness counts what comes too late for an operation.
type lateness struct {
	clock *clock
	late  *counter // windows missed, or records that changed nothing
	idle  *counter // of those, the ones that only idle time has made late
}

func (n *node) lateness() lateness {
	return lateness{n.ownClock(), n.counter("late"), n.counter("late by idle time")}
}

func (l *lateness) count(x *exec, n int64) {
	x.rec.Count(l.late.index, n)
	if x.rec.Idled() {
		x.rec.Count(l.idle.index, n)
	}
}

// now returns the time that decides what is late.
func (l *lateness) now(x *exec) int64 { return x.now(l.clock) }

// lateOutput returns what writes late records of n to a topic.
func lateOutput[T any](n *node, t reka.Stream[T]) func(x *exec, e *event[T], headers ...kafka.Header) {
	to, clock := n.output(t.Name()), n.ownClock()
	return func(x *exec, e *event[T], headers ...kafka.Header) {
		value := encode(x, t.Codec(), e.value)
		if value == nil {
			return
		}
		x.rec.Emit(to.index, task.Emission{Key: e.key, Value: value, Time: e.time, Partition: -1,
			Headers: append(headers, kafka.Header{Key: LateStreamTime, Value: strconv.AppendInt(nil, x.now(clock), 10)})})
	}
}
