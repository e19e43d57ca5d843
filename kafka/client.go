package kafka

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// Client is the handle that emitters, processors and views are built on. It
// holds what they must agree on: brokers, credentials, partitioner and logger.
// It may be used from any number of goroutines. It dials only when something
// that was made of it runs.
type Client struct {
	driver      Driver
	partitioner Partitioner
	log         *zap.Logger
}

// Option is an option of NewClient and NewDriverClient.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	sarama      *sarama.Config
	partitioner Partitioner
	log         *zap.Logger
}

// WithSarama sets everything that concerns connections: TLS, SASL, timeouts
// of the network, proxy, client id, rack, protocol version. The configuration
// is copied. Its Consumer and Producer sections are not used: Reka drives
// those requests itself. Default: sarama's defaults with client id "reka".
func WithSarama(cfg *sarama.Config) Option { return optionFunc(func(c *config) { c.sarama = cfg }) }

// WithPartitioner sets how keys are placed by everything that writes through
// the client, and looked for by everything that reads. Default: Murmur2, as
// Java, librdkafka (murmur2_random) and franz-go place them.
func WithPartitioner(p Partitioner) Option { return optionFunc(func(c *config) { c.partitioner = p }) }

// WithLogger sets where the client and everything made of it logs. Default:
// warnings and errors to standard error.
func WithLogger(l *zap.Logger) Option { return optionFunc(func(c *config) { c.log = l }) }

// NewClient returns a client of the cluster behind brokers (host:port each).
// It validates and does not dial. Close it when everything that was made of
// it has ended.
func NewClient(brokers []string, opts ...Option) (*Client, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if len(brokers) == 0 {
		return nil, errors.New("kafka: no brokers given")
	}
	for _, b := range brokers {
		if err := checkAddress(b); err != nil {
			return nil, fmt.Errorf("kafka: broker %q: %w", b, err)
		}
	}
	d, err := newSaramaDriver(brokers, cfg.sarama, cfg.log)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return &Client{driver: d, partitioner: cfg.partitioner, log: cfg.log}, nil
}

// checkAddress refuses what can never be dialled: waiting for it would look
// like waiting for a broker that is down.
func checkAddress(b string) error {
	host, port, err := net.SplitHostPort(b)
	if err != nil || host == "" || strings.ContainsAny(host, "/, \t\n") {
		return errors.New("want host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q is not a port", port)
	}
	return nil
}

// NewDriverClient returns a client over d. WithSarama has no effect here.
func NewDriverClient(d Driver, opts ...Option) (*Client, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errors.New("kafka: no driver given")
	}
	return &Client{driver: d, partitioner: cfg.partitioner, log: cfg.log}, nil
}

func newConfig(opts []Option) (*config, error) {
	c := &config{partitioner: Murmur2()}
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("kafka: a nil option")
		}
		o.apply(c)
	}
	if c.partitioner == nil {
		return nil, errors.New("kafka: WithPartitioner(nil)")
	}
	if c.log == nil {
		c.log = defaultLogger()
	}
	return c, nil
}

// Driver returns the driver under the client. It is for Reka's own packages.
func (c *Client) Driver() Driver { return c.driver }

// Partitioner returns how the client places keys.
func (c *Client) Partitioner() Partitioner { return c.partitioner }

// Logger returns the client's logger, never nil.
func (c *Client) Logger() *zap.Logger { return c.log }

// Close closes all connections and waits. Closing twice does nothing.
func (c *Client) Close() error { return c.driver.Close() }
