package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/IBM/sarama"
)

// largestAnswer bounds what ask reads: its answers are of a few partitions.
const largestAnswer = 1 << 20

// inspecting lets the connections speak requests newer than the configured
// version, if the brokers say that they know them, and requests that sarama
// has no form of. It is called before first use.
func (c *conns) inspecting() *conns {
	cfg := *c.cfg
	if cfg.ApiVersionsRequest && !cfg.Version.IsAtLeast(sarama.V3_0_0_0) {
		cfg.Version = sarama.V3_0_0_0
	}
	c.cfg, c.bare = &cfg, true
	return c
}

// ask sends a request that sarama has no form of: one with a header of
// version 1, and its answer one of version 0. It returns the answer's body.
// The error is an ErrUnsupported if the broker does not know the request in
// this version.
//
// Only whoever has a link's turn writes to its connection, and sarama reads
// from it only while one of its own requests is out. So between two of them
// the connection may be used directly. The request for versions before it is
// sarama's, which also renews a session that is about to expire.
func (c *conns) ask(ctx context.Context, addr string, r bareRequest) (body []byte, err error) {
	err = c.use(ctx, addr, func(l *link) error {
		known, err := l.b.ApiVersions(&sarama.ApiVersionsRequest{})
		if err != nil {
			return err
		}
		if !r.in(known.ApiKeys) {
			return sarama.ErrUnsupportedVersion
		}
		body, err = l.exchange(r.encode(c.cfg.ClientID), c.cfg.Net.ReadTimeout)
		return err
	})
	return body, err
}

// bareRequest is a request as bytes.
type bareRequest struct {
	key, version int16
	body         []byte
}

func (r bareRequest) in(keys []sarama.ApiVersionsResponseKey) bool {
	for _, k := range keys {
		if k.ApiKey == r.key {
			return k.MinVersion <= r.version && r.version <= k.MaxVersion
		}
	}
	return false
}

// bareCorrelation is the number of every bare request: one is out at a time.
const bareCorrelation = 0x7265_6b61

func (r bareRequest) encode(clientID string) []byte {
	b := make([]byte, 4, 64+len(r.body))
	b = binary.BigEndian.AppendUint16(b, uint16(r.key))
	b = binary.BigEndian.AppendUint16(b, uint16(r.version))
	b = binary.BigEndian.AppendUint32(b, bareCorrelation)
	b = appendString(b, clientID)
	b = append(b, r.body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func appendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

// exchange writes a request and reads its answer.
func (l *link) exchange(request []byte, timeout time.Duration) ([]byte, error) {
	if err := l.wire.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := l.wire.Write(request); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(l.wire, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if id := binary.BigEndian.Uint32(head[4:]); id != bareCorrelation || size < 4 || size > largestAnswer {
		return nil, fmt.Errorf("%w: %d bytes with number %x", sarama.ErrIncompleteResponse, size, id)
	}
	body := make([]byte, size-4)
	_, err := io.ReadFull(l.wire, body)
	return body, err
}

// bareReader takes an answer apart. What is cut off reads as zero and is
// noted.
type bareReader struct {
	b   []byte
	cut bool
}

func (r *bareReader) take(n int) []byte {
	if n < 0 || len(r.b) < n {
		r.cut, r.b = true, nil
		return make([]byte, max(n, 0))
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *bareReader) int16() int16 { return int16(binary.BigEndian.Uint16(r.take(2))) }
func (r *bareReader) int32() int32 { return int32(binary.BigEndian.Uint32(r.take(4))) }
func (r *bareReader) int64() int64 { return int64(binary.BigEndian.Uint64(r.take(8))) }

func (r *bareReader) string() string { return string(r.take(int(r.int16()))) }
