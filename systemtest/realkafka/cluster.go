package realkafka

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// Times that starting and stopping may take on a slow and busy machine.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
)

// Cluster is a running Kafka. Its methods are called from one goroutine at a
// time.
type Cluster struct {
	cfg      Config
	libs     string
	id       string
	nodes    []*node
	security *Security
}

// node is one child process.
type node struct {
	id        int
	dir       string
	listeners []listener

	cmd  *exec.Cmd     // nil: not running
	done chan struct{} // closed when the process has ended
}

func (n *node) addr(listener string) string {
	for _, l := range n.listeners {
		if l.name == listener {
			return fmt.Sprintf("127.0.0.1:%d", l.port)
		}
	}
	return ""
}

// start tries again if a port was taken between choosing and using it.
func start(dir string, cfg Config) (*Cluster, error) {
	libs, err := jars()
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c := &Cluster{cfg: cfg, libs: libs}
		err = c.init(filepath.Join(dir, fmt.Sprint("try-", attempt)))
		if err == nil {
			return c, nil
		}
		c.Close()
		if attempt == 3 || !strings.Contains(err.Error(), "Address already in use") {
			return nil, err
		}
	}
}

func (c *Cluster) init(dir string) error {
	if c.cfg.Secure {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		security, err := newSecurity(dir)
		if err != nil {
			return err
		}
		c.security = security
	}
	for i := range c.cfg.nodes() {
		n := &node{id: i + 1, dir: filepath.Join(dir, fmt.Sprint("node-", i+1))}
		for _, name := range c.cfg.listenerNames() {
			n.listeners = append(n.listeners, listener{name: name})
		}
		c.nodes = append(c.nodes, n)
	}
	if err := c.choosePorts(); err != nil {
		return err
	}
	c.id = newClusterID()
	for _, n := range c.nodes {
		if err := c.format(n); err != nil {
			return err
		}
		if err := c.launch(n); err != nil {
			return err
		}
	}
	return c.ready()
}

