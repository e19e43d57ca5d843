package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	latencyRate   = 10_000 // records a second
	latencyWarmUp = 2 * time.Second
)

// latency measures how long records take from their sending to their coming
// out of a copying loop, which copier runs until its context ends. The figure
// is the 99th percentile in milliseconds.
func (b *bench) latency(copier func(ctx context.Context, from, to string) error) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		from, err := b.output(ctx, "in")
		if err != nil {
			return 0, err
		}
		to, err := b.output(ctx, "out")
		if err != nil {
			return 0, err
		}
		defer b.drop(ctx, from, to)
		run, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)                   // what copier returned
		go func() { ended <- copier(run, from, to) }() // ends below
		figure, err := b.probe(ctx, from, to)
		stop()
		return figure, errors.Join(err, <-ended)
	}
}

// probe sends records that carry their time and sees when they come out.
func (b *bench) probe(ctx context.Context, from, to string) (float64, error) {
	ctx, stop := context.WithTimeout(ctx, latencyWarmUp+b.length+10*time.Second)
	defer stop()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ConsumeTopics(to), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.DefaultProduceTopic(from), kgo.ProducerLinger(0))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	want := latencyRate * int((latencyWarmUp+b.length)/time.Second)
	counted := latencyRate * int(b.length/time.Second)
	var sent error
	var wg sync.WaitGroup
	wg.Go(func() { sent = send(ctx, cl, want) }) // ends when all is sent
	var seen []time.Duration
	for got := 0; got < want && ctx.Err() == nil; {
		fetches := cl.PollFetches(ctx)
		now := time.Now()
		fetches.EachRecord(func(r *kgo.Record) {
			if got++; binary.BigEndian.Uint64(r.Value[8:]) >= uint64(want-counted) {
				seen = append(seen, now.Sub(time.Unix(0, int64(binary.BigEndian.Uint64(r.Value)))))
			}
		})
	}
	wg.Wait()
	if sent != nil {
		return 0, sent
	}
	if len(seen) < counted {
		return 0, fmt.Errorf("%d of %d records came out", len(seen), counted)
	}
	slices.Sort(seen)
	at := func(q float64) time.Duration { return seen[int(q*float64(len(seen)-1))].Round(10 * time.Microsecond) }
	fmt.Fprintf(os.Stderr, "  p50 %s, p90 %s, p99 %s, p99.9 %s\n", at(.5), at(.9), at(.99), at(.999))
	return at(.99).Seconds() * 1000, nil
}

// send sends n records, a few each millisecond.
func send(ctx context.Context, cl *kgo.Client, n int) error {
	began := time.Now()
	for i := 0; i < n && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		for due := min(n, int(time.Since(began).Seconds()*latencyRate)); i < due; i++ {
			v := make([]byte, valueBytes)
			binary.BigEndian.PutUint64(v, uint64(time.Now().UnixNano()))
			binary.BigEndian.PutUint64(v[8:], uint64(i))
			cl.Produce(ctx, &kgo.Record{Key: appendKey(nil, uint64(i%1000)), Value: v}, nil)
		}
	}
	return cl.Flush(ctx)
}

func (b *bench) rawCopier(ctx context.Context, from, to string) error {
	in, err := newRawReader(b.addr, from, make([]int64, b.partitions))
	if err != nil {
		return err
	}
	defer in.close()
	return b.copyRaw(ctx, in, to, 0)
}

func (b *bench) rekaCopier(ctx context.Context, from, to string) error {
	r, err := b.start(ctx, b.name("group"), false, passing(from, to)...)
	if err != nil {
		return err
	}
	defer r.stop()
	return <-r.ended
}
