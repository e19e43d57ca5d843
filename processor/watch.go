package processor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
)

// Each member looks at its topics from time to time, not only the leader:
// after a leader was killed and came back, nobody acts as one.
//
//	            more partitions, and all that must be equal is
//	  ┌────────────────────────────────────────────────┐ take them: join again
//	  ▼                                                │
//	settled ──inputs differ, nothing internal──▶ uneven: go on with what there is
//	  │  ▲
//	  │  └──────────────── as it was ──────────────┐
//	  │                                            │
//	  ├──missing, or of another id──▶ doubtful ────┘
//	  │                                  │ for as long as brokers may be behind
//	  ▼                                  ▼
//	refused: an internal topic has     gone: nothing is committed any more
//	fewer partitions than the inputs
//
// Invariants:
//
//   - Growth is answered as a restart would answer it.
//   - No record of a partition is processed that a changelog or the loop does
//     not have.
//   - Of a topic that is gone nothing is committed after it was noticed: its
//     offsets would be taken for those of the next one of that name.

const (
	// watchInterval is how often a member looks at its topics.
	watchInterval = 10 * time.Second
	// watchAgain is how soon it looks again when a topic seems to be gone.
	watchAgain = 2 * time.Second
	// watchPatience is how long a topic must seem to be gone. A broker that
	// has just started, or is behind, may know less than the others.
	watchPatience = 6 * time.Second
)

// watch is what a session knows of the life of its topics. Owned by the
// session's goroutine, but for the look itself.
type watch struct {
	timer    kafka.Timer
	asking   bool      // a look is under way
	doubtful time.Time // since when a topic seems to be gone; zero: none does
	suspect  error     // ends the session after the look that is under way
	planned  int32     // partitions of the newest plan, as far as it told; 0: unknown
	uneven   bool      // inputs differ, and it was said
	unread   bool      // asking failed, and it was said
	grown    map[string]bool
}

// watchTopics arms the next look.
func (s *session) watchTopics(after time.Duration) {
	if s.stopping {
		return
	}
	s.watch.stop()
	s.watch.timer = s.env.Clock.AfterFunc(after, func() { s.box.Put(message{kind: msgLook}) })
}

func (w *watch) stop() { stopTimer(&w.timer) }

// look asks for the topics, on the errand goroutine.
func (s *session) look() {
	if s.stopping || s.watch.asking {
		return
	}
	s.watch.stop()
	s.watch.asking = true
	names := make([]string, 0, len(s.spec.topics))
	for name := range s.spec.topics {
		names = append(names, name)
	}
	slices.Sort(names)
	s.errands.Do(func() {
		topics, err := s.p.client.Driver().Admin().Topics(s.ctx, names...)
		s.box.Put(message{kind: msgLooked, topics: topics, err: err})
	})
}

// looked compares what there is with what there was.
func (s *session) looked(topics map[string]kafka.Topic, err error) {
	s.watch.asking = false
	switch {
	case s.stopping:
		return
	case err != nil && s.watch.suspect != nil:
		s.fail(s.watch.suspect)
		return
	case err != nil:
		// Rights that were taken away show where they are needed.
		if !s.watch.unread && s.ctx.Err() == nil && !errors.Is(err, kafka.ErrClosed) {
			s.watch.unread = true
			s.p.log.Warn("asking for the topics failed; changes of their partition counts go unnoticed",
				zap.String("group", s.p.graph.spec.Group), zap.Error(err))
		}
		s.watchTopics(watchInterval)
		return
	}
	s.watch.unread = false
	if s.watch.suspect != nil {
		if err := s.gone(topics); err != nil {
			s.failGone(fmt.Errorf("%w (%w)", err, s.watch.suspect))
			return
		}
		s.fail(s.watch.suspect)
		return
	}
	if err := s.gone(topics); err != nil {
		now := s.env.Clock.Now()
		if s.watch.doubtful.IsZero() {
			s.watch.doubtful = now
		}
		if now.Sub(s.watch.doubtful) >= watchPatience {
			s.failGone(err)
			return
		}
		s.watchTopics(watchAgain)
		return
	}
	s.watch.doubtful = time.Time{}
	if err := s.grew(topics); err != nil {
		s.fail(err)
		return
	}
	s.watchTopics(watchInterval)
}

