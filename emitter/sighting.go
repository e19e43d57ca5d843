package emitter

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// sighting is what a look at the topic showed.
type sighting struct {
	partitions int32 // 0: there is no such topic
	limit      int   // max.message.bytes, 0 if that was not told
	err        error
}

// refusal is how long a topic that cannot be used is not asked for again;
// what is emitted meanwhile is refused at once.
const refusal = time.Second

// look starts a look-up unless one is on its way.
func (s *sink) look() {
	o := &s.owner
	if o.looking || o.aborted {
		return
	}
	o.looking = true
	ctx, cancel := context.WithCancel(context.Background())
	o.cancelLook = cancel
	work.Go(s.driver.Work(), func() { // ends with the driver's answer or cancelLook; the owner waits for the event
		seen := s.sight(ctx)
		s.inbox.Put(event{kind: looked, seen: seen})
	})
}

func (s *sink) sight(ctx context.Context) *sighting {
	admin := s.driver.Admin()
	topics, err := admin.Topics(ctx, s.topic)
	if err != nil {
		return &sighting{err: err}
	}
	t, ok := topics[s.topic]
	if !ok {
		return &sighting{}
	}
	seen := &sighting{partitions: t.Partitions}
	configs, err := admin.Configs(ctx, s.topic)
	if err != nil {
		// Describing settings is a right of its own, which a writer need not
		// have. The broker then refuses what is too large.
		s.log.Debug("the topic's settings are not known", zap.Error(err))
		return seen
	}
	if n, err := strconv.Atoi(configs["max.message.bytes"]); err == nil && n > 0 {
		seen.limit = n
	}
	return seen
}

// see acts on a sighting.
func (s *sink) see(seen *sighting) {
	o := &s.owner
	o.cancelLook()
	o.looking, o.cancelLook = false, nil
	doubted := o.doubted
	o.doubted = false
	s.mu.Lock()
	s.stale = false
	if seen.err == nil && seen.limit > 0 {
		s.limit = seen.limit
	}
	known := len(s.lanes) > 0
	s.mu.Unlock()
	switch {
	case o.aborted:
	case seen.partitions > 0:
		o.lookedAt = s.driver.Clock().Now()
		s.adopt(seen.partitions)
	case seen.err != nil && !known:
		s.refuse(seen.err)
	case seen.err == nil && (doubted || !known):
		s.refuse(kafka.ErrUnknownTopic)
	default:
		// Metadata of one broker may be behind; the producer knows better.
		o.lookedAt = s.driver.Clock().Now()
	}
}

// refuse fails all that was not handed over and, for a while, what comes.
func (s *sink) refuse(err error) {
	s.mu.Lock()
	if s.state == accepting {
		s.refused = err
		s.dismiss(s.fault(nil, -1, err))
		s.driver.Clock().Linger(refusal, func() { s.inbox.Put(event{kind: retried}) })
	}
	s.mu.Unlock()
	s.drop(err)
}

// drop fails all that was not handed over, and forgets the partitions.
func (s *sink) drop(err error) {
	s.mu.Lock()
	dropped := append(s.resize(0), s.unplaced...)
	s.unplaced = nil
	s.mu.Unlock()
	for _, b := range dropped {
		s.fail(b, err)
	}
	s.registerPlaced()
}

// doubt has the topic looked up again when its partitions seem to be gone.
func (s *sink) doubt(err error) {
	if !errors.Is(err, kafka.ErrUnknownTopic) {
		return
	}
	s.mu.Lock()
	known := len(s.lanes) > 0
	s.stale = s.stale || known
	s.mu.Unlock()
	s.owner.doubted = s.owner.doubted || known
}
