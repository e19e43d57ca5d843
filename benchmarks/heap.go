package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
)

// heapDrift is how much the heap may grow between the two looks at it.
const heapDrift = 0.05

// heap counts and copies records at a steady rate and compares the heap, after
// a collection, at a quarter of the time with that at the end. Both are
// medians over an eighth of the time: what is on its way when a collection
// ends varies, and rows that wait for the flush of every 30 seconds come and
// go.
func (b *bench) heap(ctx context.Context) error {
	from, err := b.output(ctx, "in")
	if err != nil {
		return err
	}
	to, err := b.output(ctx, "out")
	if err != nil {
		return err
	}
	w, err := newWave(b, from)
	if err != nil {
		return err
	}
	defer w.out.close()
	letters, key := text(), rand.NewZipf(rand.New(rand.NewSource(1)), 1.1, 1, 99_999)
	w.key = key.Uint64
	w.value = func(dst []byte, i int) []byte { return append(dst, letters[i*31%1e6:][:valueBytes]...) }

	group := b.name("group")
	r, err := b.start(ctx, group, how{state: true}, countingAndPassing(from, to, group)...)
	if err != nil {
		return err
	}
	load, stop := context.WithTimeout(ctx, b.duration)
	defer stop()
	flowing := make(chan error, 1)
	go func() { flowing <- w.flow(load, b.rate) }() // ends with load; waited for below
	early, late := b.sample(load, b.duration)
	err = <-flowing
	if err == nil {
		err = b.finished(ctx, r, w.next)
	}
	if err := errors.Join(err, r.end(), ctx.Err()); err != nil {
		return err
	}
	if len(early) == 0 || len(late) == 0 {
		return errors.New("the duration is too short to look at the heap twice")
	}
	x, y := median(early), median(late)
	growth := y/x - 1
	fmt.Printf("%d records in %s\nheap after collection: %.1f MiB at %s, %.1f MiB at %s: %+.1f %% (at most %+.1f %%)\n",
		w.next, b.duration, x, b.duration/4, y, b.duration, 100*growth, 100*heapDrift)
	if growth > heapDrift {
		return errors.New("the heap grows")
	}
	return nil
}

// sample looks at the heap around a quarter of the time and towards its end.
func (b *bench) sample(ctx context.Context, d time.Duration) (early, late []float64) {
	began := time.Now()
	tick := time.NewTicker(d / 480)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return early, late
		}
		at := time.Since(began)
		near := at > d*9/48 && at < d*15/48
		end := at > d*42/48
		if !near && !end && i%20 != 0 {
			continue
		}
		x := heapMiB()
		switch {
		case near:
			early = append(early, x)
		case end:
			late = append(late, x)
		}
		if i%20 == 0 {
			fmt.Printf("%8s %8.1f MiB\n", at.Round(time.Second), x)
		}
	}
}

func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// countingAndPassing counts by key and copies each record.
func countingAndPassing(from, to, group string) []processor.Edge {
	in, out := reka.NewStream(from, codec.Bytes()), processor.Output(reka.NewStream(to, codec.Bytes()))
	counts := processor.Persist(reka.GroupTable(group, codec.Int64()))
	return []processor.Edge{counts, out, processor.Input(in, func(ctx *processor.Context, v []byte) error {
		n, _ := counts.Get(ctx)
		counts.Set(ctx, n+1)
		out.Emit(ctx, ctx.Key(), v)
		return nil
	})}
}
