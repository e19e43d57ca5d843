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
//   - Growth is answered as a restart would answer it, in each subgraph for
//     itself. One that reads repartition topics does not grow with those that
//     write to them.
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
	unread   bool      // asking failed, and it was said
	grown    map[string]bool
}

// watchTopics arms the next look.
func (s *session) watchTopics(after time.Duration) {
	if s.stopping {
		return
	}
	s.watch.stop()
	s.watch.timer = s.clock.AfterFunc(after, func() { s.box.Put(message{kind: msgLook}) })
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
				zap.String("group", s.p.graph.group), zap.Error(err))
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
		now := s.clock.Now()
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
	for _, name := range s.p.graph.needed() {
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
	return slices.ContainsFunc(s.p.graph.parts, func(p *part) bool { return slices.Contains(p.spec.Copartitioned(), topic) })
}

// needed are the topics that tasks read, or that hold their state.
func (g *Graph) needed() (names []string) {
	for _, p := range g.parts {
		names = append(names, p.spec.Copartitioned()...)
	}
	for _, in := range g.internalTopics() {
		if !slices.Contains(names, in.name) {
			names = append(names, in.name)
		}
	}
	return names
}

// grew takes added partitions into account, or returns why it cannot. Each
// subgraph grows for itself.
func (s *session) grew(topics map[string]kafka.Topic) error {
	more := false
	counts := newPartitionCounts(s.p.graph, topics)
	for _, sg := range s.subgraphs {
		if err := sg.fixed(topics); err != nil {
			return err
		}
		n, err := counts.of(sg.part)
		if err != nil {
			if !sg.uneven {
				sg.uneven = true
				s.p.log.Warn("partitions were added to some of the inputs only; the new ones are not read until all have them, and a restart is refused",
					zap.String("group", s.p.graph.group), zap.String("subgraph", sg.spec.Subgraph), zap.Error(err))
			}
			continue
		}
		sg.uneven = false
		if n <= sg.partitions {
			continue
		}
		sg.partitions = n
		s.tellCounts()
		if sg.planned < n {
			more = true
			s.p.log.Info("partitions were added to the inputs; joining again to share them",
				zap.String("group", s.p.graph.group), zap.String("subgraph", sg.spec.Subgraph), zap.Int32("partitions", n))
		}
	}
	s.outputsGrew(topics)
	if more {
		s.joinAgain()
	}
	return nil
}

func (s *session) outputsGrew(topics map[string]kafka.Topic) {
	for _, p := range s.p.graph.parts {
		for _, name := range p.targets() {
			if was := s.spec.topics[name].Partitions; topics[name].Partitions > was && !s.watch.grown[name] {
				if s.watch.grown == nil {
					s.watch.grown = map[string]bool{}
				}
				s.watch.grown[name] = true
				s.p.log.Warn("an output has more partitions now; keys go to the former ones until the processor is started again",
					zap.String("group", s.p.graph.group), zap.String("topic", name), zap.Int32("before", was), zap.Int32("now", topics[name].Partitions))
			}
		}
	}
}
