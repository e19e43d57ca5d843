package emitter

import (
	"errors"
	"fmt"
	"time"

	"github.com/rekastream/reka/kafka"
)

// Option is an option of New.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	bufferRecords   int
	bufferBytes     int
	linger          time.Duration
	deliveryTimeout time.Duration
	stopTimeout     time.Duration
	refresh         time.Duration
	compression     kafka.Compression
	headers         []kafka.Header
}

const (
	defaultBufferRecords   = 50_000
	defaultBufferBytes     = 32 << 20
	defaultLinger          = 5 * time.Millisecond
	defaultDeliveryTimeout = 2 * time.Minute
	defaultStopTimeout     = 30 * time.Second
	defaultRefresh         = time.Minute
)

// WithBuffer bounds the records that are emitted and not yet acknowledged, by
// number and by bytes. Emit blocks while the buffer is full; a record larger
// than the whole buffer is accepted when the buffer is empty. Default: 50,000
// records, 32 MiB.
func WithBuffer(records, bytes int) Option {
	return optionFunc(func(c *config) { c.bufferRecords, c.bufferBytes = records, bytes })
}

// WithLinger sets how long a record waits for others to share its batch. It
// does not wait once somebody waits for it. Default: 5 ms; 0 sends at once.
func WithLinger(d time.Duration) Option { return optionFunc(func(c *config) { c.linger = d }) }

// WithDeliveryTimeout sets the time within which a record must be
// acknowledged; its result fails with kafka.ErrDeliveryTimeout otherwise. It
// counts from Emit, and once the topic's partitions are known from the moment
// at which the record is handed to the producer. Default: 2 minutes.
func WithDeliveryTimeout(d time.Duration) Option {
	return optionFunc(func(c *config) { c.deliveryTimeout = d })
}

// WithStopTimeout bounds the draining at the end of Run. Default: 30 s.
func WithStopTimeout(d time.Duration) Option {
	return optionFunc(func(c *config) { c.stopTimeout = d })
}

// WithRefresh sets how often, while it is in use, the emitter looks whether
// the topic has got more partitions. Default: 1 minute.
func WithRefresh(d time.Duration) Option { return optionFunc(func(c *config) { c.refresh = d }) }

// WithCompression sets how batches are compressed. Default: kafka.LZ4.
func WithCompression(k kafka.Compression) Option {
	return optionFunc(func(c *config) { c.compression = k })
}

// WithHeader adds a header to every record, before those of the record
// itself. The value must not change; nil is a null.
func WithHeader(name string, value []byte) Option {
	return optionFunc(func(c *config) { c.headers = append(c.headers, kafka.Header{Key: name, Value: value}) })
}

func newConfig(opts []Option) (config, error) {
	c := config{
		bufferRecords:   defaultBufferRecords,
		bufferBytes:     defaultBufferBytes,
		linger:          defaultLinger,
		deliveryTimeout: defaultDeliveryTimeout,
		stopTimeout:     defaultStopTimeout,
		refresh:         defaultRefresh,
	}
	for _, o := range opts {
		if o == nil {
			return c, errors.New("a nil option")
		}
		o.apply(&c)
	}
	return c, c.validate()
}

func (c *config) validate() error {
	switch {
	case c.bufferRecords <= 0 || c.bufferBytes <= 0:
		return fmt.Errorf("WithBuffer(%d, %d): both must be above 0", c.bufferRecords, c.bufferBytes)
	case c.linger < 0:
		return fmt.Errorf("WithLinger(%v): must not be negative", c.linger)
	case c.deliveryTimeout <= c.linger:
		return fmt.Errorf("WithDeliveryTimeout(%v): must be above the linger time, %v", c.deliveryTimeout, c.linger)
	case c.stopTimeout <= 0:
		return fmt.Errorf("WithStopTimeout(%v): must be above 0", c.stopTimeout)
	case c.refresh <= 0:
		return fmt.Errorf("WithRefresh(%v): must be above 0", c.refresh)
	case c.compression < kafka.LZ4 || c.compression > kafka.Zstd:
		return fmt.Errorf("WithCompression(%d): unknown", c.compression)
	}
	return nil
}
