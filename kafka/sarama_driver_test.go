package kafka

import (
	"errors"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

func testDriver(t *testing.T, brokers ...string) *saramaDriver {
	t.Helper()
	d, err := newSaramaDriver(brokers, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestConfigurationOfConnectionsIsKeptAndTheRestIsNot(t *testing.T) {
	given := sarama.NewConfig()
	given.ClientID, given.Version = "billing", sarama.V3_6_0_0
	given.Net.SASL.Enable, given.Net.SASL.User, given.Net.SASL.Password = true, "u", "p"
	given.Producer.Retry.Max, given.Consumer.Fetch.Default = -1, -1 // not valid, and of no concern
	given.Net.MaxOpenRequests = 1
	given.MetricRegistry = nil
	d, err := newSaramaDriver([]string{"b:1"}, given, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	given.ClientID, given.Net.SASL.User = "changed", "changed"
	switch cfg := d.cfg; {
	case cfg.ClientID != "billing" || cfg.Net.SASL.User != "u":
		t.Errorf("client id %q, user %q: not copied", cfg.ClientID, cfg.Net.SASL.User)
	case cfg.Version != sarama.V3_6_0_0:
		t.Errorf("version %s", cfg.Version)
	case cfg.MetricRegistry == nil:
		t.Error("no metric registry: sarama panics")
	case cfg.Net.MaxOpenRequests < 5:
		t.Errorf("%d open requests", cfg.Net.MaxOpenRequests)
	}
	if d := testDriver(t, "b:1"); d.cfg.ClientID != "reka" || !d.cfg.Version.IsAtLeast(sarama.V2_8_0_0) {
		t.Errorf("defaults: client id %q, version %s", d.cfg.ClientID, d.cfg.Version)
	}
}

func TestConfigurationThatCannotWorkIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*sarama.Config)
		names  string
	}{
		"old protocol":       {func(c *sarama.Config) { c.Version = sarama.V0_11_0_0 }, "Version"},
		"proxy without dial": {func(c *sarama.Config) { c.Net.Proxy.Enable = true }, "Proxy"},
		"SASL without user":  {func(c *sarama.Config) { c.Net.SASL.Enable = true }, "SASL.User"},
		"SCRAM without generator": {func(c *sarama.Config) {
			c.Net.SASL.Enable, c.Net.SASL.User, c.Net.SASL.Password = true, "u", "p"
			c.Net.SASL.Mechanism = sarama.SASLTypeSCRAMSHA512
		}, "SCRAMClientGeneratorFunc"},
	} {
		cfg := sarama.NewConfig()
		c.change(cfg)
		_, err := newSaramaDriver([]string{"b:1"}, cfg, zap.NewNop())
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: error %v does not name %s", name, err, c.names)
		}
	}
}

type closer struct{ n int }

func (c *closer) Close() error { c.n++; return nil }

func TestCloseClosesWhatWasMadeOnceAndRefusesMore(t *testing.T) {
	d := testDriver(t, "b:1")
	kept, gone := &closer{}, &closer{}
	for _, c := range []*closer{kept, gone} {
		if err := d.adopt(c); err != nil {
			t.Fatal(err)
		}
	}
	d.release(gone)
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if kept.n != 1 || gone.n != 0 {
		t.Errorf("closed %d and %d times, want 1 and 0", kept.n, gone.n)
	}
	late := &closer{}
	if err := d.adopt(late); !errors.Is(err, ErrClosed) || late.n != 1 {
		t.Errorf("adopted after Close: %v, closed %d times", err, late.n)
	}
	if _, err := d.Admin().Topics(t.Context(), "t"); !errors.Is(err, ErrClosed) {
		t.Errorf("a call after Close: %v", err)
	}
}
