package emitter_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

var (
	visits = reka.NewStream("visits", codec.String())
	echoes = reka.NewStream("echoes", codec.String())
	seen   = reka.GroupTable("counter", codec.Int64())
)

// counting counts visits per key; on then may do more.
func counting(then func(*tester.Instance) (func(*processor.Context, string) error, []reka.Runner, error)) func(*tester.Instance) ([]reka.Runner, error) {
	return func(i *tester.Instance) ([]reka.Runner, error) {
		more, runners, err := then(i)
		if err != nil {
			return nil, err
		}
		n := processor.Persist(seen)
		g, err := processor.NewGraph("counter", n, processor.Input(visits, func(ctx *processor.Context, v string) error {
			old, _ := n.Get(ctx)
			n.Set(ctx, old+1)
			return more(ctx, v)
		}))
		if err != nil {
			return nil, err
		}
		p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return append(runners, p), err
	}
}

func nothingMore(*tester.Instance) (func(*processor.Context, string) error, []reka.Runner, error) {
	return func(*processor.Context, string) error { return nil }, nil, nil
}

func TestTableShowsAnEmittedRecordWithoutAFlush(t *testing.T) {
	tt := tester.New(t)
	tester.Input(tt, visits)
	tt.Start("app", counting(nothingMore))
	e, err := emitter.New(tt.Client(), visits, emitter.WithLinger(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	for want := int64(1); want <= 3; want++ {
		if _, err := e.Emit(t.Context(), "alice", "/"); err != nil {
			t.Fatal(err)
		}
		if got, _ := tester.Table(tt, seen).Get("alice"); got != want {
			t.Errorf("count %d, want %d", got, want)
		}
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// An emitter inside a callback stands beside the record's own effects: its
// records are written even if the callback fails. It must not deadlock, in
// whatever way the callback waits.
func TestEmitterInsideACallbackDoesNotDeadlock(t *testing.T) {
	ways := map[string]func(ctx *processor.Context, e *emitter.Emitter[string], v string) error{
		"fire and forget": func(ctx *processor.Context, e *emitter.Emitter[string], v string) error {
			_, err := e.Emit(ctx, ctx.Key(), v)
			return err
		},
		"sync": func(ctx *processor.Context, e *emitter.Emitter[string], v string) error {
			_, err := e.EmitSync(ctx, ctx.Key(), v)
			return err
		},
		"done": func(ctx *processor.Context, e *emitter.Emitter[string], v string) error {
			r, err := e.Emit(ctx, ctx.Key(), v)
			if err == nil {
				<-r.Done()
			}
			return err
		},
		"flush": func(ctx *processor.Context, e *emitter.Emitter[string], v string) error {
			_, err := e.Emit(ctx, ctx.Key(), v)
			return errors.Join(err, e.Flush(ctx))
		},
		"full buffer": func(ctx *processor.Context, e *emitter.Emitter[string], v string) error {
			for i := range 5 {
				if _, err := e.Emit(ctx, ctx.Key(), fmt.Sprint(v, i)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			tt := tester.New(t)
			in, out := tester.Input(tt, visits), tester.Output(tt, echoes)
			app := tt.Start("app", counting(func(i *tester.Instance) (func(*processor.Context, string) error, []reka.Runner, error) {
				e, err := emitter.New(i.Client(), echoes, emitter.WithBuffer(2, 1<<20), emitter.WithLinger(time.Minute))
				return func(ctx *processor.Context, v string) error { return way(ctx, e, v) }, []reka.Runner{e}, err
			}))
			for i := range 10 {
				in.Send(fmt.Sprint("user-", i), "/")
			}
			want := 10
			if name == "full buffer" {
				want = 50
			}
			if got := out.Len(); got != want {
				t.Errorf("%d records, want %d", got, want)
			}
			if got := len(tester.Table(tt, seen).All()); got != 10 {
				t.Errorf("%d rows, want 10", got)
			}
			if err := app.Stop(); err != nil {
				t.Errorf("Stop: %v", err)
			}
		})
	}
}

func TestEmitterIntoItsOwnProcessorDoesNotDeadlock(t *testing.T) {
	tt := tester.New(t)
	in := tester.Input(tt, visits)
	tt.Start("app", counting(func(i *tester.Instance) (func(*processor.Context, string) error, []reka.Runner, error) {
		e, err := emitter.New(i.Client(), visits)
		return func(ctx *processor.Context, v string) error {
			if len(v) >= 5 {
				return nil
			}
			_, err := e.EmitSync(ctx, ctx.Key(), v+"/")
			return err
		}, []reka.Runner{e}, err
	}))
	in.Send("alice", "/")
	if got, _ := tester.Table(tt, seen).Get("alice"); got != 5 {
		t.Errorf("count %d, want 5", got)
	}
}

func TestStopIsNotHeldUpByEmitsThatNeverComplete(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	tester.Output(tt, echoes)
	tt.Fail(tester.Fault{Op: tester.OpProduce, Topic: echoes.Name(), Times: -1, Do: tester.Delay(1000 * time.Hour)})
	var e *emitter.Emitter[string]
	app := tt.Start("app", func(i *tester.Instance) (rs []reka.Runner, err error) {
		e, err = emitter.New(i.Client(), echoes, emitter.WithDeliveryTimeout(time.Hour))
		return []reka.Runner{e}, err
	})
	clock := app.Client().Driver().Clock()
	var failed atomic.Int64
	var last atomic.Pointer[time.Time]
	for range 100 {
		r, err := e.Emit(t.Context(), "alice", "/")
		if err != nil {
			t.Fatal(err)
		}
		r.Then(func(_ emitter.Receipt, err error) {
			if errors.Is(err, kafka.ErrClosed) {
				failed.Add(1)
				now := clock.Now()
				last.Store(&now)
			}
		})
	}
	tt.Settle()
	before := tt.Now()
	if err := app.Stop(); !errors.Is(err, reka.ErrStopTimeout) {
		t.Errorf("Stop: %v", err)
	}
	if failed.Load() != 100 {
		t.Fatalf("%d results failed, want 100", failed.Load())
	}
	if took := last.Load().Sub(before); took != 30*time.Second {
		t.Errorf("the last one failed after %v, want the stop timeout of 30 s", took)
	}
}

func TestMissingTopicIsToldUnderTheTester(t *testing.T) {
	tt := tester.New(t)
	e, err := emitter.New(tt.Client(), visits)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.EmitSync(t.Context(), "alice", "/"); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Errorf("EmitSync: %v", err)
	}
	tester.Input(tt, visits)
	tt.Settle()
	if _, err := e.EmitSync(t.Context(), "alice", "/"); err != nil {
		t.Errorf("after the topic was created: %v", err)
	}
	if err := e.Close(t.Context()); err == nil {
		t.Error("Close does not tell of the loss")
	}
}

func TestBrokerThatTakesItsTimeDoesNotReorder(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	out := tester.Output(tt, echoes)
	tt.Fail(tester.Fault{Op: tester.OpProduce, Do: tester.Delay(time.Second), Times: 3})
	e, err := emitter.New(tt.Client(), echoes)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := e.Emit(t.Context(), "alice", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			tt.Settle()
		}
	}
	tt.Advance(time.Minute)
	for i, v := range out.Values() {
		if v != fmt.Sprint(i) {
			t.Fatalf("record %d is %s", i, v)
		}
	}
	if n := out.Len(); n != 100 {
		t.Errorf("%d records", n)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
