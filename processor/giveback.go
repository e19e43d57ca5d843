package processor

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

// Bounds of what leaving the group may take after all is written, or after the
// stop timeout or before the first assignment, when it is most likely the
// brokers that do not answer.
const (
	leaveTimeout     = 5 * time.Second
	lateLeaveTimeout = time.Second
)

// giveBack ends everything that prepare and the loop have started, in the
// order in which it depends on each other.
func (s *session) giveBack() {
	for _, t := range []kafka.Timer{s.stopTimer, s.gather, s.overdue, s.awaiting, s.watch.timer, s.guard.timer} {
		if t != nil {
			t.Stop()
		}
	}
	stuck := s.abandon()
	s.cancel()
	if s.lane != nil {
		s.lane.Close()
	}
	s.closeConnections()
	for _, sl := range stuck {
		s.awaitStuck(sl)
	}
	for _, w := range []*task.Worker{s.disk, s.errands} {
		if w != nil {
			w.Close()
		}
	}
	for s.helpers > 0 {
		ended, _ := s.ended.Take()
		s.helpers -= len(ended)
	}
	s.box.Close()
	if s.store != nil {
		s.closeQuietly("store", s.store.Close)
	}
	s.release()
}

// abandon drops the tasks that were not drained in time, and returns them.
func (s *session) abandon() (stuck []*slot) {
	if !s.timedOut {
		return nil
	}
	for _, sl := range s.slots {
		if sl.task != nil {
			sl.task.Close(true)
			stuck = append(stuck, sl)
		}
	}
	return stuck
}

// closeConnections leaves the group and ends everything that talks to
// brokers.
func (s *session) closeConnections() {
	if s.member != nil {
		s.mu.Lock()
		known := s.asked
		s.mu.Unlock()
		if known && !s.p.cfg.stay {
			s.leave()
		}
		s.closeQuietly("member", s.member.Close)
	}
	for _, f := range []kafka.Fetcher{s.fetcher, s.restorer} {
		if f != nil {
			s.closeQuietly("fetcher", f.Close)
		}
	}
	if s.producer != nil {
		s.closeQuietly("producer", s.producer.Close)
	}
	if s.txn != nil {
		s.closeQuietly("transactor", s.txn.Close)
	}
}

// leave leaves the group, so that others need not wait for the session's end.
func (s *session) leave() {
	patience := leaveTimeout
	if s.timedOut || !s.joined {
		patience = lateLeaveTimeout
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	late := s.clock.AfterFunc(patience, cancel)
	defer late.Stop()
	if err := s.member.Leave(ctx); err != nil && !errors.Is(err, kafka.ErrClosed) {
		s.p.log.Warn("leaving the group failed", zap.String("group", s.p.graph.group), zap.Error(err))
	}
}

// awaitStuck gives a task that did not end in time a last moment: everything
// that it could wait for has ended, so only a callback can hold it.
func (s *session) awaitStuck(sl *slot) {
	for range 100 {
		select {
		case <-sl.task.Done():
			return
		default:
		}
		if err := s.clock.Sleep(context.Background(), 10*time.Millisecond); err != nil {
			return // the driver has ended, and time with it
		}
	}
	s.p.log.Error("a callback does not return; its goroutine is left behind", sl.fields()...)
}

func (s *session) closeQuietly(what string, f func() error) {
	if err := f(); err != nil && !errors.Is(err, kafka.ErrClosed) {
		s.p.log.Warn("closing the "+what+" failed", zap.String("group", s.p.graph.group), zap.Error(err))
	}
}
