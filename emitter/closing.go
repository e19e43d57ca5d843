package emitter

import (
	"context"

	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

func (s *sink) close(ctx context.Context) error {
	s.shut()
	select {
	case <-s.ended:
	case <-ctx.Done():
		s.inbox.Put(event{kind: aborted, cause: context.Cause(ctx)})
		<-s.ended
	}
	if s.owner.undelivered != nil {
		return s.owner.undelivered
	}
	return s.owner.lost
}

// shut refuses further records and has the owner drain and end.
func (s *sink) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != accepting {
		return
	}
	s.state = closing
	s.dismiss(s.fault(nil, -1, kafka.ErrClosed))
	if s.started {
		s.inbox.Put(event{kind: stopped})
		return
	}
	s.state = ended
	s.inbox.Close()
	close(s.ended)
}

func (s *sink) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-s.ended:
	}
	timer := s.driver.Clock().AfterFunc(s.cfg.stopTimeout, func() {
		s.inbox.Put(event{kind: aborted, cause: reka.ErrStopTimeout})
	})
	defer timer.Stop()
	s.shut()
	<-s.ended
	return s.owner.undelivered
}

// abort fails everything that is left.
func (s *sink) abort(cause error) {
	o := &s.owner
	s.mu.Lock()
	left := s.records
	s.mu.Unlock()
	if o.aborted || left == 0 {
		return
	}
	o.aborted = true
	o.undelivered = &UndeliveredError{Topic: s.topic, Records: left, Cause: cause}
	if o.cancelLook != nil {
		o.cancelLook()
	}
	s.drop(kafka.ErrClosed)
	s.closeProducer() // its answers are in the inbox now
}

// drained reports whether the owner may end.
func (s *sink) drained() bool {
	o := &s.owner
	s.mu.Lock()
	over := s.state == closing && s.records == 0
	s.mu.Unlock()
	if over && o.looking {
		o.cancelLook() // its answer is waited for
		return false
	}
	return over
}

func (s *sink) end() {
	o := &s.owner
	s.closeProducer()
	s.warnNow()
	s.mu.Lock()
	s.state = ended
	if s.linger != nil {
		s.linger.Stop()
	}
	s.mu.Unlock()
	if o.expiry != nil {
		o.expiry.Stop()
	}
	s.inbox.Close()
	for _, e := range s.inbox.TryTake() {
		if e.kind == flushed {
			s.register(e.flush)
		}
	}
	close(s.ended)
}

func (s *sink) closeProducer() {
	o := &s.owner
	if o.producer == nil {
		return
	}
	if err := o.producer.Close(); err != nil {
		s.log.Debug("closing the producer", zap.Error(err))
	}
	o.producer = nil
}
