package emitter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

// Whatever happens to the broker, the topic and the emitter, every result is
// resolved once, the buffer is empty at the end, what was acknowledged is
// written, and of each goroutine it is written in order.
func TestEveryResultIsResolvedOnceWhateverHappens(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func chaos(t *testing.T, random *rand.Rand) {
	d := newFakeDriver(int32(1 + random.IntN(3)))
	d.maxBytes, d.tell = 10_000, random.IntN(2) == 0
	e := newEmitter(t, d, WithBuffer(1+random.IntN(50), 1+random.IntN(2_000)), WithRefresh(10*time.Second),
		WithDeliveryTimeout(time.Minute), WithLinger(time.Duration(random.IntN(10))*time.Millisecond))
	var work sync.WaitGroup
	var accepted, resolved, acked, twice atomic.Int64
	const writers, each = 4, 100
	for g := range int64(writers) {
		mine := rand.New(rand.NewPCG(random.Uint64(), 2))
		work.Go(func() {
			for i := range int64(each) {
				r, err := emitSomehow(t, e, mine, g*each+i)
				if err != nil {
					continue
				}
				accepted.Add(1)
				var once atomic.Bool
				r.Then(func(_ Receipt, err error) {
					if !once.CompareAndSwap(false, true) {
						twice.Add(1)
					}
					resolved.Add(1)
					if err == nil {
						acked.Add(1)
					}
				})
			}
		})
	}
	upset(d, random)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(100))*time.Second)
	defer cancel()
	err := e.Close(ctx)
	d.set(func() { d.up = true })
	work.Wait()
	if twice.Load() > 0 || resolved.Load() != accepted.Load() {
		t.Errorf("%d accepted, %d resolved, %d twice; Close: %v", accepted.Load(), resolved.Load(), twice.Load(), err)
	}
	if e.sink.records != 0 || e.sink.bytes != 0 || len(e.sink.waiters) != 0 {
		t.Errorf("%d records, %d bytes, %d waiters are left", e.sink.records, e.sink.bytes, len(e.sink.waiters))
	}
	if n := int64(d.total()); n != acked.Load() {
		t.Errorf("%d acknowledged, %d written", acked.Load(), n)
	}
	for p := range d.logs {
		last := [writers]int64{-1, -1, -1, -1}
		for _, v := range d.log(p) {
			if g := v / each; v <= last[g] {
				t.Errorf("partition %d: %d after %d", p, v, last[g])
			} else {
				last[g] = v
			}
		}
	}
}

// emitSomehow emits with a patience of its own, and sometimes waits.
func emitSomehow(t *testing.T, e *Emitter[int64], random *rand.Rand, v int64) (*Result, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(10_000))*time.Millisecond)
	defer cancel()
	var opts []reka.EmitOption
	key := fmt.Sprint("k", random.IntN(5))
	switch random.IntN(10) {
	case 0:
		key, opts = "", []reka.EmitOption{reka.NullKey()}
	case 1:
		opts = []reka.EmitOption{reka.ToPartition(int32(random.IntN(4)))}
	case 2:
		opts = []reka.EmitOption{reka.WithHeader("pad", make([]byte, random.IntN(500)))}
	}
	r, err := e.Emit(ctx, key, v, opts...)
	if err != nil {
		return nil, err
	}
	switch random.IntN(8) {
	case 0:
		if _, err := r.Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			time.Sleep(time.Duration(random.IntN(1_000)) * time.Millisecond)
		}
	case 1:
		if err := e.Flush(ctx); err != nil {
			time.Sleep(time.Millisecond)
		}
	case 2:
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
	}
	return r, nil
}

// upset makes trouble for a while. The topic comes back with as many
// partitions as it had, or more.
func upset(d *fakeDriver, random *rand.Rand) {
	n := d.partitions
	for range 20 {
		d.set(func() {
			switch random.IntN(8) {
			case 0, 1:
				d.up = !d.up
			case 2:
				d.partitions = 0
			case 3:
				n++
				d.partitions = n
			case 4:
				d.refuse = kafka.ErrInvalidRecord
			case 5:
				d.describe = kafka.ErrNotAuthorized
			default:
				d.up, d.refuse, d.describe, d.partitions = true, nil, nil, n
			}
		})
		time.Sleep(time.Duration(random.IntN(3_000)) * time.Millisecond)
	}
}
