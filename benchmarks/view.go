package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage/badgerstore"
	"github.com/rekastream/reka/view"
)

const (
	viewRows    = 100_000
	viewReaders = 2
	viewUpdates = 50_000 // a second
)

// viewGet counts what readers get of a view while updates arrive.
func (b *bench) viewGet() func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		topic := b.name("table")
		if err := b.create(ctx, topic, "cleanup.policy=compact"); err != nil {
			return 0, err
		}
		defer b.drop(ctx, topic)
		w, err := newWave(b, topic)
		if err != nil {
			return 0, err
		}
		defer w.out.close()
		if err := w.write(viewRows); err != nil { // each key once
			return 0, err
		}
		if err := w.out.flush(); err != nil {
			return 0, err
		}
		dir, err := b.folder()
		if err != nil {
			return 0, err
		}
		v, err := view.New(b.client, reka.NewTable(topic, codec.Bytes()), view.WithStorage(badgerstore.In(dir)))
		if err != nil {
			return 0, err
		}
		run, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)        // what Run returned
		go func() { ended <- v.Run(run) }() // ends below
		figure, err := b.readUnderLoad(ctx, v, w)
		stop()
		return figure, errors.Join(err, <-ended)
	}
}

func (b *bench) readUnderLoad(ctx context.Context, v *view.View[[]byte], w *wave) (float64, error) {
	if err := v.WaitReady(ctx); err != nil {
		return 0, err
	}
	ctx, stop := context.WithTimeout(ctx, b.length)
	defer stop()
	var updates error
	var wg sync.WaitGroup
	before := v.Stats().Records
	wg.Go(func() { updates = w.flow(ctx, viewUpdates) }) // ends with ctx
	began := time.Now()
	var gets, missing atomic.Int64
	for range viewReaders {
		wg.Go(func() { // ends with ctx
			n, absent := readRandom(ctx, v)
			gets.Add(n)
			missing.Add(absent)
		})
	}
	wg.Wait()
	took := time.Since(began).Seconds()
	arrived := float64(v.Stats().Records-before) / took
	switch {
	case updates != nil:
		return 0, updates
	case missing.Load() > 0:
		return 0, fmt.Errorf("%d of %d rows were not found", missing.Load(), gets.Load())
	case arrived < 0.9*viewUpdates:
		fmt.Printf("note: only %.0f updates a second arrived during View.Get\n", arrived)
	}
	return float64(gets.Load()) / took, nil
}

func readRandom(ctx context.Context, v *view.View[[]byte]) (n, absent int64) {
	keys := make([]string, viewRows)
	for i := range keys {
		keys[i] = string(appendKey(nil, uint64(i)))
	}
	for ctx.Err() == nil {
		for range 1000 {
			_, ok, err := v.Get(keys[rand.IntN(viewRows)])
			if !ok || err != nil {
				absent++
			}
			n++
		}
	}
	return n, absent
}

// wave writes records at a steady rate, with as little work as possible.
type wave struct {
	out        *rawWriter
	partitions int32
	next       int
	value      func(dst []byte, i int) []byte
	key        func() uint64
}

func newWave(b *bench, topic string) (*wave, error) {
	out, err := newRawWriter(b.addr, topic)
	w := &wave{out: out, partitions: int32(b.partitions), value: func(dst []byte, i int) []byte { return fmt.Appendf(dst, "%08d", i%1e8) }}
	w.key = func() uint64 { return uint64(w.next % viewRows) }
	return w, err
}

// write writes the next n records, each to the partition of its key.
func (w *wave) write(n int) error {
	records := make([][]*sarama.Record, w.partitions)
	slab := make([]sarama.Record, n)
	for i := range slab {
		k := w.key()
		b := w.value(appendKey(nil, k), w.next)
		p := kafka.Murmur2().Partition(b[:keyBytes], w.partitions)
		slab[i].Key, slab[i].Value = b[:keyBytes:keyBytes], b[keyBytes:]
		records[p] = append(records[p], &slab[i])
		w.next++
	}
	for p := range records {
		if len(records[p]) > 0 {
			if err := w.out.send(int32(p), records[p]); err != nil {
				return err
			}
		}
	}
	return nil
}

// waveRecords bounds what is written at once after a stall: batches of more
// would be refused.
const waveRecords = 5_000

// flow writes perSecond records a second until ctx ends.
func (w *wave) flow(ctx context.Context, perSecond int) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began, first := time.Now(), w.next
	for {
		if n := int(time.Since(began).Seconds()*float64(perSecond)) - (w.next - first); n > 0 {
			if err := w.write(min(n, waveRecords)); err != nil {
				return err
			}
			if n > waveRecords && ctx.Err() == nil {
				continue // catches up
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return w.out.flush()
		}
	}
}
