package kafka

import (
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// findLeaders gives homeless followings to the brokers that lead them. It is
// the fetcher's control goroutine and ends with its context.
func (f *saramaFetcher) findLeaders() {
	asking := newBackoff("asking for the leaders of partitions", f.d.clock, f.d.log)
	leaderless := newBackoff("waiting for partitions to have leaders", f.d.clock, f.d.log)
	for {
		due, next := f.dueHomeless()
		if len(due) == 0 {
			if !f.awaitHomeless(next) {
				return
			}
			continue
		}
		if err := f.refreshFor(due); err != nil {
			if f.ctx.Err() != nil {
				return
			}
			pause := asking.failed(err)
			for _, w := range due {
				w.retry = f.d.clock.Now().Add(pause)
			}
			continue
		}
		asking.reset()
		var missed error
		for _, w := range due {
			if err := f.place(w); err != nil {
				missed = err
			}
		}
		if missed != nil {
			leaderless.failed(missed)
		} else if next.IsZero() {
			leaderless.reset()
		}
	}
}

// dueHomeless returns the followings whose leader may be looked up now, and
// the time at which the next of the others may.
func (f *saramaFetcher) dueHomeless() (due []*following, next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.d.clock.Now()
	for w := range f.homeless {
		if !w.retry.After(now) {
			due = append(due, w)
		} else if next.IsZero() || w.retry.Before(next) {
			next = w.retry
		}
	}
	return due, next
}

// awaitHomeless sleeps until next, if that is not zero, or until somebody
// becomes homeless. It reports false when the fetcher is closed.
func (f *saramaFetcher) awaitHomeless(next time.Time) bool {
	if !next.IsZero() {
		t := f.d.clock.AfterFunc(next.Sub(f.d.clock.Now()), func() {
			select {
			case f.lookup <- struct{}{}:
			default:
			}
		})
		defer t.Stop()
	}
	select {
	case <-f.lookup:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// refreshFor refreshes the metadata of the topics that is not fresh.
func (f *saramaFetcher) refreshFor(due []*following) error {
	var stale []string
	seen := map[string]bool{}
	for _, w := range due {
		if !seen[w.Topic] && !f.d.meta.fresh(w.Topic) {
			stale = append(stale, w.Topic)
		}
		seen[w.Topic] = true
	}
	if len(stale) == 0 {
		return nil
	}
	return f.d.meta.refresh(f.ctx, stale...)
}

// place moves w on, to its leader or to its end, or has it wait; then it
// returns why.
func (f *saramaFetcher) place(w *following) error {
	t := f.d.meta.cached(w.Topic)
	if t == nil {
		f.stray(w)
		return errNotCached
	}
	w.astray = false
	switch err := kerror(t.code); {
	case errors.Is(err, ErrUnknownTopic), errors.Is(err, ErrInvalidTopic):
		f.notFound(w, err)
		return err
	case errors.Is(err, ErrNotAuthorized):
		f.fail(w, &Error{TopicPartition: w.TopicPartition, Offset: w.position, Err: err})
		return nil
	case err != nil:
		f.stray(w)
		return err
	case !w.TopicID.IsZero() && !t.id.IsZero() && t.id != w.TopicID:
		return f.otherTopic(w)
	case int(w.Partition) >= len(t.parts) || w.Partition < 0:
		err := kerror(sarama.ErrUnknownTopicOrPartition)
		f.notFound(w, err)
		return err
	}
	addr, ok := f.d.meta.addr(t.parts[w.Partition].leader)
	if !ok {
		f.stray(w)
		return kerror(sarama.ErrLeaderNotAvailable)
	}
	w.epoch = t.parts[w.Partition].epoch
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.homeless, w)
	f.settleLocked(w, addr)
	return nil
}

// otherTopic handles metadata that names another topic id. A broker that is
// behind may still name the topic before.
func (f *saramaFetcher) otherTopic(w *following) error {
	now := f.d.clock.Now()
	if w.changed.IsZero() {
		w.changed = now
	}
	if now.Sub(w.changed) < changedPatience {
		f.stray(w)
		return ErrTopicChanged
	}
	f.fail(w, &Error{TopicPartition: w.TopicPartition, Offset: w.position, Err: ErrTopicChanged})
	return nil
}
