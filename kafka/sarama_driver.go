package kafka

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/work"
)

// saramaDriver is the Driver over sarama's low-level requests. sarama gives
// connections (TLS, SASL), the encoding of requests and nothing else: its
// clients, producers, consumers and groups are not used.
type saramaDriver struct {
	seeds []string
	cfg   *sarama.Config // never changed after newSaramaDriver
	log   *zap.Logger
	clock Clock
	meta  *metadata
	admin *saramaAdmin

	mu     sync.Mutex
	closed bool
	made   map[io.Closer]struct{} // what Close closes
	done   chan struct{}          // closed when Close has ended

	notices map[string]*notice // of retry, by what it does
}

// newSaramaDriver validates and copies cfg; nil means sarama's defaults. It
// does not dial.
func newSaramaDriver(brokers []string, cfg *sarama.Config, log *zap.Logger) (*saramaDriver, error) {
	own, err := ownConfig(cfg)
	if err != nil {
		return nil, err
	}
	d := &saramaDriver{
		seeds: slices.Clone(brokers), cfg: own, log: log, clock: SystemClock(),
		made: map[io.Closer]struct{}{}, done: make(chan struct{}), notices: map[string]*notice{},
	}
	d.meta = newMetadata(d)
	d.admin = newSaramaAdmin(d)
	return d, nil
}

// ownConfig keeps of a configuration what concerns connections.
func ownConfig(cfg *sarama.Config) (*sarama.Config, error) {
	own := sarama.NewConfig()
	own.ClientID = "reka"
	if cfg != nil {
		own.Net = cfg.Net
		own.ClientID, own.RackID = cfg.ClientID, cfg.RackID
		own.Version, own.ApiVersionsRequest = cfg.Version, cfg.ApiVersionsRequest
		if cfg.MetricRegistry != nil { // sarama cannot do without
			own.MetricRegistry = cfg.MetricRegistry
		}
	}
	if !own.Version.IsAtLeast(oldestVersion) {
		return nil, fmt.Errorf("sarama configuration: Version %s: want at least %s", own.Version, oldestVersion)
	}
	own.Net.MaxOpenRequests = max(own.Net.MaxOpenRequests, 5)
	if own.Net.DialTimeout <= 0 {
		own.Net.DialTimeout = 30 * time.Second
	}
	if own.Net.Proxy.Enable && own.Net.Proxy.Dialer == nil {
		return nil, errors.New("sarama configuration: Net.Proxy.Enable without Net.Proxy.Dialer")
	}
	if err := own.Validate(); err != nil {
		return nil, fmt.Errorf("sarama configuration: %w", err)
	}
	return own, nil
}

// oldestVersion is the oldest protocol that the requests of this package
// speak: fetches with leader epochs, offset commits of static members.
var oldestVersion = sarama.V2_4_0_0

func (d *saramaDriver) Clock() Clock { return d.clock }

func (d *saramaDriver) Work() work.Counter { return nil }

func (d *saramaDriver) Admin() Admin { return d.admin }

func (d *saramaDriver) NewFetcher(cfg FetcherConfig) (Fetcher, error) {
	f, err := newSaramaFetcher(d, cfg)
	if err != nil {
		return nil, err
	}
	return f, d.adopt(f)
}

func (d *saramaDriver) NewProducer(cfg ProducerConfig) (Producer, error) {
	p, err := newSaramaProducer(d, cfg)
	if err != nil {
		return nil, err
	}
	return p, d.adopt(p)
}

func (d *saramaDriver) NewMember(cfg MemberConfig) (Member, error) {
	m, err := newSaramaMember(d, cfg)
	if err != nil {
		return nil, err
	}
	return m, d.adopt(m)
}

// adopt makes Close close x. If the driver is closed already, x is closed
// and the error is ErrClosed.
func (d *saramaDriver) adopt(x io.Closer) error {
	d.mu.Lock()
	if !d.closed {
		d.made[x] = struct{}{}
		d.mu.Unlock()
		return nil
	}
	d.mu.Unlock()
	return errors.Join(ErrClosed, x.Close())
}

// release is called by what was made of the driver when it is closed.
func (d *saramaDriver) release(x io.Closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.made, x)
}

// Close closes what was made of the driver, then its own connections.
func (d *saramaDriver) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		<-d.done
		return nil
	}
	d.closed = true
	made := d.made
	d.made = nil
	d.mu.Unlock()

	var errs []error
	for x := range made {
		errs = append(errs, x.Close())
	}
	d.admin.close()
	d.meta.close()
	close(d.done)
	return errors.Join(errs...)
}
