package transactions

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// wire is a dialer whose connections lose answers, or hold requests back, of
// chosen kinds. sarama writes each request with one Write.
type wire struct {
	mu    sync.Mutex
	rules []*rule
	seen  map[int16]int // requests by key
}

// rule says what becomes of the next requests of one kind.
type rule struct {
	key  int16
	left int
	late bool // hold the request back, instead of losing its answer

	held []heldRequest
}

type heldRequest struct {
	conn  net.Conn
	bytes []byte
}

// Keys of the requests of transactions.
const (
	produceKey       = 0
	initKey          = 22
	addPartitionsKey = 24
	addOffsetsKey    = 25
	endKey           = 26
	offsetsKey       = 28
)

var errLost = errors.New("the answer is lost")

// lose makes the next n requests of a kind reach the broker, whose answers
// then break the connection.
func (w *wire) lose(key int16, n int) *rule { return w.add(&rule{key: key, left: n}) }

// hold makes the next n requests of a kind stay on their way, while their
// sender sees its connection break.
func (w *wire) hold(key int16, n int) *rule { return w.add(&rule{key: key, left: n, late: true}) }

func (w *wire) add(r *rule) *rule {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = append(w.rules, r)
	return r
}

// stop ends a rule.
func (w *wire) stop(r *rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.left = 0
}

// deliver lets requests that were held back arrive, and waits for their
// answers.
func (w *wire) deliver(r *rule) error {
	w.mu.Lock()
	held := r.held
	r.held = nil
	w.mu.Unlock()
	if len(held) == 0 {
		return errors.New("nothing was held back")
	}
	for _, h := range held { // some may share a connection
		if err := h.arrive(); err != nil {
			return err
		}
	}
	for _, h := range held {
		_ = h.conn.Close() // maybe again
	}
	return nil
}

// arrive sends the request and waits for its answer.
func (h heldRequest) arrive() error {
	if err := h.conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := h.conn.Write(h.bytes); err != nil {
		return err
	}
	var size [4]byte
	if _, err := io.ReadFull(h.conn, size[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, h.conn, int64(binary.BigEndian.Uint32(size[:])))
	return err
}

// count returns how many requests of a kind were written.
func (w *wire) count(key int16) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[key]
}

// Dial is for sarama.
func (w *wire) Dial(network, addr string) (net.Conn, error) {
	c, err := net.Dial(network, addr)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: c, w: w}, nil
}

type wireConn struct {
	net.Conn
	w *wire

	mu   sync.Mutex
	lost bool // the next answer is
	kept bool // the connection is kept for a request that comes late
}

func (c *wireConn) Write(b []byte) (int, error) {
	switch c.match(b) {
	case "late":
		return len(b), nil
	case "lose":
		c.mu.Lock()
		c.lost = true
		c.mu.Unlock()
	}
	return c.Conn.Write(b)
}

func (c *wireConn) match(b []byte) string {
	if len(b) < 8 {
		return ""
	}
	key := int16(binary.BigEndian.Uint16(b[4:]))
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.w.seen == nil {
		c.w.seen = map[int16]int{}
	}
	c.w.seen[key]++
	for _, r := range c.w.rules {
		if r.key != key || r.left == 0 {
			continue
		}
		r.left--
		if !r.late {
			return "lose"
		}
		r.held = append(r.held, heldRequest{c.Conn, append([]byte(nil), b...)})
		c.mu.Lock()
		c.kept = true
		c.mu.Unlock()
		_ = c.Conn.SetReadDeadline(time.Now()) // the reader sees it break
		return "late"
	}
	return ""
}

func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost || c.kept {
		if !c.kept {
			_ = c.Conn.Close()
		}
		return 0, errLost
	}
	return n, err
}

func (c *wireConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *wireConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept {
		return nil
	}
	return c.Conn.Close()
}
