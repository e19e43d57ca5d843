package systemtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/systemtest/realkafka"
	"github.com/rekastream/reka/view"
)

// Every connection's credentials expire after five seconds, on all brokers:
// fetchers, producers, the member, transactions and admin renew theirs while
// records flow, and nothing is lost, repeated or ended.
func TestCredentialsThatExpireAreRenewedOnEveryConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute of waiting for credentials to expire")
	}
	cluster := realkafka.Start(t, realkafka.Config{Nodes: 3, Secure: true, Properties: map[string]string{"connections.max.reauth.ms": "5000"}})
	user := cluster.Security()
	c, _ := connect(t, door{"SCRAM", cluster.SASLBrokers(), func(cfg *sarama.Config) {
		useSASL(cfg, sarama.SASLTypeSCRAMSHA256, user.User, user.Password)
	}})
	s := newService(t, broker{brokers: cluster.SASLBrokers()})
	broker{brokers: cluster.SASLBrokers()}.topics(t, c, 6, s.Input)
	r := s.start(t, c, processor.WithReplication(3))
	rows, err := view.New(c, reka.GroupTable(s.Group, codec.Codec[tally](tallyCodec{})), view.WithStorage(storage.Memory()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	viewEnded := make(chan error, 1)
	go func() { viewEnded <- rows.Run(ctx) }() // waited for at the end

	l := newLoad(t, c, s.Input)
	var slowest time.Duration
	for begun := time.Now(); time.Since(begun) < 30*time.Second; {
		at := time.Now()
		l.emit(t, 20)
		if _, err := c.Driver().Admin().Topics(ctx, s.Input); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(at))
		select {
		case err := <-r.result:
			t.Fatalf("the processor ended: %v", err)
		case err := <-viewEnded:
			t.Fatalf("the view ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Logf("slowest of the writes and questions: %v", slowest)
	l.counted(t, c, s.Group)
	missing := ""
	until(t, func() bool {
		missing = ""
		for key, want := range l.sent {
			if got, _, err := rows.Get(key); err != nil || got.Count != want {
				missing = fmt.Sprintf("view: %s is %d, %v, want %d", key, got.Count, err, want)
			}
		}
		return missing == ""
	}, func() string { return missing })
	r.stop(t)
	cancel()
	if err := <-viewEnded; err != nil {
		t.Errorf("view: %v", err)
	}
}
