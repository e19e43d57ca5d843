package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// listen accepts connections and hands them to serve until the test ends.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // ends when the listener is closed
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			serve(c)
		}
	}()
	return l.Addr().String()
}

// within fails the test if f takes longer than a broker that does not answer
// may delay anything.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }() // ends with f; waited for below
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatalf("%s hangs", what)
	}
}

// plainConns are connections that stand without a word from the broker.
func plainConns(t *testing.T) *conns {
	t.Helper()
	c := testDriver(t, "b:1").newConns("test")
	cfg := *c.cfg
	cfg.ApiVersionsRequest = false
	c.cfg = &cfg
	return c
}

func TestContextEndsOpeningAConnectionThatIsNeverAnswered(t *testing.T) {
	d := testDriver(t, "b:1")
	c := d.newConns("test")
	addr := listen(t, func(net.Conn) {}) // silence after the handshake
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	within(t, "opening", func() {
		if _, err := c.broker(ctx, addr); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
	within(t, "closing", c.close)
}

func TestContextEndsARequestInFlight(t *testing.T) {
	addr := listen(t, func(net.Conn) {})
	c := plainConns(t)
	defer c.close()
	ctx, cancel := context.WithCancel(t.Context())
	within(t, "the request", func() {
		err := c.do(ctx, addr, func(b *sarama.Broker) error {
			time.AfterFunc(50*time.Millisecond, cancel)
			_, err := b.GetMetadata(&sarama.MetadataRequest{Version: 5, Topics: []string{"t"}}) // is not answered
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestCloseEndsARequestInFlight(t *testing.T) {
	addr := listen(t, func(net.Conn) {})
	c := plainConns(t)
	sent, result := make(chan struct{}), make(chan error, 1)
	go func() { // ends when the connection is cut; its result is waited for
		result <- c.do(context.Background(), addr, func(b *sarama.Broker) error {
			close(sent)
			_, err := b.GetMetadata(&sarama.MetadataRequest{Version: 5, Topics: []string{"t"}})
			return err
		})
	}()
	<-sent
	within(t, "closing", c.close)
	if err := <-result; !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
	if _, err := c.broker(t.Context(), addr); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestADroppedConnectionIsDialledAgain(t *testing.T) {
	addr := listen(t, func(net.Conn) {})
	c := plainConns(t)
	defer c.close()
	first, err := c.broker(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.broker(t.Context(), addr); err != nil || again != first {
		t.Errorf("a second connection: %v", err)
	}
	c.drop(addr)
	if again, err := c.broker(t.Context(), addr); err != nil || again == first {
		t.Errorf("the dropped connection is used again: %v", err)
	}
}

func TestNobodyListeningIsTroubleThatMayPass(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	c := testDriver(t, "b:1").newConns("test")
	defer c.close()
	if _, err := c.broker(t.Context(), addr); err == nil || !retriable(err) {
		t.Errorf("error %v", err)
	}
}

func TestAnUntrustedCertificateIsAnAuthenticationError(t *testing.T) {
	certificate := selfSigned(t)
	addr := listen(t, func(c net.Conn) {
		_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}}).Handshake() // the client breaks it off
	})
	d := testDriver(t, addr)
	cfg := *d.cfg
	cfg.Net.TLS.Enable = true
	d.cfg = &cfg
	c := d.newConns("test")
	defer c.close()
	err := c.do(t.Context(), addr, func(b *sarama.Broker) error {
		_, err := b.GetMetadata(&sarama.MetadataRequest{Version: 5, Topics: []string{"t"}})
		return err
	})
	if !errors.Is(err, ErrAuthentication) {
		t.Errorf("error %v", err)
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
