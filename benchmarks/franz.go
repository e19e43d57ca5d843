package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// franzConsume reads n records with franz-go.
func (b *bench) franzConsume(topic string, n int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		began := time.Now()
		err := b.franz(ctx, topic, n, nil)
		return rate(n, began), err
	}
}

// franzPass copies n records with franz-go.
func (b *bench) franzPass(topic string, n int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		to, err := b.output(ctx, "franz")
		if err != nil {
			return 0, err
		}
		defer b.drop(ctx, to)
		began := time.Now()
		err = b.franz(ctx, topic, n, func(r *kgo.Record) *kgo.Record {
			return &kgo.Record{Topic: to, Partition: r.Partition, Key: r.Key, Value: r.Value}
		})
		return rate(n, began), err
	}
}

// franz reads n records and writes what produce makes of them, if it is not
// nil; it returns when all is acknowledged.
func (b *bench) franz(ctx context.Context, topic string, n int, produce func(*kgo.Record) *kgo.Record) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.MaxBufferedRecords(100_000),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	var failed atomic.Pointer[error]
	acked := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	}
	for done := 0; done < n; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			done++
			if produce != nil {
				cl.Produce(ctx, produce(r), acked)
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
