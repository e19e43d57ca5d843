package emitter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

func TestOversizedRecordFailsAlone(t *testing.T) {
	for _, tell := range []bool{true, false} {
		t.Run(fmt.Sprintf("limit told=%v", tell), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeDriver(1)
				d.maxBytes, d.tell = 2_000, tell
				e, err := New(clientOf(t, d), reka.NewStream("blobs", raw{}))
				if err != nil {
					t.Fatal(err)
				}
				defer closeNow(e)
				delivered, failed := 0, []error(nil)
				for round := range 2 { // in the second one the limit is known if told
					var results []*Result
					for i := range 21 {
						size := 100
						if i == 10 {
							size = 5_000
						}
						r, err := e.Emit(t.Context(), "k", make([]byte, size))
						if err != nil {
							failed = append(failed, err)
							continue
						}
						results = append(results, r)
					}
					for _, r := range results {
						if _, err := r.Wait(t.Context()); err != nil {
							failed = append(failed, err)
						} else {
							delivered++
						}
					}
					if delivered != 20*(round+1) || len(failed) != round+1 {
						t.Fatalf("round %d: %d delivered, failed: %v", round, delivered, failed)
					}
				}
				for _, err := range failed {
					if !errors.Is(err, kafka.ErrTooLarge) || !strings.Contains(err.Error(), "blobs") || !strings.Contains(err.Error(), "50") {
						t.Errorf("error %v, want one that names topic and size", err)
					}
				}
			})
		})
	}
}

func TestOrderOfOneGoroutineIsKeptOverAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(4)
		e := newEmitter(t, d, WithBuffer(100, 1<<20))
		var outages sync.WaitGroup
		outages.Go(func() {
			for range 3 {
				time.Sleep(3 * time.Millisecond)
				d.set(func() { d.up = false })
				time.Sleep(time.Second)
				d.set(func() { d.up = true })
			}
		})
		defer outages.Wait()
		var want []int64
		for i := int64(1); i <= 1_000; i++ {
			mustEmit(t, e, "k", i)
			want = append(want, i)
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := d.log(kafka.Murmur2().Partition([]byte("k"), 4)); !slices.Equal(got, want) {
			t.Errorf("log %v", got)
		}
	})
}

func TestRecordsAfterAnOutageDoNotSufferFromThoseThatFailedInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		e := newEmitter(t, d)
		if _, err := e.EmitSync(t.Context(), "k", 0); err != nil {
			t.Fatal(err)
		}
		d.set(func() { d.up = false })
		lost := emitMany(t, e, 100, 50)
		for _, r := range lost {
			if _, err := r.Wait(t.Context()); !errors.Is(err, kafka.ErrDeliveryTimeout) {
				t.Fatalf("emitted without a broker: %v", err)
			}
		}
		d.set(func() { d.up = true })
		for _, r := range emitMany(t, e, 200, 50) {
			if _, err := r.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.log(0); len(got) != 51 || got[1] != 200 || got[50] != 249 {
			t.Errorf("log %v", got)
		}
		if err := e.Close(t.Context()); !errors.Is(err, kafka.ErrDeliveryTimeout) {
			t.Errorf("Close: %v, want the loss that nobody flushed for", err)
		}
	})
}

func TestRecordsOfAnUnreachableBrokerFailAtTheDeliveryTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		d.up = false
		e := newEmitter(t, d)
		start := time.Now()
		r := mustEmit(t, e, "k", 1)
		time.Sleep(time.Minute)
		late := mustEmit(t, e, "k", 2)
		if _, err := r.Wait(t.Context()); !errors.Is(err, kafka.ErrDeliveryTimeout) || time.Since(start) != 2*time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if _, err := late.Wait(t.Context()); !errors.Is(err, kafka.ErrDeliveryTimeout) || time.Since(start) != 3*time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := e.Close(t.Context()); !errors.Is(err, kafka.ErrDeliveryTimeout) {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestCloseWithoutABrokerReturnsInTimeAndResolvesEverything(t *testing.T) {
	for _, knows := range []bool{true, false} {
		t.Run(fmt.Sprintf("topic known=%v", knows), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
				d := newFakeDriver(6)
				e := newEmitter(t, d)
				d.set(func() { d.up = knows })
				results := emitMany(t, e, 0, 5_000)
				if knows {
					if err := e.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				d.set(func() { d.up = false })
				results = append(results, emitMany(t, e, 5_000, 5_000)...)
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				err := e.Close(ctx)
				var undelivered *UndeliveredError
				if !errors.As(err, &undelivered) || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("Close: %v", err)
				}
				if took := time.Since(start); took != 5*time.Second {
					t.Errorf("Close took %v", took)
				}
				failed := 0
				for i, r := range results {
					if !r.resolved {
						t.Fatalf("result %d is not resolved", i)
					}
					if _, err := r.Wait(t.Context()); err != nil {
						failed++
						if !errors.Is(err, kafka.ErrClosed) {
							t.Fatalf("result %d: %v", i, err)
						}
					}
				}
				if failed != undelivered.Records || knows && failed != 5_000 || !knows && failed != 10_000 {
					t.Errorf("%d failed, Close says %d", failed, undelivered.Records)
				}
				if e.sink.records != 0 || e.sink.bytes != 0 {
					t.Errorf("%d records, %d bytes are still buffered", e.sink.records, e.sink.bytes)
				}
			})
		})
	}
}

