package main

import (
	"context"
	"io"
	"os"
	"os/signal"

	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage/badgerstore"
)

// countingGraph declares the counting: clicks in, one row a user.
func countingGraph(n names) (*processor.Graph, error) {
	rows := processor.Persist(n.counts())
	return processor.NewGraph(n.group(), rows, processor.Input(n.clicks(), count(rows)))
}

// count counts a click. After a crash clicks may come again that are in the
// row already. All clicks of a user come from one partition, in order, so the
// offset of the last one tells them apart.
func count(rows *processor.State[Row]) func(*processor.Context, Click) error {
	return func(ctx *processor.Context, _ Click) error {
		row, ok := rows.Get(ctx)
		if ok && ctx.Offset() <= row.Last {
			return nil
		}
		rows.Set(ctx, Row{Clicks: row.Clicks + 1, Last: ctx.Offset()})
		return nil
	}
}

// counterConfig is what the parent tells the counter process.
type counterConfig struct {
	Brokers []string `json:"brokers"`
	Run     string   `json:"run"` // see names
	Dir     string   `json:"dir"` // of the state
}

// runCounter is the counter process. It reports to standard output, logs to
// standard error, and ends when standard input does: so it ends with its
// parent, whatever becomes of that.
func runCounter(cfg counterConfig) error {
	signal.Ignore(os.Interrupt) // the terminal sends it to both; the parent decides
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends with standard input, or with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	log, err := zap.NewDevelopment(zap.IncreaseLevel(zap.WarnLevel))
	if err != nil {
		return err
	}
	client, err := kafka.NewClient(cfg.Brokers, kafka.WithLogger(log))
	if err != nil {
		return err
	}
	defer client.Close()
	g, err := countingGraph(names{cfg.Run})
	if err != nil {
		return err
	}
	p, err := processor.New(client, g,
		processor.WithStorage(badgerstore.In(cfg.Dir)),
		processor.WithStopTimeout(stopPatience))
	if err != nil {
		return err
	}
	return reka.Run(ctx, &reporter{p, os.Stdout}, p)
}
