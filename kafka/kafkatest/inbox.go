package kafkatest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/rekastream/reka/kafka"
)

// inbox receives what a fetcher delivers of one partition. Batches are
// released by the waiting test, unless hold is set: drivers need not allow a
// release from within Deliver.
type inbox struct {
	signal chan struct{}

	mu      sync.Mutex
	hold    bool
	held    []*kafka.Batch
	ready   []*kafka.Batch // to be released by the next wait
	records []kafka.Record
	batches []kafka.Batch // copies, without records
	err     error
	wrong   string // a rule broken by what was delivered
	next    int64  // position after the last batch, -1 before the first
}

func newInbox() *inbox { return &inbox{signal: make(chan struct{}, 1), next: -1} }

// follow makes f follow tp from position into a new inbox.
func follow(f kafka.Fetcher, tp kafka.TopicPartition, position int64) *inbox {
	in := newInbox()
	f.Follow(kafka.Follow{TopicPartition: tp, Position: position, Deliver: in.deliver})
	return in
}

func (in *inbox) deliver(b *kafka.Batch) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err != nil {
		in.wrong = "a batch was delivered after one with Err set"
	}
	for i := range b.Records {
		if r := &b.Records[i]; r.Offset < in.next || r.Offset >= b.Position && b.Err == nil {
			in.wrong = fmt.Sprintf("record at offset %d in a batch from %d to position %d", r.Offset, in.next, b.Position)
		}
	}
	if b.Err == nil {
		if b.Position < in.next {
			in.wrong = fmt.Sprintf("position went back from %d to %d", in.next, b.Position)
		}
		in.next = b.Position
	}
	in.records = append(in.records, b.Records...)
	c := *b
	c.Records = nil
	in.batches = append(in.batches, c)
	in.err = b.Err
	if in.hold {
		in.held = append(in.held, b)
	} else {
		in.ready = append(in.ready, b)
	}
	notify(in.signal)
}

// wait waits until cond, which is called with mu held, is true.
func (in *inbox) wait(t *testing.T, what string, cond func() bool) {
	t.Helper()
	eventually(t, what, in.signal, func() bool {
		in.mu.Lock()
		ready := in.ready
		in.ready = nil
		ok, wrong := cond(), in.wrong
		in.mu.Unlock()
		for _, b := range ready {
			b.Release()
		}
		if wrong != "" {
			t.Fatal(wrong)
		}
		return ok
	})
}

// waitRecords waits for n records and returns all that came.
func (in *inbox) waitRecords(t *testing.T, n int) []kafka.Record {
	t.Helper()
	in.wait(t, fmt.Sprintf("%d records delivered", n), func() bool { return len(in.records) >= n || in.err != nil })
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err != nil {
		t.Fatalf("after %d of %d records: %v", len(in.records), n, in.err)
	}
	if len(in.records) != n {
		t.Fatalf("%d records, want %d", len(in.records), n)
	}
	return in.records
}

// waitBatch waits for a batch that ok accepts and returns it, without its
// records.
func (in *inbox) waitBatch(t *testing.T, what string, ok func(kafka.Batch) bool) kafka.Batch {
	t.Helper()
	var found kafka.Batch
	in.wait(t, what, func() bool {
		for _, b := range in.batches {
			if ok(b) {
				found = b
				return true
			}
		}
		return false
	})
	return found
}

// waitErr waits for the end of the following.
func (in *inbox) waitErr(t *testing.T) error {
	t.Helper()
	in.wait(t, "a batch with Err", func() bool { return in.err != nil })
	return in.err
}

// count returns how many records came so far.
func (in *inbox) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.records)
}

// setHold decides whether batches that come are kept unreleased. Turning it
// off releases what is held.
func (in *inbox) setHold(on bool) {
	in.mu.Lock()
	held := in.held
	in.hold, in.held = on, nil
	in.mu.Unlock()
	for _, b := range held {
		b.Release()
	}
}

// newFetcher returns a fetcher that is closed with the test.
func newFetcher(t *testing.T, d kafka.Driver, cfg kafka.FetcherConfig) kafka.Fetcher {
	t.Helper()
	f, err := d.NewFetcher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close fetcher: %v", err)
		}
	})
	return f
}
