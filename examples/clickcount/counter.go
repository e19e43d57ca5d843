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

// count counts a click. It takes no precautions against crashes: rows and
// positions are committed together, so a click that comes again after one is
// not in the row yet.
func count(rows *processor.State[Row]) func(*processor.Context, Click) error {
	return func(ctx *processor.Context, _ Click) error {
		row, _ := rows.Get(ctx)
		rows.Set(ctx, Row{Clicks: row.Clicks + 1})
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
