package systemtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/systemtest/realkafka"
)

// Brokers that cannot keep a transaction are told apart from those that are
// busy: the error says what is missing, and which option does without.
func TestBrokersWithoutTransactionsAreToldApart(t *testing.T) {
	cannot := func(t *testing.T, c *kafka.Client, s service, missing string) {
		t.Helper()
		p, err := s.processor(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		err = p.Run(ctx)
		if !errors.Is(err, kafka.ErrUnsupported) {
			t.Fatalf("run: %v, want ErrUnsupported", err)
		}
		for _, want := range []string{missing, "WithGuarantee(WithoutTransactions)"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %q", want, err)
			}
		}
		l := newLoad(t, c, s.Input)
		l.emit(t, 200)
		r := s.start(t, c, processor.WithGuarantee(processor.WithoutTransactions))
		l.counted(t, c, s.Group)
		r.stop(t)
	}
	t.Run("protocol of 2.4", func(t *testing.T) {
		b := onFake(t)
		cfg := sarama.NewConfig()
		cfg.Version = sarama.V2_4_0_0
		c, err := kafka.NewClient(b.brokers, kafka.WithSarama(cfg))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		s := newService(t, b)
		b.topics(t, c, 2, s.Input)
		cannot(t, c, s, "2.5")
	})
	t.Run("no transaction log", func(t *testing.T) {
		b := broker{brokers: realkafka.Start(t, realkafka.Config{Properties: map[string]string{
			"transaction.state.log.replication.factor": "3",
		}}).Brokers()}
		c, s := b.client(t), newService(t, b)
		b.topics(t, c, 2, s.Input)
		cannot(t, c, s, "transaction.state.log.replication.factor")
	})
}
