package task

import (
	"errors"
	"testing"
	"time"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/kafka"
)

// feed has a stand's task process records with these timestamps, as far as it
// can.
func (s *stand) feed(times ...int64) {
	t := s.task
	records := make([]kafka.Record, len(times))
	for i, ms := range times {
		records[i] = kafka.Record{Key: []byte("k"), Value: []byte("v"), Timestamp: ms, Offset: s.offset}
		s.offset++
	}
	t.take(t.inputs[0], kafka.NewBatch(kafka.Batch{TopicPartition: t.inputs[0].TopicPartition, Records: records, Position: s.offset, LastStable: s.offset}, nil))
	s.turn()
}

func (s *stand) turn() {
	for s.task.process() {
	}
	s.task.endTurn(false)
}

func TestRecordWithoutATimestampFailsAtItsPlace(t *testing.T) {
	s := newStand(t, noOp, 1)
	s.feed(5, -1, 1000)
	at, ok := errors.AsType[*kafka.Error](s.task.failed)
	if !ok || at.Topic != "in" || at.Partition != 0 || at.Offset != 1 || !errors.Is(s.task.failed, errNoTimestamp) {
		t.Errorf("failed with %v", s.task.failed)
	}
}

func TestRecordWithoutATimestampMayBeSkipped(t *testing.T) {
	s := newStand(t, countUp, 1)
	s.task.env.Graph.OnDecode = graph.Policy{Action: graph.Skip}
	s.feed(-1, 1000, 0)
	if s.task.failed != nil || s.task.count.skipped != 1 || s.task.count.records != 3 || s.task.streamTime != 1000 {
		t.Errorf("failed with %v, skipped %d of %d, stream time %d", s.task.failed, s.task.count.skipped, s.task.count.records, s.task.streamTime)
	}
}

func TestRecordWithoutATimestampMayHaveTheTimeOfTheClock(t *testing.T) {
	s := newStand(t, noOp, 1)
	s.task.env.Graph.Inputs[0].WallTime = true
	before := time.Now().UnixMilli()
	s.feed(-1)
	if got := s.task.streamTime; s.task.failed != nil || got < before || got > time.Now().UnixMilli() {
		t.Errorf("failed with %v, stream time %d", s.task.failed, got)
	}
}

// What cannot be decoded says nothing about time, however often it is tried.
func TestUndecodableRecordDoesNotMoveTimeByBeingTriedAgain(t *testing.T) {
	s := newStand(t, func(r *Record) error {
		if r.Time() == 500 {
			return &DecodeError{Err: errors.New("garbage")}
		}
		return nil
	}, 1)
	s.task.env.Graph.OnDecode = graph.Policy{Attempts: 2, Action: graph.Skip}
	s.task.timed = true
	s.feed(5, 500)
	for range 2 {
		if s.task.retrying == nil {
			t.Fatal("not tried again")
		}
		if s.task.streamTime != 5 {
			t.Errorf("stream time %d while it waits", s.task.streamTime)
		}
		s.task.handle(&message{kind: msgRetry})
		s.turn()
	}
	if s.task.retrying != nil || s.task.count.skipped != 1 || s.task.streamTime != 5 {
		t.Errorf("skipped %d, stream time %d", s.task.count.skipped, s.task.streamTime)
	}
	s.feed(6)
	if s.task.streamTime != 6 {
		t.Errorf("stream time %d", s.task.streamTime)
	}
}
