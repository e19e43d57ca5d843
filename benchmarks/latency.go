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

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rekastream/reka/processor"
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

// rawBatchCopier copies in short transactions, one an interval, which are
// written while the next interval is read.
func (b *bench) rawBatchCopier(interval time.Duration) func(ctx context.Context, from, to string) error {
	return func(ctx context.Context, from, to string) error {
		in, err := newRawReader(b.addr, from, make([]int64, b.partitions))
		if err != nil {
			return err
		}
		defer in.close()
		out, err := newRawWriter(b.addr, to)
		if err != nil {
			return err
		}
		defer out.close()
		if err := out.transactions(to, b.partitions); err != nil {
			return err
		}
		c := &rawBatchCopy{input: from, out: out, rows: make([][]*sarama.Record, b.partitions), positions: make([]int64, b.partitions), writing: make(chan error, 1)}
		return c.run(ctx, in, interval)
	}
}

// rawBatchCopy gathers records and writes them a transaction at a time.
type rawBatchCopy struct {
	input      string
	out        *rawWriter
	rows       [][]*sarama.Record // by partition
	positions  []int64
	some, busy bool
	writing    chan error // capacity 1: the answer of the transaction under way
}

func (c *rawBatchCopy) run(ctx context.Context, in *rawReader, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case a := <-in.answers:
			if a.err != nil {
				return a.err
			}
			c.gather(a)
		case err := <-c.writing:
			if c.busy = false; err != nil {
				return err
			}
		case <-tick.C:
			c.seal()
		case <-ctx.Done():
			if c.busy {
				return <-c.writing
			}
			return nil
		}
	}
}

func (c *rawBatchCopy) gather(a rawAnswer) {
	for p, block := range a.blocks {
		for _, set := range block.RecordsSet {
			for _, r := range set.RecordBatch.Records {
				c.rows[p] = append(c.rows[p], &sarama.Record{Key: r.Key, Value: r.Value})
				c.some = true
			}
			c.positions[p] = set.RecordBatch.LastOffset() + 1
		}
	}
}

// seal begins to write what was gathered, unless the transaction before is
// still under way.
func (c *rawBatchCopy) seal() {
	if c.busy || !c.some {
		return
	}
	rows, positions := c.rows, slices.Clone(c.positions)
	c.rows, c.some, c.busy = make([][]*sarama.Record, len(rows)), false, true
	go func() { c.writing <- c.write(rows, positions) }() // ends with its answer, for which run waits
}

func (c *rawBatchCopy) write(rows [][]*sarama.Record, positions []int64) error {
	if err := c.out.txn.begin(); err != nil {
		return err
	}
	for p, records := range rows {
		if len(records) == 0 {
			continue
		}
		if err := c.out.send(int32(p), records); err != nil {
			return err
		}
	}
	if err := c.out.flush(); err != nil {
		return err
	}
	return c.out.txn.commit(c.input, positions)
}

func (b *bench) rekaCopier(with []processor.Option) func(ctx context.Context, from, to string) error {
	return func(ctx context.Context, from, to string) error {
		r, err := b.start(ctx, b.name("group"), how{with: with}, passing(from, to)...)
		if err != nil {
			return err
		}
		defer r.stop()
		return <-r.ended
	}
}
