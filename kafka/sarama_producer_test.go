package kafka

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
)

// lonelyProducer is one whose brokers are away.
func lonelyProducer(t *testing.T, cfg ProducerConfig) Producer {
	t.Helper()
	d, err := newSaramaDriver([]string{"127.0.0.1:1"}, nil, zap.NewNop()) // nobody listens there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := d.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantRun(t *testing.T, runs <-chan Run, want error) {
	t.Helper()
	select {
	case r := <-runs:
		if r.From != 0 || r.To != 2 || r.Base != -1 || !errors.Is(r.Err, want) {
			t.Fatalf("run %+v, want an error of all: %v", r, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no run")
	}
}

func two(runs chan<- Run) Outgoing {
	return Outgoing{TopicPartition: TopicPartition{Topic: "t"}, Records: make([]Record, 2), Done: func(r Run) { runs <- r }}
}

func TestCloseFailsWhatIsQueuedWhileBrokersAreAway(t *testing.T) {
	p := lonelyProducer(t, ProducerConfig{})
	runs := make(chan Run, 2) // room for both, so that Done does not block
	p.Produce(two(runs))
	p.Produce(two(runs))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	wantRun(t, runs, ErrClosed)
	wantRun(t, runs, ErrClosed)
	p.Produce(two(runs))
	wantRun(t, runs, ErrClosed)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDeliveryTimesOutWhileBrokersAreAway(t *testing.T) {
	const timeout = 100 * time.Millisecond
	p := lonelyProducer(t, ProducerConfig{DeliveryTimeout: timeout})
	runs := make(chan Run, 1)
	for range 3 {
		start := time.Now()
		p.Produce(two(runs))
		wantRun(t, runs, ErrDeliveryTimeout)
		if took := time.Since(start); took < timeout {
			t.Fatalf("timed out after %s, want at least %s", took, timeout)
		}
	}
}

func TestProduceOfNothingIsDoneAtOnce(t *testing.T) {
	p := lonelyProducer(t, ProducerConfig{})
	var got []Run
	p.Produce(Outgoing{Done: func(r Run) { got = append(got, r) }})
	if len(got) != 1 || got[0].Err != nil || got[0].To != 0 {
		t.Fatalf("runs %+v", got)
	}
}

func TestProducerConfigIsChecked(t *testing.T) {
	d, err := newSaramaDriver([]string{"127.0.0.1:1"}, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, cfg := range []ProducerConfig{{BatchBytes: -1}, {DeliveryTimeout: -1}, {Compression: 99}} {
		if _, err := d.NewProducer(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}
