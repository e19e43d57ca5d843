package fakekafka

import (
	"cmp"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// MinSession is the shortest session timeout that the cluster accepts.
const MinSession = time.Second

// Config describes a cluster. The zero value is one broker.
type Config struct {
	// Brokers is how many there are. Default 1.
	Brokers int

	// Options go to the fake cluster as they are.
	Options []kfake.Opt
}

// Cluster is a fake cluster. Its methods are called from one goroutine at a
// time.
type Cluster struct {
	*kfake.Cluster // nil while stopped

	cfg   Config
	dir   string
	ports []int
}

// Start starts a cluster that ends with the test.
func Start(tb testing.TB, cfg Config) *Cluster {
	tb.Helper()
	c, err := Open(tb.TempDir(), cfg)
	if err != nil {
		tb.Fatalf("start the fake cluster: %v", err)
	}
	tb.Cleanup(c.Stop)
	return c
}

// Open starts a cluster with its data in dir. Stop ends it.
func Open(dir string, cfg Config) (*Cluster, error) {
	c := &Cluster{cfg: cfg, dir: dir}
	if err := c.open(0); err != nil {
		return nil, err
	}
	for _, addr := range c.ListenAddrs() {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			return nil, err
		}
		c.ports = append(c.ports, tcp.Port)
	}
	return c, nil
}

func (c *Cluster) open(patience time.Duration) error {
	opts := []kfake.Opt{
		kfake.NumBrokers(cmp.Or(c.cfg.Brokers, 1)), kfake.DataDir(c.dir), kfake.GroupMinSessionTimeout(MinSession),
		// It would delete by age from topics that are only compacted, too.
		kfake.BrokerConfigs(map[string]string{"log.retention.ms": "-1"}),
	}
	if len(c.ports) > 0 {
		opts = append(opts, kfake.Ports(c.ports...))
	}
	opts = append(opts, c.cfg.Options...)
	deadline := time.Now().Add(patience)
	for {
		k, err := kfake.NewCluster(opts...)
		if err == nil {
			c.Cluster = k
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// Brokers returns the addresses, which stay the same over Stop and Restart.
func (c *Cluster) Brokers() []string {
	out := make([]string, len(c.ports))
	for i, p := range c.ports {
		out[i] = fmt.Sprintf("127.0.0.1:%d", p)
	}
	return out
}

// Stop ends the cluster. Its data stays. Stopping twice does nothing.
func (c *Cluster) Stop() {
	if c.Cluster != nil {
		c.Close()
		c.Cluster = nil
	}
}

// Restart starts a stopped cluster again, on its ports and with its data.
func (c *Cluster) Restart(tb testing.TB) {
	tb.Helper()
	if err := c.open(10 * time.Second); err != nil {
		tb.Fatalf("restart the fake cluster: %v", err)
	}
}
