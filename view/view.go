package view

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/window"
)

var (
	// ErrNotReady: the copy is not complete yet, or the view does not run.
	ErrNotReady = replica.ErrNotReady

	// ErrUndecodable: the codec cannot decode a row's value, or its key is none
	// of the windows. It comes within a *kafka.Error that has topic and key.
	ErrUndecodable = errors.New("value cannot be decoded")
)

// View is a local copy of a table. See the package documentation.
type View[T any] struct {
	// Fixed after New.
	topic    string
	codec    codec.Codec[T]
	mirror   *replica.Mirror
	counter  work.Counter
	hub      *hub
	onState  func(State)     // or nil
	onChange func(Change[T]) // or nil
	skip     bool
	windows  window.Windows // of Windows, else none
	done     chan struct{}  // closed when Run has ended

	buffers sync.Pool // *readBuffer

	rebuilds int64 // owned by the mirror's goroutine: those that watchers know of
}

// New returns a view of a table. It validates and does not dial: Run does.
func New[T any](c *kafka.Client, t reka.Table[T], opts ...Option) (*View[T], error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	switch {
	case c == nil:
		return nil, errors.New("view: no client")
	case t.Name() == "" || t.Codec() == nil:
		return nil, errors.New("view: the table was not made by reka.NewTable with a name and a codec")
	}
	v := &View[T]{topic: t.Name(), codec: t.Codec()}
	if cfg.onChange != nil {
		fn, ok := cfg.onChange.(func(Change[T]))
		if !ok {
			return nil, fmt.Errorf("view: WithObserver(%T) does not fit a view of %s, want %T", cfg.onChange, v.topic, fn)
		}
		v.onChange = fn
	}
	if err := v.connect(c, cfg); err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	return v, nil
}

// connect makes what a declared view works with.
func (v *View[T]) connect(c *kafka.Client, cfg *config) (err error) {
	v.counter, v.hub, v.done = c.Driver().Work(), newHub(), make(chan struct{})
	v.onState, v.skip = cfg.onState, cfg.decode == SkipAndCount
	v.buffers.New = func() any { return &readBuffer{} }
	v.mirror, err = replica.NewMirror(v.mirrorConfig(c, cfg))
	return err
}

func (v *View[T]) mirrorConfig(c *kafka.Client, cfg *config) replica.MirrorConfig {
	mc := replica.MirrorConfig{
		Client: c, Topic: v.topic, Store: cfg.storage, StoreName: "view:" + v.topic,
		CacheBytes: cfg.cacheBytes, FlushBytes: cfg.flushBytes, FlushAge: cfg.flushAge,
		OnRow: v.rowChanged, OnState: v.stateChanged,
		Anywhere:     v.windows.Kind() != 0, // by the key within
		MissingTopic: cfg.missing, LocalFirst: cfg.localFirst, Probe: cfg.probe, StopTimeout: cfg.stopTimeout,
	}
	if v.skip {
		mc.Accept = func(rec *kafka.Record) bool {
			_, err := v.codec.Decode(rec.Value)
			if err == nil && v.windows.Kind() != 0 {
				_, _, err = v.windows.SplitTopicKey(rec.Key)
			}
			return err == nil
		}
	}
	return mc
}

// Run keeps the copy until ctx ends; then it writes what is not durable yet
// and returns nil, or reka.ErrStopTimeout. Trouble of the network is retried
// for ever. What waiting does not change is returned: refused rights, a
// storage that fails. A view runs once.
func (v *View[T]) Run(ctx context.Context) error {
	result := make(chan error, 1) // nobody is waited for
	// Ends when ctx ends or the view fails; waited for below.
	work.Go(v.counter, func() { result <- v.mirror.Run(ctx) })
	err := <-result
	switch {
	case errors.Is(err, replica.ErrRunTwice):
		return fmt.Errorf("view: %w", err)
	case errors.Is(err, replica.ErrStopTimeout):
		err = fmt.Errorf("view: %w (%w)", reka.ErrStopTimeout, err)
	case err != nil:
		err = fmt.Errorf("view: %w", err)
	}
	close(v.done)
	return err
}

// Ready reports whether reads are answered.
func (v *View[T]) Ready() bool { return v.mirror.Ready() }

// WaitReady waits until reads are answered. It returns Run's error if that
// ended, ErrNotReady if it ended without one, or the error of ctx.
func (v *View[T]) WaitReady(ctx context.Context) error { return v.mirror.WaitReady(ctx) }

// stateChanged is called on the mirror's goroutine.
func (v *View[T]) stateChanged(s replica.MirrorState) {
	rebuilds := int64(0)
	for _, p := range v.mirror.Stats() {
		rebuilds += p.Rebuilds
	}
	if s == replica.MirrorReady && rebuilds != v.rebuilds {
		v.rebuilds = rebuilds
		v.hub.reset()
	}
	if v.onState != nil {
		v.onState(State(s))
	}
}

// rowChanged is called on the mirror's goroutine.
func (v *View[T]) rowChanged(rec *kafka.Record, restoring bool) {
	v.hub.notify(rec.Key)
	if v.onChange == nil {
		return
	}
	c := Change[T]{Row: reka.Row[T]{Key: string(rec.Key), Time: rowTime(rec.Timestamp)}, Restoring: restoring}
	if rec.Value == nil {
		c.Deleted = true
	} else if val, err := v.codec.Decode(rec.Value); err == nil {
		c.Row.Value = val
	} else if v.skip {
		c.Deleted = true
	} else {
		c.Err = v.undecodable(rec.Key, err)
	}
	v.onChange(c)
}

func (v *View[T]) undecodable(key []byte, err error) error {
	return &kafka.Error{
		TopicPartition: kafka.TopicPartition{Topic: v.topic, Partition: -1},
		Offset:         -1, Key: append([]byte{}, key...), Err: fmt.Errorf("%w: %w", ErrUndecodable, err),
	}
}
