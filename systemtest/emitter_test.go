package systemtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
)

// numbersIn returns the numbers that stand in a topic, partition by partition.
func numbersIn(t *testing.T, c *kafka.Client, topic string) []int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out []int64
	for _, r := range readAll(ctx, t, c, topic) {
		n, err := codec.Int64Text().Decode(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

func consecutive(from, to int64) (out []int64) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

func newEmitter(t *testing.T, c *kafka.Client, topic string, opts ...emitter.Option) *emitter.Emitter[int64] {
	t.Helper()
	e, err := emitter.New(c, reka.NewStream(topic, codec.Int64Text()), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func emitNumber(t *testing.T, e *emitter.Emitter[int64], key string, n int64) *emitter.Result {
	t.Helper()
	r, err := e.Emit(t.Context(), key, n)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecordAboveTheBrokersLimitFailsAloneAmongItsNeighbours(t *testing.T) {
	onBoth(t, false, func(t *testing.T, b broker) {
		c := b.client(t)
		topic := unique(t, "blobs")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.EnsureTopics(ctx, kafka.TopicSpec{Name: topic, Partitions: 1, Configs: map[string]string{"max.message.bytes": "2000"}}); err != nil {
			t.Fatal(err)
		}
		e, err := emitter.New(c, reka.NewStream(topic, codec.Bytes()), emitter.WithCompression(kafka.NoCompression))
		if err != nil {
			t.Fatal(err)
		}
		for round := range 2 { // by the second one the emitter knows the limit
			delivered, failed := 0, []error(nil)
			var results []*emitter.Result
			for i := range 21 {
				size := 100
				if i == 10 {
					size = 5000
				}
				r, err := e.Emit(ctx, "k", slices.Repeat([]byte{byte(i)}, size))
				if err != nil {
					failed = append(failed, err)
					continue
				}
				results = append(results, r)
			}
			for _, r := range results {
				if _, err := r.Wait(ctx); err != nil {
					failed = append(failed, err)
				} else {
					delivered++
				}
			}
			if delivered != 20 || len(failed) != 1 {
				t.Fatalf("round %d: %d delivered, failed: %v", round, delivered, failed)
			}
			if err := failed[0]; !errors.Is(err, kafka.ErrTooLarge) || !strings.Contains(err.Error(), topic) || !strings.Contains(err.Error(), "50") {
				t.Errorf("error %v, want one that names topic and size", err)
			}
		}
		if n := len(readAll(ctx, t, c, topic)); n != 40 {
			t.Errorf("%d records on the topic, want 40", n)
		}
		_ = e.Close(ctx) // tells of the losses, which were looked at
	})
}

// Brokers go away in the middle, twice; each number is on the topic once, in
// order.
func TestOrderAndCountSurviveRestartsOfTheBroker(t *testing.T) {
	onBoth(t, true, func(t *testing.T, b broker) {
		c := b.client(t)
		topic := unique(t, "numbers")
		b.topics(t, c, 3, topic)
		e := newEmitter(t, c, topic)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var emitting sync.WaitGroup
		var next atomic.Int64
		emitting.Go(func() {
			for n := range int64(1000) {
				if _, err := e.Emit(ctx, "k", n); err != nil {
					t.Errorf("emit: %v", err)
					return
				}
				next.Store(n)
				moment(t, 2*time.Millisecond)
			}
		})
		until(t, func() bool { return next.Load() > 300 }, func() string { return "nothing is emitted" })
		b.outage(t, func() { moment(t, 500*time.Millisecond) })
		emitting.Wait()
		if err := e.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if got := numbersIn(t, c, topic); !slices.Equal(got, consecutive(0, 1000)) {
			t.Errorf("%d numbers, in this order: %v", len(got), got)
		}
	})
}

func TestEmitterRecoversFromRecordsThatFailedInAnOutage(t *testing.T) {
	b := onFake(t)
	c := b.client(t)
	topic := unique(t, "numbers")
	b.topics(t, c, 1, topic)
	// Longer than the longest pause between two tries to reach the brokers.
	e := newEmitter(t, c, topic, emitter.WithDeliveryTimeout(5*time.Second))
	results := func(from, to int64) (out []*emitter.Result) {
		for n := from; n < to; n++ {
			out = append(out, emitNumber(t, e, "k", n))
		}
		return out
	}
	for _, r := range results(0, 50) {
		if _, err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.outage(t, func() {
		for _, r := range results(50, 100) {
			if _, err := r.Wait(t.Context()); !errors.Is(err, kafka.ErrDeliveryTimeout) {
				t.Fatalf("emitted without a broker: %v", err)
			}
		}
	})
	for _, r := range results(100, 150) {
		if _, err := r.Wait(t.Context()); err != nil {
			t.Fatalf("after the outage: %v", err)
		}
	}
	if got := numbersIn(t, c, topic); !slices.Equal(got, append(consecutive(0, 50), consecutive(100, 150)...)) {
		t.Errorf("the topic holds %v", got)
	}
	if err := e.Close(t.Context()); !errors.Is(err, kafka.ErrDeliveryTimeout) {
		t.Errorf("Close: %v, want the loss", err)
	}
}

func TestCloseWithoutABrokerEndsInTimeAndLeavesNothing(t *testing.T) {
	b := onFake(t)
	c := b.client(t)
	topic := unique(t, "numbers")
	b.topics(t, c, 6, topic)
	goroutines := runtime.NumGoroutine()
	e := newEmitter(t, c, topic)
	var results []*emitter.Result
	emit := func(n int64) {
		for range n {
			results = append(results, emitNumber(t, e, fmt.Sprint("k", len(results)), int64(len(results))))
		}
	}
	emit(5000)
	b.outage(t, func() {
		emit(5000)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		err := e.Close(ctx)
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("Close took %v", took)
		}
		var undelivered *emitter.UndeliveredError
		if !errors.As(err, &undelivered) {
			t.Fatalf("Close: %v", err)
		}
		failed := 0
		for i, r := range results {
			select {
			case <-r.Done():
			default:
				t.Fatalf("result %d is not resolved", i)
			}
			if _, err := r.Wait(t.Context()); err != nil {
				failed++
			}
		}
		if failed < 5000 || failed != undelivered.Records {
			t.Errorf("%d failed, Close says %d", failed, undelivered.Records)
		}
		until(t, func() bool { return runtime.NumGoroutine() <= goroutines+10 }, // of the client, which is open
			func() string { return fmt.Sprintf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines) })
	})
}

func TestEmittingBesideCloseIsSafe(t *testing.T) {
	b := onFake(t)
	c := b.client(t)
	topic := unique(t, "numbers")
	b.topics(t, c, 3, topic)
	var acked, refused atomic.Int64
	for range 10 {
		e := newEmitter(t, c, topic)
		stop := make(chan struct{})
		var emitting sync.WaitGroup
		for range 20 {
			emitting.Go(func() { // ends with stop
				for i := int64(0); ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					r, err := e.Emit(t.Context(), fmt.Sprint(i), i)
					switch {
					case errors.Is(err, kafka.ErrClosed):
						refused.Add(1)
						runtime.Gosched()
					case err != nil:
						t.Errorf("Emit: %v", err)
						return
					default:
						r.Then(func(_ emitter.Receipt, err error) {
							if err == nil {
								acked.Add(1)
							}
						})
					}
				}
			})
		}
		moment(t, 50*time.Millisecond)
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		moment(t, 50*time.Millisecond)
		close(stop)
		emitting.Wait()
	}
	if n := int64(len(numbersIn(t, c, topic))); n != acked.Load() || n == 0 || refused.Load() == 0 {
		t.Errorf("%d records on the topic, %d acknowledged, %d emits refused after Close", n, acked.Load(), refused.Load())
	}
}
