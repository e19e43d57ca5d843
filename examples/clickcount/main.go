package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// counterRole, as the first argument, makes this program the counter process.
const counterRole = "counter"

// limit is how long a demo that is to end by itself may take.
const limit = 38 * time.Second

var (
	errInterrupted = errors.New("interrupted")
	errTooLong     = errors.New("the demo takes too long")
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == counterRole {
		os.Exit(counterMain(os.Args[2]))
	}
	opts, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2) // the flag set has said why
	}
	os.Exit(demoMain(opts, os.Stdout))
}

func counterMain(arg string) int {
	var cfg counterConfig
	err := json.Unmarshal([]byte(arg), &cfg)
	if err == nil {
		err = runCounter(cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "counter:", err)
		return 1
	}
	return 0
}

func parse(args []string) (options, error) {
	var o options
	var brokers string
	flags := flag.NewFlagSet("clickcount", flag.ContinueOnError)
	flags.StringVar(&brokers, "brokers", "", "run against this cluster (host:port,...) instead of the embedded broker")
	flags.BoolVar(&o.forever, "forever", false, "go on round after round, until Ctrl-C")
	flags.DurationVar(&o.duration, "duration", 20*time.Second, "how long a round clicks")
	flags.IntVar(&o.rate, "rate", 4_000, "clicks a second")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address of the API; a free port if it is taken")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if brokers != "" {
		o.brokers = strings.Split(brokers, ",")
	}
	if o.rate <= 0 || o.duration < downtime {
		err := fmt.Errorf("--rate must be above 0 and --duration at least %v", downtime)
		fmt.Fprintln(flags.Output(), err)
		return o, err
	}
	return o, nil
}

// demoMain runs the demo and returns its exit status: 0 if every count was
// equal, 130 after Ctrl-C, else 1.
func demoMain(opts options, out *os.File) int {
	f := newFeed()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	go func() { // ends with ctx
		select {
		case <-interrupts:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	if !opts.forever {
		timer := time.AfterFunc(limit+max(0, opts.duration-20*time.Second), func() { cancel(errTooLong) })
		defer timer.Stop()
	}
	switch err := play(ctx, opts, f, out); {
	case err == nil:
		return 0
	case errors.Is(context.Cause(ctx), errInterrupted):
		fmt.Fprintln(out, "interrupted: nothing was compared")
		return 130
	default:
		fmt.Fprintln(out, "FAILED:", err)
		return 1
	}
}

// play sets everything up, runs the story with a painter beside it, and
// leaves nothing behind.
func play(ctx context.Context, opts options, f *feed, out *os.File) (err error) {
	brokers := opts.brokers
	if len(brokers) == 0 {
		b, err := startBroker()
		if err != nil {
			return err
		}
		defer b.close()
		brokers = b.addresses()
		f.sayf("no --brokers given: an embedded broker runs in this process")
	}
	dir, err := os.MkdirTemp("", "reka-clickcount-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d, err := prepare(opts, f, brokers, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.client.Close()) }()
	if len(opts.brokers) > 0 {
		defer d.clean()
	}
	stopPainting := paint(newScreen(out, f), d.stage)
	err = d.run(ctx)
	stopPainting()
	if ctx.Err() != nil {
		return errors.Join(err, d.stop(hurriedPatience))
	}
	return errors.Join(err, d.stop(stopPatience))
}

// paint shows the stage until the function that it returns is called, which
// waits for the last picture.
func paint(s screen, st *stage) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends when stop is called, which waits
		defer close(ended)
		ticker := time.NewTicker(s.every())
		defer ticker.Stop()
		for {
			s.show(st.shot)
			select {
			case <-ticker.C:
			case <-over:
				s.close(st.shot)
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}
