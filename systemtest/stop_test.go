package systemtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
)

// committedOf returns the group's committed offsets of a topic's partitions.
func committedOf(t *testing.T, c *kafka.Client, group, topic string, partitions int32) (out []int64) {
	t.Helper()
	m, err := c.Driver().NewMember(kafka.MemberConfig{ // it never joins
		Group: group, Protocol: "none", Subscribe: func() kafka.Subscription { return kafka.Subscription{} },
		Plan:     func(context.Context, []kafka.GroupMember) (map[string]kafka.Share, error) { return nil, nil },
		Assigned: func(kafka.Assignment) {}, Lost: func(error) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Errorf("close member: %v", err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	parts := make([]kafka.TopicPartition, partitions)
	for p := range parts {
		parts[p] = kafka.TopicPartition{Topic: topic, Partition: int32(p)}
	}
	offsets, err := m.Committed(ctx, parts, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range offsets {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		out = append(out, o.Offset)
	}
	return out
}

// relay is a processor that copies a topic to another and keeps the last value
// of each key.
type relay struct {
	group, from, to string
	before          func(*processor.Context) // called for each record
}

func newRelay(t *testing.T, before func(*processor.Context)) relay {
	return relay{group: unique(t, "group"), from: unique(t, "in"), to: unique(t, "out"), before: before}
}

func (r relay) processor(t *testing.T, c *kafka.Client, opts ...processor.Option) *processor.Processor {
	t.Helper()
	out := processor.Output(reka.NewStream(r.to, codec.Bytes()))
	st := processor.Persist(reka.GroupTable(r.group, codec.Bytes()))
	g, err := processor.NewGraph(r.group, st, out, processor.Input(reka.NewStream(r.from, codec.Bytes()), func(ctx *processor.Context, v []byte) error {
		r.before(ctx)
		st.Set(ctx, v)
		out.Emit(ctx, ctx.Key(), v)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := processor.New(c, g, append([]processor.Option{processor.WithStorage(storage.Memory())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The brokers go away with a hundred emits open, and do not come back before
// the stop: Run ends in time with an error, and commits nothing of them.
func TestStopWithOpenEmitsAndWithoutBrokersEndsInTime(t *testing.T) {
	b := onFake(t)
	c := b.client(t)
	var seen, held atomic.Int64
	gate := make(chan struct{})
	relay := newRelay(t, func(*processor.Context) {
		if seen.Add(1) > 50 {
			held.Add(1)
			<-gate
		}
	})
	b.topics(t, c, 1, relay.from, relay.to)
	l := newLoad(t, c, relay.from)
	r := launch(t, relay.processor(t, b.client(t), processor.WithStopTimeout(2*time.Second)))
	l.emit(t, 50)
	until(t, func() bool { return committedOf(t, c, relay.group, relay.from, 1)[0] == 50 }, func() string { return "the first fifty are not committed" })
	l.emit(t, 100)
	until(t, func() bool { return held.Load() == 1 }, func() string { return "the others do not come" })
	b.outage(t, func() {
		close(gate)
		until(t, func() bool { return seen.Load() == 150 }, func() string { return fmt.Sprint(seen.Load(), " of 150") })
		r.cancel()
		start := time.Now()
		if err := <-r.result; !errors.Is(err, reka.ErrStopTimeout) {
			t.Errorf("Run: %v, want ErrStopTimeout", err)
		}
		if took := time.Since(start); took > 5*time.Second { // stop timeout, and a second for leaving the group
			t.Errorf("Run took %v to end", took)
		}
	})
	if got := committedOf(t, c, relay.group, relay.from, 1)[0]; got != 50 {
		t.Errorf("committed offset %d, want 50", got)
	}
}

// A callback blocks for two seconds while another instance comes and goes:
// both the rebalances and the stop wait for the callback and for nothing more.
func TestBlockedCallbackHoldsRebalanceAndStopNoLongerThanItself(t *testing.T) {
	b := onFake(t)
	c := b.client(t)
	var blocks atomic.Int64
	gate := make(chan struct{})
	relay := newRelay(t, func(*processor.Context) {
		blocks.Add(1)
		<-gate
	})
	b.topics(t, c, 4, relay.from, relay.to)
	goroutines := runtime.NumGoroutine()
	opts := []processor.Option{processor.WithHeartbeatInterval(100 * time.Millisecond), processor.WithSessionTimeout(6 * time.Second)}
	own := b.client(t)
	first := launch(t, relay.processor(t, own, opts...))
	l := newLoad(t, c, relay.from)
	l.emit(t, 40)
	until(t, func() bool { return blocks.Load() == 4 }, func() string { return "not all partitions are in a callback" })
	relay.before = func(*processor.Context) {}
	other := relay.processor(t, b.client(t), opts...)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- other.Run(ctx) }() // waited for below
	moment(t, time.Second)
	cancel()
	if err := <-result; err != nil {
		t.Errorf("Run of the one that came and went: %v", err)
	}
	moment(t, time.Second)
	if n := blocks.Load(); n != 4 {
		t.Errorf("%d callbacks were begun while four block", n)
	}
	close(gate)
	start := time.Now()
	until(t, func() bool {
		sum := int64(0)
		for _, o := range committedOf(t, c, relay.group, relay.from, 4) {
			sum += o
		}
		return sum == 40
	}, func() string { return "the records are not all committed" })
	first.stop(t)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("after the callbacks had returned it took %v", took)
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	until(t, func() bool { return runtime.NumGoroutine() <= goroutines+20 }, // of clients and emitter that are open
		func() string { return fmt.Sprintf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines) })
}
