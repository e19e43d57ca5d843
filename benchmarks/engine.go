package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage/badgerstore"
)

// running is a processor that runs.
type running struct {
	*processor.Processor
	group string
	stop  context.CancelFunc
	ended chan error // capacity 1: what Run returned
}

// how a processor runs.
type how struct {
	state bool // it has an empty state directory
	with  []processor.Option
}

func exactly(o ...processor.Option) []processor.Option {
	return append(o, processor.WithGuarantee(processor.ExactlyOnce))
}

func atLeast() []processor.Option {
	return []processor.Option{processor.WithGuarantee(processor.AtLeastOnce)}
}

// start runs a processor of a group that has the given edges.
func (b *bench) start(ctx context.Context, group string, h how, edges ...processor.Edge) (*running, error) {
	g, err := processor.NewGraph(group, edges...)
	if err != nil {
		return nil, err
	}
	return b.startGraph(ctx, g, h)
}

// startGraph runs a processor of a graph.
func (b *bench) startGraph(ctx context.Context, g *processor.Graph, h how) (*running, error) {
	opts := slices.Clone(h.with)
	if h.state {
		dir, err := b.folder()
		if err != nil {
			return nil, err
		}
		opts = append(opts, processor.WithStorage(badgerstore.In(dir)))
	}
	p, err := processor.New(b.client, g, opts...)
	if err != nil {
		return nil, err
	}
	r := &running{Processor: p, group: g.Group(), ended: make(chan error, 1)}
	ctx, r.stop = context.WithCancel(ctx)
	go func() { r.ended <- p.Run(ctx) }() // ends with end
	return r, nil
}

// end stops the processor and waits for it.
func (r *running) end() error {
	r.stop()
	return <-r.ended
}

// finished waits until the processor has finished n records and committed
// the offsets behind them, which it does only when outputs and changelog are
// acknowledged.
func (b *bench) finished(ctx context.Context, r *running, n int) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for processed := false; ; {
		if !processed {
			done := int64(0)
			for _, p := range r.Stats().Partitions {
				done += p.Records
			}
			processed = done >= int64(n)
		} else if at, err := b.committed(ctx, r.group); err != nil || at >= int64(n) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case err := <-r.ended:
			r.ended <- err
			return errors.Join(errors.New("the processor ended early"), err)
		}
	}
}

// committed is the sum of a group's committed offsets: what it has finished
// of topics that begin at 0.
func (b *bench) committed(ctx context.Context, group string) (int64, error) {
	offsets, err := b.admin.FetchOffsets(ctx, group)
	if err != nil {
		return 0, err
	}
	n := int64(0)
	for _, partitions := range offsets {
		for _, o := range partitions {
			n += max(o.At, 0)
		}
	}
	return n, nil
}

// timed runs a processor over n records of input.
func (b *bench) timed(ctx context.Context, n int, h how, edges func(group string) []processor.Edge) (float64, error) {
	group := b.name("group")
	began := time.Now()
	r, err := b.start(ctx, group, h, edges(group)...)
	if err != nil {
		return 0, err
	}
	err = b.finished(ctx, r, n)
	took := time.Since(began)
	if ended := r.end(); err == nil {
		err = ended
	}
	b.drop(ctx, reka.TableTopic(group))
	return float64(n) / took.Seconds(), err
}

func (b *bench) rekaConsume(topic string, n int) func(context.Context) (float64, error) {
	in := reka.NewStream(topic, codec.Bytes())
	return func(ctx context.Context) (float64, error) {
		return b.timed(ctx, n, how{}, func(string) []processor.Edge {
			return []processor.Edge{processor.Input(in, func(*processor.Context, []byte) error { return nil })}
		})
	}
}

func (b *bench) rekaPass(topic string, n int, with []processor.Option) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		to, err := b.output(ctx, "reka")
		if err != nil {
			return 0, err
		}
		defer b.drop(ctx, to)
		return b.timed(ctx, n, how{with: with}, func(string) []processor.Edge { return passing(topic, to) })
	}
}

// passing copies records to another topic.
func passing(from, to string) []processor.Edge {
	in, out := reka.NewStream(from, codec.Bytes()), processor.Output(reka.NewStream(to, codec.Bytes()))
	return []processor.Edge{out, processor.Input(in, func(ctx *processor.Context, v []byte) error {
		out.Emit(ctx, ctx.Key(), v)
		return nil
	})}
}

func (b *bench) rekaCount(topic string, n int, with []processor.Option) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		return b.timed(ctx, n, how{state: true, with: with}, func(group string) []processor.Edge { return counting(topic, group) })
	}
}

// counting counts records by key in the group table.
func counting(from, group string) []processor.Edge {
	in := reka.NewStream(from, codec.Bytes())
	counts := processor.Persist(reka.GroupTable(group, codec.Int64()))
	return []processor.Edge{counts, processor.Input(in, func(ctx *processor.Context, _ []byte) error {
		n, _ := counts.Get(ctx)
		counts.Set(ctx, n+1)
		return nil
	})}
}

// rekaRestore has a table of n rows written once, from a topic with a key for
// each, and restores it from its changelog into an empty directory.
func (b *bench) rekaRestore(topic string, n int) func(context.Context) (float64, error) {
	group := ""
	return func(ctx context.Context) (float64, error) {
		if group == "" {
			name := b.name("group")
			if err := b.fillTable(ctx, topic, name, n); err != nil {
				return 0, fmt.Errorf("write the table: %w", err)
			}
			group = name
		}
		began := time.Now()
		r, err := b.start(ctx, group, how{state: true}, counting(topic, group)...)
		if err != nil {
			return 0, err
		}
		err = r.WaitReady(ctx)
		took := time.Since(began)
		if ended := r.end(); err == nil {
			err = ended
		}
		return float64(n) / took.Seconds(), err
	}
}

func (b *bench) fillTable(ctx context.Context, topic, group string, n int) error {
	r, err := b.start(ctx, group, how{state: true}, counting(topic, group)...)
	if err != nil {
		return err
	}
	err = b.finished(ctx, r, n)
	return errors.Join(err, r.end())
}
