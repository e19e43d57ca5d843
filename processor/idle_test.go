package processor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// idling starts a graph with a stream-time timer for each record, an hour
// after it, and an idle time of ten minutes.
func idling(t *testing.T) *clockwork {
	t.Helper()
	tt := tester.New(t, tester.WithPartitions(1))
	c := &clockwork{t: t, tt: tt, in: tester.Input(tt, ticks), out: tester.Output(tt, tocks)}
	c.app = tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		out := processor.Output(tocks)
		timers := processor.Timer("alarms", processor.StreamTime)
		g, err := processor.NewGraph("clockwork", out,
			timers.On(func(ctx *processor.Context, _ time.Time) error {
				out.Emit(ctx, ctx.Key(), "alarm")
				return nil
			}),
			processor.Input(ticks, func(ctx *processor.Context, _ string) error {
				timers.Set(ctx, ctx.Time().Add(time.Hour))
				return nil
			}))
		if err != nil {
			return nil, err
		}
		p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()), processor.WithIdleTime(10*time.Minute))
		return []reka.Runner{p}, err
	})
	tt.Settle()
	return c
}

func TestStreamTimeFollowsTheClockAfterTheIdleTime(t *testing.T) {
	c := idling(t)
	c.in.Send("k", "v", reka.At(c.tt.Now()))
	c.tt.Advance(time.Hour + 9*time.Minute)
	c.wants("")
	c.tt.Advance(4 * time.Minute)
	c.wants("alarm")
}

func TestStreamTimeStandsWhileTheBrokersDoNotSayThatNothingIsLeft(t *testing.T) {
	c := idling(t)
	c.in.Send("k", "v", reka.At(c.tt.Now()))
	c.tt.Fail(tester.Fault{Op: tester.OpOffsets, Times: -1, Do: tester.Error(errors.New("no broker"))})
	c.tt.Advance(3 * time.Hour)
	c.wants("")
}

func TestStreamTimeThatTheClockHasMovedSurvivesARestart(t *testing.T) {
	c := idling(t)
	start := c.tt.Now()
	c.in.Send("k", "v", reka.At(start))
	c.tt.Advance(30 * time.Minute)
	c.app.Crash()
	c.tt.Advance(time.Minute)
	c.app.Restart()
	c.tt.Advance(20 * time.Minute)
	c.wants("") // what the clock did while nobody ran does not count
	c.tt.Advance(40 * time.Minute)
	c.wants("alarm")
}

func TestRecordsTooFarInTheFutureSayNothingAboutTime(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	c := &clockwork{t: t, tt: tt, in: tester.Input(tt, ticks), out: tester.Output(tt, tocks)}
	var p *processor.Processor
	c.app = tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		out := processor.Output(tocks)
		g, err := processor.NewGraph("clockwork", out,
			processor.Every("beat", time.Minute, processor.StreamTime, func(ctx *processor.Context, now time.Time) error {
				out.Emit(ctx, "", fmt.Sprint(now.Sub(tt.Now()).Round(time.Minute)))
				return nil
			}),
			processor.Input(ticks, func(*processor.Context, string) error { return nil }, processor.MaxFuture(time.Hour)))
		if err != nil {
			return nil, err
		}
		p, err = processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return []reka.Runner{p}, err
	})
	now := tt.Now()
	c.in.Send("k", "v", reka.At(now))
	c.in.Send("bad", "v", reka.At(now.AddDate(10, 0, 0)))
	c.in.Send("k", "v", reka.At(now.Add(time.Minute)))
	c.wants("0s 1m0s")
	if st := p.Stats().Partitions[0]; st.Future != 1 || st.Records != 3 {
		t.Errorf("%d records of %d refused, want 1 of 3", st.Future, st.Records)
	}
}

func TestStreamTimeInACallbackIncludesItsRecord(t *testing.T) {
	for name, edges := range map[string][]processor.Edge{
		"nothing waits for time": nil,
		"a call waits for time":  {processor.Every("beat", time.Hour, processor.StreamTime, func(*processor.Context, time.Time) error { return nil })},
	} {
		t.Run(name, func(t *testing.T) {
			c := clocked(t, func(out *processor.Sink[string]) []processor.Edge {
				return append(edges, processor.Input(ticks, func(ctx *processor.Context, _ string) error {
					out.Emit(ctx, ctx.Key(), fmt.Sprint(ctx.StreamTime().UnixMilli()))
					return nil
				}))
			})
			c.send("k", "v", 100)
			c.send("k", "v", 200)
			c.send("k", "v", 150)
			c.wants("100 200 200")
		})
	}
}
