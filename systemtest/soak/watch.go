package soak

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// watch polls committed offsets and notes each that goes back.
type watch struct {
	brokers *brokers
	cancel  context.CancelFunc
	done    chan struct{}

	mu    sync.Mutex
	polls int             // guarded by mu
	last  map[place]int64 // guarded by mu
	back  []string        // guarded by mu
}

// newWatch starts polling; close ends it.
func newWatch(b *brokers) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{brokers: b, cancel: cancel, done: make(chan struct{}), last: map[place]int64{}}
	go w.run(ctx) // ends with close, which waits
	return w
}

func (w *watch) run(ctx context.Context) {
	defer close(w.done)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, group := range []string{tallyGroup, secondGroup} {
			ask, cancel := context.WithTimeout(ctx, 5*time.Second)
			got, err := w.brokers.committed(ask, group)
			cancel()
			if err == nil { // else the coordinator is away or moves
				w.see(got, time.Now())
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *watch) see(got map[place]int64, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polls++
	for p, now := range got {
		if was, ok := w.last[p]; ok && now < was {
			w.back = append(w.back, fmt.Sprintf("offset of %s in %s/%d went back from %d to %d at %s",
				p.group, p.topic, p.partition, was, now, at.Format(time.StampMilli)))
		}
		w.last[p] = now
	}
}

func (w *watch) close() (polls int, back []string) {
	w.cancel()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.polls, w.back
}
