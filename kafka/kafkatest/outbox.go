package kafkatest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/rekastream/reka/kafka"
)

// outbox collects the fate of what was produced, and checks that runs cover
// the records once and in order.
type outbox struct {
	p      kafka.Producer
	signal chan struct{}

	mu    sync.Mutex
	sent  []*sent
	wrong string
}

// sent is one Outgoing and the runs reported for it.
type sent struct {
	kafka.TopicPartition
	records []kafka.Record
	runs    []kafka.Run
	covered int
}

// newOutbox returns an outbox over a producer of its own, closed with the
// test.
func newOutbox(t *testing.T, d kafka.Driver, cfg kafka.ProducerConfig) *outbox {
	t.Helper()
	p, err := d.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close producer: %v", err)
		}
	})
	return &outbox{p: p, signal: make(chan struct{}, 1)}
}

// produce hands records over and returns at once.
func (o *outbox) produce(tp kafka.TopicPartition, records ...kafka.Record) *sent {
	s := &sent{TopicPartition: tp, records: records}
	o.mu.Lock()
	o.sent = append(o.sent, s)
	o.mu.Unlock()
	o.p.Produce(kafka.Outgoing{TopicPartition: tp, Records: records, Done: func(r kafka.Run) { o.done(s, r) }})
	return s
}

func (o *outbox) done(s *sent, r kafka.Run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.From != s.covered || r.To <= r.From || r.To > len(s.records) {
		o.wrong = fmt.Sprintf("%s: run [%d,%d) after [0,%d) of %d records", s.TopicPartition, r.From, r.To, s.covered, len(s.records))
	}
	s.covered = r.To
	s.runs = append(s.runs, r)
	notify(o.signal)
}

// wait waits until everything handed over has its fate.
func (o *outbox) wait(t *testing.T) {
	t.Helper()
	eventually(t, "the fate of all produced records", o.signal, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.wrong != "" {
			t.Fatal(o.wrong)
		}
		for _, s := range o.sent {
			if s.covered < len(s.records) {
				return false
			}
		}
		return true
	})
}

// must waits and fails the test on any error; it returns the offset of each
// record of s.
func (o *outbox) must(t *testing.T, s *sent) []int64 {
	t.Helper()
	o.wait(t)
	offsets := make([]int64, 0, len(s.records))
	for _, r := range s.runs {
		if r.Err != nil {
			t.Fatalf("%s: records [%d,%d): %v", s.TopicPartition, r.From, r.To, r.Err)
		}
		for i := r.From; i < r.To; i++ {
			offsets = append(offsets, r.Base+int64(i-r.From))
		}
	}
	return offsets
}

// write produces records over a producer of its own and waits.
func write(t *testing.T, e Env, tp kafka.TopicPartition, records ...kafka.Record) []int64 {
	t.Helper()
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{})
	return o.must(t, o.produce(tp, records...))
}

// numbered returns n records with key k<i> and value v<i>, i from from.
func numbered(from, n int) []kafka.Record {
	rs := make([]kafka.Record, n)
	for i := range rs {
		rs[i] = kafka.Record{
			Key:       fmt.Appendf(nil, "k%d", from+i),
			Value:     fmt.Appendf(nil, "v%d", from+i),
			Timestamp: 1_700_000_000_000 + int64(from+i),
		}
	}
	return rs
}

// wantNumbered fails unless rs are exactly numbered(from, n) at consecutive
// offsets.
func wantNumbered(t *testing.T, rs []kafka.Record, from, n int) {
	t.Helper()
	if len(rs) != n {
		t.Fatalf("%d records, want %d", len(rs), n)
	}
	for i, w := range numbered(from, n) {
		r := rs[i]
		if string(r.Key) != string(w.Key) || string(r.Value) != string(w.Value) || r.Timestamp != w.Timestamp {
			t.Fatalf("record %d is %s=%s at %d, want %s=%s at %d", i, r.Key, r.Value, r.Timestamp, w.Key, w.Value, w.Timestamp)
		}
		if i > 0 && r.Offset != rs[i-1].Offset+1 {
			t.Fatalf("record %d has offset %d after %d", i, r.Offset, rs[i-1].Offset)
		}
	}
}
