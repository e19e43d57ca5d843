package emitter

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

func TestEmitBlocksWhileTheBufferIsFull(t *testing.T) {
	for name, opt := range map[string]Option{"records": WithBuffer(10, 1<<20), "bytes": WithBuffer(1_000_000, 400)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeDriver(1)
				d.up = false
				e := newEmitter(t, d, opt)
				emitMany(t, e, 0, 10) // 39 bytes each
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := e.Emit(ctx, "k", 11); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Emit into a full buffer: %v", err)
				}
				var wg sync.WaitGroup
				for range 25 {
					wg.Go(func() { mustEmit(t, e, "k", 12) })
				}
				synctest.Wait()
				if n := len(e.sink.waiters); n != 25 {
					t.Errorf("%d wait, want 25", n)
				}
				d.set(func() { d.up = true })
				wg.Wait()
				if err := e.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n := d.total(); n != 35 {
					t.Errorf("%d records, want 35", n)
				}
			})
		})
	}
}

func TestRecordLargerThanTheBufferIsAcceptedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		e, err := New(clientOf(t, d), reka.NewStream("blobs", raw{}), WithBuffer(10, 1_000))
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{10, 3_000_000, 10} {
			if _, err := e.Emit(t.Context(), "k", make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d.total() != 3 || len(d.logs[0][1].Value) != 3_000_000 {
			t.Errorf("%d records", d.total())
		}
	})
}

func TestCloseFailsThoseWhoWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		d.up = false
		e := newEmitter(t, d, WithBuffer(1, 1<<20))
		mustEmit(t, e, "k", 1)
		failed := make(chan error, 1)
		go func() { // ends with Close
			_, err := e.Emit(t.Context(), "k", 2)
			failed <- err
		}()
		synctest.Wait()
		closeNow(e)
		if err := <-failed; !errors.Is(err, kafka.ErrClosed) {
			t.Errorf("Emit: %v", err)
		}
	})
}

func TestFlushWaitsForWhatCameBeforeAndTellsOfALoss(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeDriver(3)
			e := newEmitter(t, d)
			defer closeNow(e)
			if err := e.Flush(t.Context()); err != nil {
				t.Errorf("Flush of an unused emitter: %v", err)
			}
			if known {
				emitMany(t, e, 0, 100)
				if err := e.Flush(t.Context()); err != nil || d.total() != 100 {
					t.Errorf("Flush: %v, %d records written", err, d.total())
				}
			}
			before := d.total()
			d.set(func() { d.up = false })
			emitMany(t, e, 100, 100)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := e.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Flush without a broker: %v", err)
			}
			d.set(func() { d.up = true })
			if err := e.Flush(t.Context()); err != nil || d.total() != before+100 {
				t.Errorf("Flush: %v, %d records written", err, d.total())
			}
			d.set(func() { d.refuse = kafka.ErrInvalidRecord })
			emitMany(t, e, 200, 3)
			if err := e.Flush(t.Context()); !errors.Is(err, kafka.ErrInvalidRecord) {
				t.Errorf("Flush after a loss: %v", err)
			}
			if err := e.Flush(t.Context()); err != nil {
				t.Errorf("the loss is told twice: %v", err)
			}
		})
	}
}

func TestRunClosesWithinTheStopTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, up := range []bool{true, false} {
			d := newFakeDriver(1)
			e := newEmitter(t, d, WithStopTimeout(7*time.Second))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }() // ends with ctx; received below
			d.set(func() { d.up = up })
			mustEmit(t, e, "k", 1)
			synctest.Wait()
			start := time.Now()
			cancel()
			err := <-ended
			if up && err != nil || !up && !errors.Is(err, reka.ErrStopTimeout) {
				t.Errorf("broker up %v: Run: %v", up, err)
			}
			if took := time.Since(start); !up && took != 7*time.Second {
				t.Errorf("Run took %v to stop", took)
			}
			if _, err := e.Emit(t.Context(), "k", 1); !errors.Is(err, kafka.ErrClosed) {
				t.Errorf("Emit after Run: %v", err)
			}
		}
	})
}

func TestRecordsGatherWhileTheyLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		e := newEmitter(t, d, WithLinger(10*time.Millisecond))
		defer closeNow(e)
		mustEmit(t, e, "k", 0)
		time.Sleep(time.Second)
		before := d.get(&d.produced)
		for i := range 10 {
			mustEmit(t, e, "k", int64(i))
			time.Sleep(time.Millisecond / 2)
		}
		time.Sleep(time.Second)
		if n := d.get(&d.produced) - before; n != 1 {
			t.Errorf("%d batches for ten records within the linger time", n)
		}
	})
}

func TestWhoWaitsEndsTheLingering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmitter(t, newFakeDriver(1), WithLinger(time.Minute))
		defer closeNow(e)
		start := time.Now()
		if _, err := e.EmitSync(t.Context(), "k", 0); err != nil {
			t.Fatal(err)
		}
		<-mustEmit(t, e, "k", 1).Done()
		mustEmit(t, e, "k", 2)
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("waiting took %v", took)
		}
	})
}

func TestEmitAllocatesNoMoreThanItsResult(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget, which costs allocations")
	}
	d := newFakeDriver(6)
	d.discard = true
	e := newEmitter(t, d, WithBuffer(1<<20, 1<<30))
	defer closeNow(e)
	ctx := context.Background()
	const n = 50_000
	got := testing.AllocsPerRun(3, func() {
		for i := range n {
			if _, err := e.Emit(ctx, "some-user-name", int64(i)); err != nil {
				t.Fatal(err)
			}
		}
	}) / n
	if got > 1.1 {
		t.Errorf("%.2f allocations an emit, want one for the result", got)
	}
}

func BenchmarkEmit(b *testing.B) {
	d := newFakeDriver(6)
	d.discard = true
	e := newEmitter(b, d)
	ctx := context.Background()
	b.ReportAllocs()
	for i := range b.N {
		if _, err := e.Emit(ctx, "some-user-name", int64(i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := e.Close(ctx); err != nil {
		b.Fatal(err)
	}
}
