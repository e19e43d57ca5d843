package systemtest

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/systemtest/realkafka"
)

// door is one way to connect.
type door struct {
	name    string
	brokers []string
	set     func(*sarama.Config)
}

func TestEveryMechanismConnects(t *testing.T) {
	c := realkafka.Start(t, realkafka.Config{Secure: true})
	s := c.Security()
	over := func(set func(*sarama.Config)) func(*sarama.Config) {
		return func(cfg *sarama.Config) {
			useTLS(cfg, s.TLS())
			set(cfg)
		}
	}
	doors := []door{{"TLS", c.TLSBrokers(), func(cfg *sarama.Config) { useTLS(cfg, s.TLS()) }}}
	for _, mechanism := range []sarama.SASLMechanism{
		sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512, sarama.SASLTypeOAuth,
	} {
		set := func(cfg *sarama.Config) { useSASL(cfg, mechanism, s.User, s.Password) }
		doors = append(doors,
			door{string(mechanism), c.SASLBrokers(), set},
			door{string(mechanism) + " over TLS", c.SASLTLSBrokers(), over(set)})
	}
	for i, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			client, _ := connect(t, d)
			roundTrip(t, client.Driver(), fmt.Sprint("security-", i))
		})
	}
	t.Run("refusals", func(t *testing.T) { testRefusals(t, c) })
}

// testRefusals: whoever is refused hears it within seconds, typed, and
// nothing that is logged or returned holds the password.
func testRefusals(t *testing.T, c *realkafka.Cluster) {
	s := c.Security()
	const wrong = "hunter2-wrong-password"
	doors := []door{{"untrusted certificate", c.TLSBrokers(), func(cfg *sarama.Config) {
		useTLS(cfg, &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12})
	}}}
	for _, mechanism := range []sarama.SASLMechanism{sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512} {
		doors = append(doors, door{"wrong password, " + string(mechanism), c.SASLBrokers(), func(cfg *sarama.Config) {
			useSASL(cfg, mechanism, s.User, wrong)
		}})
	}
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			client, logs := connect(t, d)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, asked := client.Driver().Admin().Topics(ctx, "any")
			joined := join(t, ctx, client.Driver())
			for what, err := range map[string]error{"admin": asked, "member": joined} {
				if !errors.Is(err, kafka.ErrAuthentication) {
					t.Errorf("%s: %v, want ErrAuthentication", what, err)
				}
				if err != nil && strings.Contains(err.Error(), wrong) {
					t.Errorf("%s: the password is in the error", what)
				}
			}
			for _, e := range logs.All() {
				if strings.Contains(fmt.Sprint(e.Message, e.ContextMap()), wrong) {
					t.Errorf("the password is in the log: %s", e.Message)
				}
			}
		})
	}
}

// join returns the error that ends a member.
func join(t *testing.T, ctx context.Context, d kafka.Driver) error {
	t.Helper()
	lost := make(chan error, 1) // the member does not wait for the test
	m, err := d.NewMember(kafka.MemberConfig{
		Group: "refused", Protocol: "reka",
		Subscribe: func() kafka.Subscription { return kafka.Subscription{Topics: []string{"any"}} },
		Plan: func(context.Context, []kafka.GroupMember) (map[string]kafka.Share, error) {
			return nil, nil
		},
		Assigned: func(kafka.Assignment) {},
		Lost: func(err error) {
			select {
			case lost <- err:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Start()
	select {
	case err := <-lost:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func connect(t *testing.T, d door) (*kafka.Client, *observer.ObservedLogs) {
	t.Helper()
	cfg := sarama.NewConfig()
	d.set(cfg)
	core, logs := observer.New(zap.DebugLevel)
	client, err := kafka.NewClient(d.brokers, kafka.WithSarama(cfg), kafka.WithLogger(zap.New(core)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // a connection that was refused may end badly
	return client, logs
}

// roundTrip writes one record and reads it back, and asks what goes over
// connections of another make.
func roundTrip(t *testing.T, d kafka.Driver, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := d.Admin().CreateTopics(ctx, kafka.TopicSpec{Name: topic, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	tp := kafka.TopicPartition{Topic: topic}
	p, err := d.NewProducer(kafka.ProducerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	acked := make(chan error, 1) // one run
	p.Produce(kafka.Outgoing{
		TopicPartition: tp, Records: []kafka.Record{{Key: []byte("k"), Value: []byte("v")}},
		Done: func(r kafka.Run) { acked <- r.Err },
	})
	select {
	case err := <-acked:
		if err != nil {
			t.Fatal(err)
		}
	case <-ctx.Done():
		t.Fatal("no acknowledgement")
	}
	if epoch, end, err := d.Admin().EpochEnd(ctx, tp, kafka.NewestEpoch); err != nil || epoch < 0 || end != 1 {
		t.Fatalf("end of epoch %d: %d, %v, want 1", epoch, end, err)
	}
	if writers, err := d.Admin().Writers(ctx, tp); err != nil || len(writers) != 0 {
		t.Fatalf("writers %v, %v, want none", writers, err)
	}
	f, err := d.NewFetcher(kafka.FetcherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make(chan string, 1) // the fetcher does not wait for the test
	f.Follow(kafka.Follow{TopicPartition: tp, Deliver: func(b *kafka.Batch) {
		if b.Err != nil || len(b.Records) > 0 {
			text := fmt.Sprint(b.Err)
			if len(b.Records) > 0 {
				text = string(b.Records[0].Value)
			}
			select {
			case got <- text:
			default:
			}
		}
		b.Release()
	}})
	select {
	case v := <-got:
		if v != "v" {
			t.Fatalf("read %q", v)
		}
	case <-ctx.Done():
		t.Fatal("nothing came back")
	}
}

func useTLS(cfg *sarama.Config, c *tls.Config) {
	cfg.Net.TLS.Enable, cfg.Net.TLS.Config = true, c
}

func useSASL(cfg *sarama.Config, mechanism sarama.SASLMechanism, user, password string) {
	cfg.Net.SASL.Enable = true
	cfg.Net.SASL.Mechanism = mechanism
	cfg.Net.SASL.User, cfg.Net.SASL.Password = user, password
	switch mechanism {
	case sarama.SASLTypeSCRAMSHA256:
		cfg.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: sha256.New} }
	case sarama.SASLTypeSCRAMSHA512:
		cfg.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: sha512.New} }
	case sarama.SASLTypeOAuth:
		cfg.Net.SASL.User, cfg.Net.SASL.Password = "", ""
		cfg.Net.SASL.TokenProvider = unsecuredTokens{subject: user}
	}
}

// scramClient is what sarama wants of a SCRAM implementation.
type scramClient struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	c.ClientConversation = client.NewConversation()
	return nil
}

// unsecuredTokens makes tokens that a broker takes without a signature.
type unsecuredTokens struct{ subject string }

func (u unsecuredTokens) Token() (*sarama.AccessToken, error) {
	now := time.Now().Unix()
	claims := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, u.subject, now, now+600)
	enc := base64.RawURLEncoding
	return &sarama.AccessToken{
		Token: enc.EncodeToString([]byte(`{"alg":"none"}`)) + "." + enc.EncodeToString([]byte(claims)) + ".",
	}, nil
}
