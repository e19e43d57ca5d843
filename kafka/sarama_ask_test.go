package kafka

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// inspected is a broker that knows the versions of two requests: it answers
// sarama's question for them, and any other request with body.
func inspected(t *testing.T, keys []int16, body []byte) (serve func(net.Conn), asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	return func(c net.Conn) {
		go func() { // ends when the connection does
			for {
				var size [4]byte
				if _, err := io.ReadFull(c, size[:]); err != nil {
					return
				}
				request := make([]byte, binary.BigEndian.Uint32(size[:]))
				if _, err := io.ReadFull(c, request); err != nil {
					return
				}
				answer := body
				if binary.BigEndian.Uint16(request) == 18 {
					answer = versionsAnswer(keys)
				} else {
					asked.Add(1)
				}
				out := binary.BigEndian.AppendUint32(nil, uint32(len(answer)+4))
				out = append(out, request[4:8]...) // its number
				if _, err := c.Write(append(out, answer...)); err != nil {
					return
				}
			}
		}()
	}, asked
}

func versionsAnswer(keys []int16) []byte {
	b := binary.BigEndian.AppendUint16(nil, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(keys)))
	for _, k := range keys {
		b = binary.BigEndian.AppendUint16(b, uint16(k))
		b = binary.BigEndian.AppendUint16(b, 0)
		b = binary.BigEndian.AppendUint16(b, 4)
	}
	return b
}

// bareConns are connections for bare requests, over TLS if roots is set.
func bareConns(t *testing.T, secure bool) *conns {
	t.Helper()
	c := plainConns(t).inspecting()
	c.cfg.Net.ReadTimeout = 2 * time.Second
	if secure {
		c.cfg.Net.TLS.Enable = true
		c.cfg.Net.TLS.Config = &tls.Config{InsecureSkipVerify: true} // the broker's is signed by nobody
	}
	t.Cleanup(c.close)
	return c
}

// epochAnswer is the body of an answer that tells of one partition.
func epochAnswer(code sarama.KError, tp TopicPartition, epoch int32, end int64) []byte {
	b := binary.BigEndian.AppendUint32(nil, 0)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = appendString(b, tp.Topic)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint16(b, uint16(code))
	b = binary.BigEndian.AppendUint32(b, uint32(tp.Partition))
	b = binary.BigEndian.AppendUint32(b, uint32(epoch))
	return binary.BigEndian.AppendUint64(b, uint64(end))
}

func TestABareRequestSharesItsConnectionWithSaramas(t *testing.T) {
	tp := TopicPartition{"t", 3}
	for _, secure := range []bool{false, true} {
		serve, asked := inspected(t, []int16{18, 23}, epochAnswer(0, tp, 7, 99))
		accept := serve
		if secure {
			certificate := selfSigned(t)
			accept = func(c net.Conn) {
				serve(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}}))
			}
		}
		addr := listen(t, accept)
		c := bareConns(t, secure)
		for range 3 { // sarama's request for versions comes before each
			body, err := c.ask(soon(t), addr, bareRequest{epochEndKey, epochEndVersion, epochEndBody(tp, 4, 6)})
			if err != nil {
				t.Fatalf("secure %t: %v", secure, err)
			}
			if got, err := decodeEpochEnd(body, tp); err != nil || got.epoch != 7 || got.end != 99 {
				t.Fatalf("secure %t: answer %+v, %v", secure, got, err)
			}
		}
		if n := asked.Load(); n != 3 {
			t.Errorf("secure %t: %d bare requests", secure, n)
		}
	}
}

func TestABareRequestThatABrokerDoesNotKnowIsNotSent(t *testing.T) {
	serve, asked := inspected(t, []int16{18}, nil)
	addr := listen(t, serve)
	_, err := bareConns(t, false).ask(soon(t), addr, bareRequest{epochEndKey, epochEndVersion, nil})
	if !errors.Is(err, ErrUnsupported) || asked.Load() != 0 {
		t.Errorf("error %v after %d requests, want ErrUnsupported and none", err, asked.Load())
	}
}

func TestAnAnswerToABareRequestThatIsCutOffOrOfSomethingElseIsRefused(t *testing.T) {
	tp := TopicPartition{"t", 3}
	whole := epochAnswer(0, tp, 7, 99)
	for n := range whole {
		if _, err := decodeEpochEnd(whole[:n], tp); err == nil {
			t.Fatalf("%d of %d bytes are taken for an answer", n, len(whole))
		}
	}
	for _, other := range []TopicPartition{{"u", 3}, {"t", 2}} {
		if _, err := decodeEpochEnd(whole, other); err == nil {
			t.Errorf("the answer for %s is taken for one for %s", tp, other)
		}
	}
}

func TestABareRequestThatIsNotAnsweredEndsWithItsContext(t *testing.T) {
	addr := listen(t, func(net.Conn) {})
	c := bareConns(t, false)
	ctx := soon(t)
	within(t, "the request", func() {
		if _, err := c.ask(ctx, addr, bareRequest{epochEndKey, epochEndVersion, nil}); err == nil {
			t.Error("answered by silence")
		}
	})
}

// The numbers are those of java.lang.String.hashCode.
func TestAGroupIsPlacedAsBrokersDo(t *testing.T) {
	for group, want := range map[string]int32{
		"": 0, "a": 47, "orders": 31, "kafkatest-group-1796000156647009194-13": 47,
		"polygenelubricants": 0, // the hash without an absolute value
		"größe-😀":            21,
	} {
		if got := groupPartition(group, 50); got != want {
			t.Errorf("group %q: partition %d, want %d", group, got, want)
		}
	}
}
