package main

import (
	"context"
	"time"

	"github.com/IBM/sarama"
)

// rawConsume reads n records of a topic and looks at none.
func (b *bench) rawConsume(topic string, n int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		began := time.Now()
		in, err := newRawReader(b.addr, topic, make([]int64, b.partitions))
		if err != nil {
			return 0, err
		}
		defer in.close()
		for done := 0; done < n; {
			a := <-in.answers
			if a.err != nil {
				return 0, a.err
			}
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			for _, block := range a.blocks {
				for _, set := range block.RecordsSet {
					done += len(set.RecordBatch.Records)
				}
			}
		}
		return rate(n, began), nil
	}
}

// rate is in records a second.
func rate(n int, began time.Time) float64 { return float64(n) / time.Since(began).Seconds() }

// rawPass copies n records to another topic and waits until they are
// acknowledged.
func (b *bench) rawPass(topic string, n int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		to, err := b.output(ctx, "raw")
		if err != nil {
			return 0, err
		}
		defer b.drop(ctx, to)
		began := time.Now()
		in, err := newRawReader(b.addr, topic, make([]int64, b.partitions))
		if err != nil {
			return 0, err
		}
		defer in.close()
		if err := b.copyRaw(ctx, in, to, n); err != nil {
			return 0, err
		}
		return rate(n, began), nil
	}
}

// copyRaw copies until n records are written and acknowledged, or, with n 0,
// until ctx ends.
func (b *bench) copyRaw(ctx context.Context, in *rawReader, to string, n int) error {
	out, err := newRawWriter(b.addr, to)
	if err != nil {
		return err
	}
	defer out.close()
	for done := 0; n == 0 || done < n; {
		var a rawAnswer
		select {
		case a = <-in.answers:
		case <-ctx.Done():
			if n == 0 {
				return out.flush()
			}
			return ctx.Err()
		}
		if a.err != nil {
			return a.err
		}
		for p, block := range a.blocks {
			copied, err := out.copyBlock(p, block)
			if err != nil {
				return err
			}
			done += copied
		}
	}
	return out.flush()
}

func (w *rawWriter) copyBlock(p int32, block *sarama.FetchResponseBlock) (n int, err error) {
	var records []*sarama.Record
	size := 0
	for _, set := range block.RecordsSet {
		n += len(set.RecordBatch.Records)
		for _, r := range set.RecordBatch.Records {
			records = append(records, &sarama.Record{Key: r.Key, Value: r.Value})
			if size += len(r.Key) + len(r.Value) + 16; size >= batchBytes {
				if err := w.send(p, records); err != nil {
					return n, err
				}
				records, size = nil, 0
			}
		}
	}
	if len(records) == 0 {
		return n, nil
	}
	return n, w.send(p, records)
}
