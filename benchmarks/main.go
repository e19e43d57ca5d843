package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rekastream/reka/systemtest/realkafka"
)

// options are what the command line sets.
type options struct {
	brokers    string
	parts      string
	short      bool
	heap       bool
	flat       bool
	limit      time.Duration
	reps       int
	records    int
	rows       int
	partitions int
	length     time.Duration // of a run that has a fixed one
	duration   time.Duration // of -heap
	rate       int           // of -heap
	profile    string
	strict     bool
	least      bool // stream parts with state run at least once
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	f.StringVar(&o.brokers, "brokers", "", "addresses of a running cluster, by commas; default: a node of its own (needs Java and Maven)")
	f.StringVar(&o.parts, "parts", strings.Join(partNames(), ","), "what to measure")
	f.BoolVar(&o.short, "short", false, "smaller and fewer runs: two minutes in all")
	f.BoolVar(&o.heap, "heap", false, "watch the heap under load instead")
	f.BoolVar(&o.flat, "flat", false, "play an hour of event time through windows instead, and watch heap and live rows")
	f.DurationVar(&o.limit, "limit", 0, "time for all parts; they repeat less if it is short (default 12m, with -short 2m)")
	f.IntVar(&o.reps, "reps", 0, "turns of each part (default 5, with -short 3)")
	f.IntVar(&o.records, "records", 0, "records of a throughput run (default 4,000,000, with -short 1,000,000)")
	f.IntVar(&o.rows, "rows", 0, "rows to restore (default 2,000,000, with -short 500,000)")
	f.IntVar(&o.partitions, "partitions", 6, "partitions of all topics")
	f.DurationVar(&o.length, "length", 0, "length of a latency run and of a View.Get run (default 8s, with -short 4s)")
	f.DurationVar(&o.duration, "duration", 8*time.Minute, "length of -heap; it compares the heap after a quarter of it with that at the end")
	f.IntVar(&o.rate, "rate", 20_000, "records a second of -heap")
	f.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the last run of Reka to this file")
	f.BoolVar(&o.least, "least", false, "run windows and joins of streams at least once, not exactly once")
	f.BoolVar(&o.strict, "strict", false, "fail if a figure misses its target")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	set := func(field *int, full, short int) {
		if *field == 0 {
			*field = full
			if o.short {
				*field = short
			}
		}
	}
	set(&o.reps, 5, 3)
	set(&o.records, 4_000_000, 1_000_000)
	set(&o.rows, 2_000_000, 500_000)
	if o.length == 0 {
		o.length = 8 * time.Second
		if o.short {
			o.length = 4 * time.Second
		}
	}
	if o.limit == 0 {
		o.limit = 12 * time.Minute
		if o.short {
			o.limit = 2 * time.Minute
		}
	}
	if o.flat && !given(f, "duration") {
		o.duration = time.Minute
	}
	if o.flat && !given(f, "rate") {
		o.rate = 5000
	}
	for name := range strings.SplitSeq(o.parts, ",") {
		if !slices.Contains(partNames(), name) {
			return o, fmt.Errorf("no part %q; there are: %s", name, strings.Join(partNames(), ", "))
		}
	}
	return o, nil
}

// given reports whether a flag was set.
func given(f *flag.FlagSet, name string) (set bool) {
	f.Visit(func(g *flag.Flag) { set = set || g.Name == name })
	return set
}

func main() {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "reka-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	brokers, kafka := strings.Split(o.brokers, ","), "Kafka at "+o.brokers
	if o.brokers == "" {
		node, err := realkafka.Launch(dir, realkafka.Config{HeapMiB: 512, Properties: map[string]string{
			"log.retention.check.interval.ms": "10000",
			"log.segment.delete.delay.ms":     "1000",
		}})
		if err != nil {
			return err
		}
		defer node.Close()
		brokers, kafka = node.Brokers(), "one Kafka node on this machine"
	}
	b, err := newBench(ctx, o, brokers, dir)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Printf("%s, %s/%s, %d CPUs, %s, %d partitions\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), kafka, o.partitions)
	switch {
	case o.heap:
		return b.heap(ctx)
	case o.flat:
		return b.flat(ctx)
	}
	return b.all(ctx)
}
