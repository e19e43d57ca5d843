package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
)

// load emits events and rates until it is told to end.
type load struct {
	events *emitter.Emitter[event]
	rates  *emitter.Emitter[int64]
	cfg    Config
	cancel context.CancelFunc
	done   chan struct{}

	// Owned by run until it is done, then by finish.
	rnd     *rand.Rand
	seq     map[string]int64
	next    int64
	version int64

	mu     sync.Mutex
	failed []string // guarded by mu
}

// newLoad starts to emit.
func newLoad(c *kafka.Client, cfg Config) (*load, error) {
	l := &load{cfg: cfg, done: make(chan struct{}), rnd: rand.New(rand.NewPCG(cfg.Seed, 1)), seq: map[string]int64{}}
	patient := emitter.WithDeliveryTimeout(10 * time.Minute)
	var err error
	if l.events, err = emitter.New(c, events, patient); err != nil {
		return nil, err
	}
	if l.rates, err = emitter.New(c, rates, patient); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go l.run(ctx) // ends with stop, which waits
	return l, nil
}

func keyName(i int) string { return fmt.Sprintf("key-%03d", i) }

func (l *load) run(ctx context.Context) {
	defer close(l.done)
	const beats = 20 // a second
	tick := time.NewTicker(time.Second / beats)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for range (l.cfg.Rate*(i+1))/beats - l.cfg.Rate*i/beats {
			l.event(keyName(l.rnd.IntN(l.cfg.Keys)))
		}
		if i%2 == 0 {
			l.rate(keyName(l.rnd.IntN(l.cfg.Keys)))
		}
	}
}

// event emits the next one of a key. It waits while the buffer is full.
func (l *load) event(key string) {
	l.seq[key]++
	l.next++
	e := event{Seq: l.seq[key], ID: l.next}
	res, err := l.events.Emit(context.Background(), key, e)
	if err != nil {
		l.fail(key, e.ID, err)
		return
	}
	res.Then(func(_ emitter.Receipt, err error) { l.fail(key, e.ID, err) })
}

func (l *load) rate(key string) {
	l.version++
	if _, err := l.rates.Emit(context.Background(), key, l.version); err != nil {
		l.fail(key, -1, err)
	}
}

func (l *load) fail(key string, id int64, err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, fmt.Sprintf("event %d of %s: %v", id, key, err))
}

// stop ends the flow.
func (l *load) stop() {
	l.cancel()
	<-l.done
}

// finish gives each key a last rate, and after that a last event, waits until
// all is acknowledged, and returns the last versions.
func (l *load) finish(ctx context.Context) (map[string]int64, error) {
	final := map[string]int64{}
	for i := range l.cfg.Keys {
		l.rate(keyName(i))
		final[keyName(i)] = l.version
	}
	if err := l.rates.Flush(ctx); err != nil {
		return nil, fmt.Errorf("flush rates: %w", err)
	}
	time.Sleep(time.Second) // so that no timestamp is the same
	for i := range l.cfg.Keys {
		l.event(keyName(i))
	}
	if err := l.events.Flush(ctx); err != nil {
		return nil, fmt.Errorf("flush events: %w", err)
	}
	return final, nil
}

func (l *load) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(l.events.Close(ctx), l.rates.Close(ctx))
}

func (l *load) failures() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}
