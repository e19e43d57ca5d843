package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/badgerstore"
	"github.com/rekastream/reka/view"
)

// Exit codes of a service process.
const (
	exitOK      = 0
	exitError   = 1
	exitFault   = 2 // of the Go runtime: a panic, or a fault in a memory map
	exitLeak    = 3 // goroutines of the engine were left
	exitFull    = 4 // storage.ErrFull
	exitTimeout = 5 // reka.ErrStopTimeout
	exitDamaged = 6 // storage.ErrDamaged
)

const serviceEnv = "REKA_SOAK_SERVICE"

// service is one process of the test service.
type service struct {
	Brokers   []string            `json:"brokers"`
	Dir       string              `json:"dir"`  // state
	Dump      string              `json:"dump"` // file that a SIGUSR1 has written
	Guarantee processor.Guarantee `json:"guarantee"`
}

// Child runs the service if this process was started as one, and returns its
// exit code. The programs that call Run call it first.
func Child() (code int, is bool) {
	env, is := os.LookupEnv(serviceEnv)
	if !is {
		return 0, false
	}
	var s service
	if err := json.Unmarshal([]byte(env), &s); err != nil {
		fmt.Fprintln(os.Stderr, "end:", err)
		return exitError, true
	}
	return s.main(), true
}

// instance is what a service process runs.
type instance struct {
	client         *kafka.Client
	tally, second  *processor.Processor
	view           *view.View[row]
	tallyRows      *processor.Visits[*rowsSeen]
	secondRows     *processor.Visits[*rowsSeen]
	builder        storage.Builder
	guarantee      processor.Guarantee
	processOptions []processor.Option
}

func (s service) main() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	in, err := s.build()
	if err != nil {
		fmt.Fprintln(os.Stderr, "end:", err)
		return exitError
	}
	dumps, dumped := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(dumps, syscall.SIGUSR1)
	go func() { // ends when dumps is closed; waited for below
		defer close(dumped)
		for range dumps {
			if err := in.dump(ctx, s.Dump); err != nil {
				fmt.Fprintln(os.Stderr, "dump:", err)
			}
		}
	}()
	err = errors.Join(reka.Run(ctx, in.view, in.second, in.tally), in.client.Close())
	signal.Stop(dumps)
	close(dumps)
	<-dumped
	left := leftGoroutines(3 * time.Second)
	for _, g := range left {
		fmt.Fprintf(os.Stderr, "left: %s\n", g)
	}
	fmt.Fprintf(os.Stderr, "end: %v, %d goroutines left\n", err, len(left))
	switch {
	case len(left) > 0:
		return exitLeak
	case errors.Is(err, storage.ErrFull):
		return exitFull
	case errors.Is(err, storage.ErrDamaged):
		return exitDamaged
	case errors.Is(err, reka.ErrStopTimeout):
		return exitTimeout
	case err != nil:
		return exitError
	}
	return exitOK
}

func (s service) build() (*instance, error) {
	cfg := zap.NewDevelopmentConfig()
	cfg.DisableStacktrace = true
	log, err := cfg.Build()
	if err != nil {
		return nil, err
	}
	in := &instance{builder: badgerstore.In(s.Dir), guarantee: s.Guarantee}
	if in.client, err = kafka.NewClient(s.Brokers, kafka.WithLogger(log)); err != nil {
		return nil, err
	}
	in.processOptions = []processor.Option{
		processor.WithStorage(in.builder), processor.WithGuarantee(s.Guarantee),
		processor.WithSessionTimeout(sessionTime), processor.WithHeartbeatInterval(sessionTime / 8),
		processor.WithTuning(processor.Tuning{FlushAge: time.Second}),
		processor.WithObserver(processor.Observer{State: func(st processor.Status) { log.Info("status", zap.Any("status", st)) }}),
	}
	if in.tally, err = in.newTally(); err != nil {
		return nil, err
	}
	if in.second, err = in.newSecond(); err != nil {
		return nil, err
	}
	in.view, err = view.New(in.client, tallyTable, view.WithStorage(in.builder), view.WithFlush(1<<20, time.Second))
	return in, err
}

// count counts one event in.
func (r *row) count(e event) {
	r.Count++
	r.Sum += e.ID
	r.Last = e.Seq
}

func (in *instance) newTally() (*processor.Processor, error) {
	rows, rate := processor.Persist(tallyTable), processor.Join(rates)
	out, next := processor.Output(effects), processor.Output(nth)
	in.tallyRows = processor.Visitor("rows", func(ctx *processor.Context, seen *rowsSeen) error {
		v, _ := rows.Get(ctx)
		return seen.add(ctx, v)
	})
	g, err := processor.NewGraph(tallyGroup, rows, rate, out, next, in.tallyRows,
		processor.Input(events, func(ctx *processor.Context, e event) error {
			v, _ := rows.Get(ctx)
			v.count(e)
			rows.Set(ctx, v)
			version, _ := rate.Get(ctx)
			out.Emit(ctx, ctx.Key(), effect{Seq: e.Seq, ID: e.ID, Count: v.Count, Rate: version})
			if e.Seq%every == 0 {
				next.Emit(ctx, ctx.Key(), event{Seq: e.Seq / every, ID: e.ID})
			}
			return nil
		}))
	if err != nil {
		return nil, err
	}
	return processor.New(in.client, g, in.processOptions...)
}

func (in *instance) newSecond() (*processor.Processor, error) {
	rows, out := processor.Persist(secondTable), processor.Output(secondEffects)
	in.secondRows = processor.Visitor("rows", func(ctx *processor.Context, seen *rowsSeen) error {
		v, _ := rows.Get(ctx)
		return seen.add(ctx, v)
	})
	g, err := processor.NewGraph(secondGroup, rows, out, in.secondRows,
		processor.Input(nth, func(ctx *processor.Context, e event) error {
			v, _ := rows.Get(ctx)
			v.count(e)
			rows.Set(ctx, v)
			out.Emit(ctx, ctx.Key(), effect{Seq: e.Seq, ID: e.ID, Count: v.Count})
			return nil
		}))
	if err != nil {
		return nil, err
	}
	return processor.New(in.client, g, in.processOptions...)
}