// newClusterID returns a random id as Kafka writes it: 16 bytes in base64,
// not beginning with a dash.
func newClusterID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// choosePorts finds free ports, all of them before any is given back.
func (c *Cluster) choosePorts() error {
	var taken []net.Listener
	defer func() {
		for _, l := range taken {
			_ = l.Close() // it was only held
		}
	}()
	for i, n := range c.nodes {
		for j := range n.listeners {
			own := &n.listeners[j]
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			taken = append(taken, l)
			own.port = l.Addr().(*net.TCPAddr).Port
			if own.name != proxiedListener {
				continue
			}
			if own.advertise, err = c.cfg.Through(i, l.Addr().String()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) format(n *node) error {
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(n.propertiesFile(), []byte(c.properties(n)), 0o600); err != nil {
		return err
	}
	args := []string{"format", "-t", c.id, "-c", n.propertiesFile()}
	if c.security != nil {
		args = append(args, c.security.formatArgs()...)
	}
	err := c.tool("kafka.tools.StorageTool", args...)
	return err
}

func (n *node) propertiesFile() string { return filepath.Join(n.dir, "server.properties") }
func (n *node) logFile() string        { return filepath.Join(n.dir, "kafka.log") }

// tool runs one of Kafka's own command line tools to its end.
func (c *Cluster) tool(class string, args ...string) error {
	all := append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", c.libs + "/*", class}, args...)
	if out, err := exec.Command("java", all...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", class, args[0], err, out)
	}
	return nil
}

func (c *Cluster) launch(n *node) error {
	log, err := os.OpenFile(n.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-Xms64m", fmt.Sprintf("-Xmx%dm", c.cfg.heap()), "-XX:+UseSerialGC",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", c.libs + "/*"}
	if len(c.nodes) > 1 { // they start and restart on few cores: compile quickly rather than well
		args = append(args, "-XX:TieredStopAtLevel=1")
	}
	cmd := exec.Command("java", append(args, "kafka.Kafka", n.propertiesFile())...)
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd, n.done = cmd, make(chan struct{})
	go func() { // ends with the process; halt waits for it
		defer close(n.done)
		_ = cmd.Wait() // how it ended is told by its log
	}()
	return nil
}

// ready waits until every running node knows all running nodes as brokers.
func (c *Cluster) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	running := 0
	for _, n := range c.nodes {
		if n.cmd != nil {
			running++
		}
	}
	for _, n := range c.nodes {
		if n.cmd == nil {
			continue
		}
		if err := n.wait(ctx, running); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) wait(ctx context.Context, brokers int) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := probe(n.addr(plainListener), brokers)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-n.done:
			return fmt.Errorf("node %d ended: %s", n.id, n.logTail())
		case <-ctx.Done():
			return fmt.Errorf("node %d did not come up: %w\n%s", n.id, err, n.logTail())
		}
	}
}

func probe(addr string, brokers int) error {
	cfg := sarama.NewConfig()
	cfg.Net.DialTimeout, cfg.Net.ReadTimeout = time.Second, 5*time.Second
	b := sarama.NewBroker(addr)
	if err := b.Open(cfg); err != nil {
		return err
	}
	defer b.Close()
	res, err := b.GetMetadata(&sarama.MetadataRequest{Version: 5})
	if err != nil {
		return err
	}
	if len(res.Brokers) < brokers {
		return fmt.Errorf("%d of %d brokers", len(res.Brokers), brokers)
	}
	return nil
}

// logTail returns the end of the node's log. The first lines say most when a
// node does not start, the last ones when it stops.
func (n *node) logTail() string {
	b, err := os.ReadFile(n.logFile())
	if err != nil {
		return err.Error()
	}
	const part = 3000
	if len(b) > 2*part {
		b = bytes.Join([][]byte{b[:part], b[len(b)-part:]}, []byte("\n[…]\n"))
	}
	return string(b)
}

// halt ends a node by the signal and waits; after stopTimeout it is killed.
func (n *node) halt(sig os.Signal) error {
	if n.cmd == nil {
		return nil
	}
	err := n.cmd.Process.Signal(sig)
	t := time.NewTimer(stopTimeout)
	defer t.Stop()
	select {
	case <-n.done:
	case <-t.C:
		err = errors.Join(err, fmt.Errorf("node %d did not stop within %v", n.id, stopTimeout), n.cmd.Process.Kill())
		<-n.done
	}
	n.cmd = nil
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return err
}

// Brokers returns the addresses of all nodes, running or not, without TLS and
// SASL.
func (c *Cluster) Brokers() []string { return c.addrs(plainListener) }

// ProxiedBrokers returns the addresses that lead through Config.Through.
func (c *Cluster) ProxiedBrokers() []string {
	var out []string
	for _, n := range c.nodes {
		for _, l := range n.listeners {
			if l.name == proxiedListener {
				out = append(out, l.advertise)
			}
		}
	}
	return out
}

func (c *Cluster) addrs(listener string) []string {
	out := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		out[i] = n.addr(listener)
	}
	return out
}

// Stop ends a node cleanly. Nodes count from 0.
func (c *Cluster) Stop(tb testing.TB, i int) {
	tb.Helper()
	if err := c.nodes[i].halt(os.Interrupt); err != nil {
		tb.Fatalf("stop node %d: %v", i, err)
	}
}

// Kill ends a node at once, as a crash would.
func (c *Cluster) Kill(tb testing.TB, i int) {
	tb.Helper()
	if err := c.nodes[i].halt(os.Kill); err != nil {
		tb.Fatalf("kill node %d: %v", i, err)
	}
}

// Restart starts a node that was stopped or killed, on its old ports and
// data, and waits until it serves.
func (c *Cluster) Restart(tb testing.TB, i int) {
	tb.Helper()
	if err := c.Launch(i); err != nil {
		tb.Fatalf("restart node %d: %v", i, err)
	}
	if err := c.ready(); err != nil {
		tb.Fatalf("restart node %d: %v", i, err)
	}
}

// Launch is Restart without waiting.
func (c *Cluster) Launch(i int) error { return c.launch(c.nodes[i]) }

// Crash is Kill for a program that is not a test.
func (c *Cluster) Crash(i int) error { return c.nodes[i].halt(os.Kill) }

// Ready waits until every running node serves and knows the others.
func (c *Cluster) Ready() error { return c.ready() }

// Close ends all nodes at once; their data is the caller's to remove.
// Closing twice does nothing.
func (c *Cluster) Close() {
	for _, n := range c.nodes {
		_ = n.halt(os.Kill) // there is nothing left to save
	}
}
