package view

import (
	"errors"
	"fmt"
	"time"

	"github.com/rekastream/reka/storage"
)

// Option is an option of New and NewWindows.
type Option interface{ apply(*config) error }

type optionFunc func(*config) error

func (f optionFunc) apply(c *config) error { return f(c) }

type config struct {
	storage     storage.Builder
	cacheBytes  int
	flushBytes  int
	flushAge    time.Duration
	decode      DecodePolicy
	localFirst  bool
	missing     time.Duration
	probe       time.Duration
	stopTimeout time.Duration
	onState     func(State)
	onChange    any // func(Change[T])
}

func newConfig(opts []Option) (*config, error) {
	c := &config{}
	var errs []error
	for _, o := range opts {
		if o == nil {
			errs = append(errs, errors.New("a nil option"))
			continue
		}
		errs = append(errs, o.apply(c))
	}
	if c.storage == nil {
		errs = append(errs, errors.New("no storage: give WithStorage a directory (badgerstore.In), or storage.Memory()"))
	}
	return c, errors.Join(errs...)
}

// WithStorage sets where the copy lives. Required. The same Builder may be
// given to processors and to views of other tables.
func WithStorage(b storage.Builder) Option {
	return optionFunc(func(c *config) error {
		if b == nil {
			return errors.New("WithStorage(nil)")
		}
		c.storage = b
		return nil
	})
}

// WithCacheBytes bounds the rows that are held in memory beside the storage.
// Default 64 MiB.
func WithCacheBytes(n int) Option {
	return positive("WithCacheBytes", n, func(c *config) { c.cacheBytes = n })
}

// WithFlush sets how many bytes of changes, and for how long, stay in memory
// before they are written to the storage. More costs memory and a longer
// catching up after a crash, less costs writes. Defaults 32 MiB, 30 s.
func WithFlush(bytes int, age time.Duration) Option {
	return optionFunc(func(c *config) error {
		if bytes <= 0 || age <= 0 {
			return fmt.Errorf("WithFlush(%d, %s): both must be above 0", bytes, age)
		}
		c.flushBytes, c.flushAge = bytes, age
		return nil
	})
}

// DecodePolicy says what becomes of a row whose value the codec cannot
// decode.
type DecodePolicy int8

const (
	// FailRead keeps the row; reading it fails. The default.
	FailRead DecodePolicy = iota
	// SkipAndCount drops the row as it arrives and counts it: it is absent,
	// now and after any restart, and an older value of its key with it.
	SkipAndCount
)

// WithDecodePolicy sets what becomes of a row that cannot be decoded. Default
// FailRead.
func WithDecodePolicy(p DecodePolicy) Option {
	return optionFunc(func(c *config) error {
		if p != FailRead && p != SkipAndCount {
			return fmt.Errorf("WithDecodePolicy(%d): no such policy", p)
		}
		c.decode = p
		return nil
	})
}

// WithLocalFirst answers reads from a local copy that was complete in an
// earlier run, before Kafka is reached in this one.
func WithLocalFirst() Option {
	return optionFunc(func(c *config) error { c.localFirst = true; return nil })
}

// WithMissingTopic ends Run with kafka.ErrUnknownTopic when the topic has not
// existed for d. Default: it is waited for, with warnings.
func WithMissingTopic(d time.Duration) Option {
	return positive("WithMissingTopic", d, func(c *config) { c.missing = d })
}

// WithProbeInterval sets how often the brokers are asked for the end of the
// log, which gives Lag. Three of them without an answer make the state
// connecting. Default 2 s.
func WithProbeInterval(d time.Duration) Option {
	return positive("WithProbeInterval", d, func(c *config) { c.probe = d })
}

// WithStopTimeout bounds what Run does after its context ended. Default 30 s.
func WithStopTimeout(d time.Duration) Option {
	return positive("WithStopTimeout", d, func(c *config) { c.stopTimeout = d })
}

// WithStateObserver has fn called for each change of the state, in order, from
// the view's goroutine: it must not block.
func WithStateObserver(fn func(State)) Option {
	return optionFunc(func(c *config) error {
		if fn == nil {
			return errors.New("WithStateObserver(nil)")
		}
		c.onState = fn
		return nil
	})
}

// WithObserver has fn called for every change of a row, those of a restore
// included, in the order of each partition and after reads can see it, from
// the view's goroutine: it must not block. T must be the table's type. What
// changed while no view ran, and was not read again, is not told. NewWindows
// refuses it.
func WithObserver[T any](fn func(Change[T])) Option {
	return optionFunc(func(c *config) error {
		if fn == nil {
			return errors.New("WithObserver(nil)")
		}
		c.onChange = fn
		return nil
	})
}

func positive[N int | time.Duration](name string, n N, set func(*config)) Option {
	return optionFunc(func(c *config) error {
		if n <= 0 {
			return fmt.Errorf("%s(%v): must be above 0", name, n)
		}
		set(c)
		return nil
	})
}

// ReadOption is an option of reads: a plain value.
type ReadOption struct{ stale, reverse bool }

// Stale has a read answered, in every state but before the storage is open,
// with what the copy holds: rows may be old, or missing.
func Stale() ReadOption { return ReadOption{stale: true} }

// Reverse has a scan go from the last key to the first. Get does not heed it.
func Reverse() ReadOption { return ReadOption{reverse: true} }

func fold(opts []ReadOption) (o ReadOption) {
	for i := range opts {
		o.stale = o.stale || opts[i].stale
		o.reverse = o.reverse || opts[i].reverse
	}
	return o
}