func TestEmitConcurrentWithCloseConcurrentSafe(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeDriver(3)
			e := newEmitter(t, d, WithBuffer(64, 1<<20))
			var acked sync.Map
			var wg sync.WaitGroup
			var n int64
			stop := make(chan struct{})
			for g := range 20 {
				wg.Go(func() {
					for i := int64(0); ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						v := int64(g)*1_000_000 + i
						r, err := e.Emit(t.Context(), fmt.Sprint(v), v)
						if errors.Is(err, kafka.ErrClosed) {
							<-stop
							return
						} else if err != nil {
							t.Errorf("Emit: %v", err)
							return
						}
						r.Then(func(_ Receipt, err error) {
							if err == nil {
								acked.Store(v, true)
							}
						})
					}
				})
			}
			for d.total() < 500 {
				runtime.Gosched() // time stands still while the others run
			}
			for range 3 { // also by several at a time
				wg.Go(func() {
					if err := e.Close(t.Context()); err != nil {
						t.Errorf("Close: %v", err)
					}
				})
			}
			<-e.sink.ended
			if _, err := e.Emit(t.Context(), "k", 1); !errors.Is(err, kafka.ErrClosed) {
				t.Errorf("Emit after Close: %v", err)
			}
			close(stop)
			wg.Wait()
			acked.Range(func(any, any) bool { n++; return true })
			if int64(d.total()) != n || n == 0 {
				t.Errorf("%d acknowledged, %d on the topic", n, d.total())
			}
		})
	}
}

func TestCloseReturnsWhenEverythingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(6)
		e := newEmitter(t, d)
		emitMany(t, e, 0, 1_000)
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := d.total(); n != 1_000 {
			t.Errorf("%d records on the topic", n)
		}
	})
}

func TestMissingTopicIsAnErrorAndIsNotCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(0)
		e := newEmitter(t, d)
		defer closeNow(e)
		for range 2 { // first by the result, then by Emit itself
			_, err := e.EmitSync(t.Context(), "k", 1)
			if !errors.Is(err, kafka.ErrUnknownTopic) || !strings.Contains(err.Error(), "clicks") {
				t.Fatalf("EmitSync: %v", err)
			}
		}
		if n := d.get(&d.lookups); n != 1 {
			t.Errorf("%d look-ups, want the second emit to be spared one", n)
		}
		d.set(func() { d.partitions = 1 })
		time.Sleep(2 * refusal)
		if _, err := e.EmitSync(t.Context(), "k", 2); err != nil {
			t.Errorf("after the topic was created: %v", err)
		}
	})
}

func TestTopicThatIsDeletedFailsWhatComesAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(2)
		e := newEmitter(t, d)
		defer closeNow(e)
		if _, err := e.EmitSync(t.Context(), "k", 1); err != nil {
			t.Fatal(err)
		}
		d.set(func() { d.partitions = 0 })
		for range 3 {
			if _, err := e.EmitSync(t.Context(), "k", 2); !errors.Is(err, kafka.ErrUnknownTopic) {
				t.Errorf("EmitSync: %v", err)
			}
			synctest.Wait()
		}
		if e.sink.count.Load() != 0 {
			t.Error("the emitter still counts on the topic")
		}
		d.set(func() { d.partitions = 2 })
		time.Sleep(2 * refusal)
		if _, err := e.EmitSync(t.Context(), "k", 3); err != nil {
			t.Error(err)
		}
	})
}

func TestRefusedRightIsToldByResultAndThenByEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		d.describe = kafka.ErrNotAuthorized
		e := newEmitter(t, d)
		defer closeNow(e)
		_, err := mustEmit(t, e, "k", 1).Wait(t.Context())
		if !errors.Is(err, kafka.ErrNotAuthorized) {
			t.Errorf("result: %v", err)
		}
		if _, err = e.Emit(t.Context(), "k", 1); !errors.Is(err, kafka.ErrNotAuthorized) {
			t.Errorf("Emit: %v", err)
		}
	})
}

func TestMorePartitionsAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		e := newEmitter(t, d)
		defer closeNow(e)
		if _, err := e.EmitSync(t.Context(), "k", 1); err != nil {
			t.Fatal(err)
		}
		d.set(func() { d.partitions = 8 })
		time.Sleep(2 * time.Minute)
		want := kafka.Murmur2().Partition([]byte("k"), 8)
		for range 2 { // the first emit has the topic looked up
			if _, err := e.EmitSync(t.Context(), "k", 2); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if len(d.log(want)) == 0 {
			t.Errorf("nothing went to partition %d", want)
		}
	})
}

func emitMany(t testing.TB, e *Emitter[int64], from int64, n int) []*Result {
	t.Helper()
	results := make([]*Result, n)
	for i := range results {
		v := from + int64(i)
		results[i] = mustEmit(t, e, fmt.Sprint("k", v%97), v)
	}
	return results
}

// lost is a partitioner that is broken.
type lost int32

func (p lost) Partition([]byte, int32) int32 { return int32(p) }
func (lost) String() string                  { return "lost" }

func TestPartitionThatDoesNotExistIsAnError(t *testing.T) {
	for _, p := range []lost{-7, 3} {
		synctest.Test(t, func(t *testing.T) {
			c, err := kafka.NewDriverClient(newFakeDriver(3), kafka.WithPartitioner(p), kafka.WithLogger(zap.NewNop()))
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(c, clicks)
			if err != nil {
				t.Fatal(err)
			}
			defer closeNow(e)
			for range 2 { // before and after the partitions are known
				if _, err := e.EmitSync(t.Context(), "k", 1); !errors.Is(err, kafka.ErrUnknownTopic) {
					t.Errorf("partition %d of 3: %v", p, err)
				}
			}
		})
	}
}
