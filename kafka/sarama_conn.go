package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// conns are the connections of one role: one for each broker address, opened
// when it is asked for. Each is driven by one goroutine at a time, because a
// sarama Broker holds its mutex over a whole request; different addresses may
// be used at once. Roles never share a connection, so that no long poll or
// parked join delays another role.
type conns struct {
	role string
	cfg  *sarama.Config
	bare bool // links keep what ask needs

	mu     sync.Mutex
	links  map[string]*link
	closed bool

	wg sync.WaitGroup // opening and closing of links; close waits for them
}

// newConns returns connections for a role. Who asks for them closes them.
func (d *saramaDriver) newConns(role string) *conns {
	return &conns{role: role, cfg: d.cfg, links: map[string]*link{}}
}

// patient lets the brokers take d longer to answer than the configured read
// timeout: for requests that a broker parks. It is called before first use.
func (c *conns) patient(d time.Duration) *conns {
	cfg := *c.cfg
	cfg.Net.ReadTimeout += d
	c.cfg = &cfg
	return c
}

// broker returns an open connection to addr. The error is ErrClosed, an
// ErrAuthentication, the context's, or trouble of the network.
func (c *conns) broker(ctx context.Context, addr string) (*sarama.Broker, error) {
	l, err := c.link(ctx, addr)
	if err != nil {
		return nil, err
	}
	return l.b, nil
}

// do runs f, which sends requests over the connection to addr and returns
// their transport errors; calls for one address wait for each other. If ctx
// ends first the connection is cut, which ends f. After an error the
// connection is dropped.
func (c *conns) do(ctx context.Context, addr string, f func(*sarama.Broker) error) error {
	return c.use(ctx, addr, func(l *link) error { return f(l.b) })
}

func (c *conns) use(ctx context.Context, addr string, f func(*link) error) error {
	l, err := c.link(ctx, addr)
	if err != nil {
		return err
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	stop := context.AfterFunc(ctx, l.cut)
	err = f(l)
	<-l.turn
	if !stop() {
		c.dropLink(addr, l)
		return context.Cause(ctx)
	}
	if err != nil {
		c.dropLink(addr, l)
		return c.failure(addr, err)
	}
	return nil
}

// drop closes the connection to addr, if there is one, so that the next call
// dials again. Whatever is in flight on it fails at once.
func (c *conns) drop(addr string) {
	c.mu.Lock()
	l := c.links[addr]
	c.mu.Unlock()
	if l != nil {
		c.dropLink(addr, l)
	}
}

// close closes all connections and waits for their goroutines. What is in
// flight fails at once, and so does every later call.
func (c *conns) close() {
	c.mu.Lock()
	c.closed = true
	links := c.links
	c.links = nil
	for _, l := range links {
		c.shutLocked(l)
	}
	c.mu.Unlock()
	c.wg.Wait()
}

func (c *conns) link(ctx context.Context, addr string) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	l := c.links[addr]
	if l == nil {
		l = newLink(addr)
		l.bare = c.bare
		c.links[addr] = l
		c.wg.Go(func() { l.open(c.cfg) }) // ends when the connection stands or failed; close waits for it
	}
	c.mu.Unlock()

	select {
	case <-l.up:
	case <-ctx.Done():
		c.dropLink(addr, l)
		return nil, context.Cause(ctx)
	}
	if l.err != nil {
		c.dropLink(addr, l)
		return nil, c.failure(addr, l.err)
	}
	return l, nil
}

// failure types a transport error; a connection that broke because conns was
// closed is ErrClosed.
func (c *conns) failure(addr string, err error) error {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return ErrClosed
	}
	return fmt.Errorf("%s: %w", c.role, connectionError(addr, err))
}

func (c *conns) dropLink(addr string, l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.links[addr] == l {
		delete(c.links, addr)
		c.shutLocked(l)
	}
}

// shutLocked cuts l at once and closes its Broker in the background: that
// takes until a request in flight has noticed.
func (c *conns) shutLocked(l *link) {
	l.cut()
	c.wg.Go(l.close) // ends when the Broker is closed; close waits for it
}

// link is one connection. sarama opens in the background, holding a mutex
// that every other call waits for, and knows no contexts. So the link dials
// itself, through sarama's hook for proxies, and keeps the network connection
// to cut it from outside: that ends whatever sarama is waiting for.
type link struct {
	b    *sarama.Broker
	up   chan struct{} // closed when opening has ended
	err  error         // why opening failed; written before up is closed
	turn chan struct{} // holds a token while somebody is in use
	bare bool          // the link does TLS itself, see ask

	ctx    context.Context // ends with cut
	cancel context.CancelFunc

	mu   sync.Mutex
	conn net.Conn // what cut closes

	wire net.Conn // what requests go over; written by open, read under turn
}

func newLink(addr string) *link {
	l := &link{b: sarama.NewBroker(addr), up: make(chan struct{}), turn: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *link) open(cfg *sarama.Config) {
	defer close(l.up)
	own := *cfg // sarama writes into it
	own.Net.Proxy.Enable, own.Net.Proxy.Dialer = true, &linkDialer{link: l, cfg: cfg}
	if l.bare {
		own.Net.TLS.Enable, own.Net.TLS.Config = false, nil
	}
	if l.err = l.b.Open(&own); l.err != nil {
		return
	}
	up, err := l.b.Connected()
	if err == nil && !up {
		err = sarama.ErrNotConnected
	}
	l.err = err
}

// cut ends the network connection, or the dialling of it.
func (l *link) cut() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

func (l *link) close() {
	<-l.up
	_ = l.b.Close() // reports only that it was closed before
}

// keep takes note of the connection, unless the link was cut meanwhile.
func (l *link) keep(conn net.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		_ = conn.Close()
		return net.ErrClosed
	}
	l.conn = conn
	return nil
}

// linkDialer dials for a link as its configuration says, with the proxy that
// it names if there is one.
type linkDialer struct {
	link *link
	cfg  *sarama.Config
}

type contextDialer interface {
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

// Dial is called by sarama.
func (d *linkDialer) Dial(network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.link.ctx, d.cfg.Net.DialTimeout)
	defer cancel()
	conn, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if err := d.link.keep(conn); err != nil {
		return nil, err
	}
	if d.link.bare && d.cfg.Net.TLS.Enable {
		if conn, err = d.secure(ctx, conn, addr); err != nil {
			return nil, err
		}
	}
	d.link.wire = conn
	return conn, nil
}

// secure does what sarama does when it is told to use TLS.
func (d *linkDialer) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	cfg := d.cfg.Net.TLS.Config.Clone()
	if cfg == nil {
		cfg = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		cfg.ServerName = host
	}
	secured := tls.Client(conn, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

func (d *linkDialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if !d.cfg.Net.Proxy.Enable {
		direct := net.Dialer{KeepAlive: d.cfg.Net.KeepAlive, LocalAddr: d.cfg.Net.LocalAddr}
		return direct.DialContext(ctx, network, addr)
	}
	if proxy, ok := d.cfg.Net.Proxy.Dialer.(contextDialer); ok {
		return proxy.DialContext(ctx, network, addr)
	}
	conn, err := d.cfg.Net.Proxy.Dialer.Dial(network, addr)
	if err == nil && conn == nil {
		err = errors.New("the proxy dialer returned no connection")
	}
	return conn, err
}