// gone returns an error for the first topic that tasks read or that holds
// their state and that is not there any more, or not the one it was. Outputs
// are not looked at: their policy decides when they are written to.
func (s *session) gone(topics map[string]kafka.Topic) error {
	g := &s.p.graph.spec
	names := g.Copartitioned()
	for _, in := range internalTopics(g) {
		if !slices.Contains(names, in.name) {
			names = append(names, in.name)
		}
	}
	for _, name := range names {
		was := s.spec.topics[name]
		var cause error
		switch now, ok := topics[name]; {
		case !ok:
			cause = fmt.Errorf("%w: it was there when the processor started", kafka.ErrUnknownTopic)
		case now.ID != was.ID && !now.ID.IsZero() && !was.ID.IsZero():
			cause = kafka.ErrTopicChanged
		default:
			continue
		}
		return &kafka.Error{TopicPartition: kafka.TopicPartition{Topic: name, Partition: -1}, Offset: -1, Err: cause}
	}
	return nil
}

// suspect ends the session. What a takeover misses may be gone because a topic
// is: then the error says so.
func (s *session) suspect(err error) {
	if s.stopping || !errors.Is(err, ErrOffsetsLost) && !errors.Is(err, kafka.ErrUnknownTopic) {
		s.fail(err)
		return
	}
	s.watch.suspect = err
	s.look()
}

// failGone ends the session for a topic that is gone. Nothing is drained: what
// would be committed are offsets of a log that does not exist, and they would
// be taken for those of the next topic of that name.
func (s *session) failGone(err error) {
	for _, sl := range s.slots {
		s.close(sl, true)
	}
	s.fail(err)
}

// isGone reports whether a task's error says that a topic which it reads is
// gone.
func (s *session) isGone(err error) bool {
	if errors.Is(err, kafka.ErrTopicChanged) {
		return true
	}
	if !errors.Is(err, kafka.ErrUnknownTopic) {
		return false
	}
	topic := "" // the innermost one: an output that is refused is told with its input
	for e, ok := errors.AsType[*kafka.Error](err); ok; e, ok = errors.AsType[*kafka.Error](e.Err) {
		topic = e.Topic
	}
	return slices.Contains(s.p.graph.spec.Copartitioned(), topic)
}

// grew takes added partitions into account, or returns why it cannot.
func (s *session) grew(topics map[string]kafka.Topic) error {
	g := &s.p.graph.spec
	if err := s.p.fixed(topics); err != nil {
		return err
	}
	n, err := s.p.copartitioned(topics, internalTopics(g))
	if err != nil {
		if !s.watch.uneven {
			s.watch.uneven = true
			s.p.log.Warn("partitions were added to some of the inputs only; the new ones are not read until all have them, and a restart is refused",
				zap.String("group", g.Group), zap.Error(err))
		}
		return nil
	}
	s.watch.uneven = false
	for _, name := range targets(g) {
		if was := s.spec.topics[name].Partitions; topics[name].Partitions > was && !s.watch.grown[name] {
			if s.watch.grown == nil {
				s.watch.grown = map[string]bool{}
			}
			s.watch.grown[name] = true
			s.p.log.Warn("an output has more partitions now; keys go to the former ones until the processor is started again",
				zap.String("group", g.Group), zap.String("topic", name), zap.Int32("before", was), zap.Int32("now", topics[name].Partitions))
		}
	}
	if n > s.spec.partitions {
		s.spec.partitions = n
		if s.watch.planned < n {
			s.p.log.Info("partitions were added to the inputs; joining again to share them",
				zap.String("group", g.Group), zap.Int32("partitions", n))
			s.joinAgain()
		}
	}
	return nil
}

// fixed returns an error if inputs have more partitions than a topic of the
// group's own, whose count cannot be raised: its rows and records lie where
// the old count put them.
func (p *Processor) fixed(topics map[string]kafka.Topic) error {
	g := &p.graph.spec
	internal := internalTopics(g)
	if len(internal) == 0 {
		return nil
	}
	e := &PartitionCountError{Group: g.Group}
	own := topics[internal[0].name].Partitions
	for _, name := range g.Copartitioned() {
		if n := topics[name].Partitions; n > own {
			e.Topics, e.Counts = append(e.Topics, name), append(e.Counts, n)
		}
	}
	if len(e.Topics) == 0 {
		return nil
	}
	for _, in := range internal {
		e.Topics, e.Counts = append(e.Topics, in.name), append(e.Counts, topics[in.name].Partitions)
	}
	return fmt.Errorf("partitions were added while the group runs: %w", e)
}
