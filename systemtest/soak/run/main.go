// Command run soaks the test service on three Kafka nodes and prints a
// verdict in one line, the last one. See package soak.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rekastream/reka/systemtest/soak"
)

func main() {
	if code, child := soak.Child(); child {
		os.Exit(code)
	}
	cfg, keep, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok := run(ctx, cfg, keep)
	stop()
	if !ok {
		os.Exit(1)
	}
}

func parse(args []string) (cfg soak.Config, keep bool, err error) {
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	minutes := f.Float64("minutes", 10, "length of the attack")
	guarantee := f.String("guarantee", "exactly-once", "exactly-once, at-least-once or none")
	faults := f.String("faults", "", "kinds of faults, by commas; default all: "+strings.Join(soak.Kinds(), ","))
	quiet := f.Bool("quiet", false, "do not show what happens")
	f.Uint64Var(&cfg.Seed, "seed", 1, "seed of the schedule")
	f.IntVar(&cfg.Processes, "processes", 3, "processes in the beginning")
	f.IntVar(&cfg.Rate, "rate", 300, "events a second")
	f.IntVar(&cfg.Keys, "keys", 120, "keys of the events")
	f.DurationVar(&cfg.Gap, "gap", 0, "between two faults, on average (default 2.5s)")
	f.StringVar(&cfg.Dir, "dir", "", "empty directory for logs and state; default: a temporary one, which is removed if nothing was found")
	if err := f.Parse(args); err != nil {
		return cfg, false, err
	}
	cfg.Duration = time.Duration(*minutes * float64(time.Minute))
	if *faults != "" {
		cfg.Faults = strings.Split(*faults, ",")
	}
	if !*quiet {
		cfg.Progress = os.Stdout
	}
	if cfg.Guarantee, err = soak.ParseGuarantee(*guarantee); err != nil {
		return cfg, false, err
	}
	keep = cfg.Dir != ""
	if !keep {
		cfg.Dir, err = os.MkdirTemp("", "reka-soak-*")
	}
	return cfg, keep, err
}

func run(ctx context.Context, cfg soak.Config, keep bool) bool {
	res, err := soak.Run(ctx, cfg)
	if err != nil {
		fmt.Fprintf(os.Stdout, "logs, schedule and state: %s\nreplay: %s\nsoak: FAILED to run: %v\n", cfg.Dir, cfg.Replay(), err)
		return false
	}
	fmt.Fprint(os.Stdout, res.Report())
	if res.OK() && !keep {
		if err := os.RemoveAll(cfg.Dir); err != nil {
			fmt.Fprintln(os.Stdout, err)
		}
	}
	fmt.Fprintln(os.Stdout, res.Line())
	return res.OK()
}
