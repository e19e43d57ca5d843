package main

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// rawCounter counts records by key in maps. What changed within an interval
// is written, with the positions reached, in one short transaction, while the
// next interval is counted already: the least that counting exactly once can
// cost.
type rawCounter struct {
	input     string
	tables    []map[string]*rawRow // by partition
	changed   [][]*rawRow
	positions []int64
	writing   chan error // capacity 1: the answer of the transaction under way
	busy      bool
	out       *rawWriter
}

type rawRow struct {
	key     string
	n       uint64
	changed bool
}

const commitInterval = 100 * time.Millisecond

func (b *bench) rawCount(topic string, n int) func(context.Context) (float64, error) {
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
		out, err := newRawWriter(b.addr, to)
		if err != nil {
			return 0, err
		}
		defer out.close()
		if err := out.transactions(to, b.partitions); err != nil {
			return 0, err
		}
		c := newRawCounter(topic, b.partitions, out)
		if err := c.run(ctx, in, n); err != nil {
			return 0, err
		}
		return rate(n, began), nil
	}
}

func newRawCounter(input string, partitions int, out *rawWriter) *rawCounter {
	c := &rawCounter{input: input, tables: make([]map[string]*rawRow, partitions), changed: make([][]*rawRow, partitions),
		positions: make([]int64, partitions), writing: make(chan error, 1), out: out}
	for p := range c.tables {
		c.tables[p] = map[string]*rawRow{}
	}
	return c
}

func (c *rawCounter) run(ctx context.Context, in *rawReader, n int) error {
	sealed := time.Now()
	for done := 0; done < n; {
		a := <-in.answers
		if a.err != nil {
			return a.err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for p, block := range a.blocks {
			for _, set := range block.RecordsSet {
				c.count(p, set.RecordBatch)
				done += len(set.RecordBatch.Records)
			}
		}
		if time.Since(sealed) < commitInterval || c.busy && len(c.writing) == 0 {
			continue
		}
		sealed = time.Now()
		if err := c.seal(); err != nil {
			return err
		}
	}
	if err := c.seal(); err != nil {
		return err
	}
	return <-c.writing
}

func (c *rawCounter) count(p int32, batch *sarama.RecordBatch) {
	table := c.tables[p]
	for _, r := range batch.Records {
		row := table[string(r.Key)]
		if row == nil {
			row = &rawRow{key: string(r.Key)}
			table[row.key] = row
		}
		row.n++
		if !row.changed {
			row.changed = true
			c.changed[p] = append(c.changed[p], row)
		}
	}
	c.positions[p] = batch.LastOffset() + 1
}

// seal waits for the transaction before and begins the next one.
func (c *rawCounter) seal() error {
	if c.busy {
		if err := <-c.writing; err != nil {
			return err
		}
	}
	c.busy = true
	rows := make([][]*sarama.Record, len(c.changed))
	for p, changed := range c.changed {
		rows[p] = make([]*sarama.Record, len(changed))
		for i, row := range changed {
			row.changed = false
			rows[p][i] = &sarama.Record{Key: []byte(row.key), Value: binary.BigEndian.AppendUint64(nil, row.n)}
		}
		c.changed[p] = changed[:0]
	}
	positions := slices.Clone(c.positions)
	go func() { c.writing <- c.write(rows, positions) }() // ends with its answer, for which the next seal or run waits
	return nil
}

func (c *rawCounter) write(rows [][]*sarama.Record, positions []int64) error {
	if err := c.out.txn.begin(); err != nil {
		return err
	}
	const most = batchBytes / (keyBytes + 8 + 16)
	for p := range rows {
		for part := range slices.Chunk(rows[p], most) {
			if err := c.out.send(int32(p), part); err != nil {
				return err
			}
		}
	}
	if err := c.out.flush(); err != nil {
		return err
	}
	return c.out.txn.commit(c.input, positions)
}
