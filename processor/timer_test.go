package processor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// clockwork is a group under test with its log of what ran.
type clockwork struct {
	t   *testing.T
	tt  *tester.Tester
	app *tester.Instance
	in  *tester.InputTopic[string]
	out *tester.OutputTopic[string]

	seen int
}

var (
	ticks = reka.NewStream("ticks", codec.String())
	tocks = reka.NewStream("tocks", codec.String())
)

// clocked starts a graph that reads ticks and writes tocks.
func clocked(t *testing.T, edges func(*processor.Sink[string]) []processor.Edge) *clockwork {
	t.Helper()
	tt := tester.New(t, tester.WithPartitions(1))
	c := &clockwork{t: t, tt: tt, in: tester.Input(tt, ticks), out: tester.Output(tt, tocks)}
	c.app = tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		sink := processor.Output(tocks)
		g, err := processor.NewGraph("clockwork", append(edges(sink), sink)...)
		if err != nil {
			return nil, err
		}
		p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return []reka.Runner{p}, err
	})
	tt.Settle()
	return c
}

func (c *clockwork) send(key, v string, ms int64) {
	c.t.Helper()
	c.in.Send(key, v, reka.At(time.UnixMilli(ms)))
}

// wants checks what was written since the last call.
func (c *clockwork) wants(want string) {
	c.t.Helper()
	all := c.out.Values()
	if got := strings.Join(all[c.seen:], " "); got != want {
		c.t.Errorf("got  %s\nwant %s", got, want)
	}
	c.seen = len(all)
}

func TestPeriodicCallsInStreamTimeKeepToTheirBeat(t *testing.T) {
	c := clocked(t, func(out *processor.Sink[string]) []processor.Edge {
		return []processor.Edge{
			processor.Input(ticks, func(*processor.Context, string) error { return nil }),
			processor.Every("beat", 10*time.Millisecond, processor.StreamTime, func(ctx *processor.Context, now time.Time) error {
				out.Emit(ctx, "", fmt.Sprint(now.UnixMilli()))
				return nil
			}),
		}
	})
	for _, ms := range []int64{20, 25, 142, 145, 155, 159, 160, 161} {
		c.send("k", "v", ms)
	}
	c.wants("20 142 155 160")
}

func TestPeriodicCallsByTheWallClockKeepToTheirBeat(t *testing.T) {
	c := clocked(t, func(out *processor.Sink[string]) []processor.Edge {
		return []processor.Edge{
			processor.Input(ticks, func(*processor.Context, string) error { return nil }),
			processor.Every("beat", 10*time.Second, processor.WallClock, func(ctx *processor.Context, now time.Time) error {
				out.Emit(ctx, "", "beat")
				return nil
			}),
		}
	})
	c.wants("")
	c.tt.Advance(10 * time.Second)
	c.wants("beat")
	c.tt.Advance(9 * time.Second)
	c.wants("")
	c.tt.Advance(time.Second)
	c.wants("beat")
	c.app.Crash()
	c.tt.Advance(35 * time.Second)
	c.app.Restart()
	c.wants("beat")
}

func TestTimersRunInOrderAfterTheRecordThatBringsTheirTime(t *testing.T) {
	c := clocked(t, func(out *processor.Sink[string]) []processor.Edge {
		timers := processor.Timer("alarms", processor.StreamTime)
		return []processor.Edge{
			timers.On(func(ctx *processor.Context, at time.Time) error {
				out.Emit(ctx, ctx.Key(), fmt.Sprintf("%s!%d", ctx.Key(), at.UnixMilli()))
				return nil
			}),
			processor.Input(ticks, func(ctx *processor.Context, v string) error {
				out.Emit(ctx, ctx.Key(), fmt.Sprintf("%s@%d", ctx.Key(), ctx.Time().UnixMilli()))
				switch v {
				case "cancel":
					timers.Cancel(ctx)
				case "":
				default:
					var n int64
					if _, err := fmt.Sscan(v, &n); err != nil {
						return err
					}
					timers.Set(ctx, time.UnixMilli(n))
				}
				return nil
			}),
		}
	})
	c.send("b", "30", 1)
	c.send("a", "30", 2)
	c.send("c", "20", 3)
	c.send("d", "25", 4)
	c.send("d", "cancel", 5)
	c.send("c", "31", 6)
	c.wants("b@1 a@2 c@3 d@4 d@5 c@6")
	c.app.Crash()
	c.app.Restart()
	c.send("e", "7", 30)
	c.wants("e@30 e!7 a!30 b!30")
	c.send("f", "", 100)
	c.wants("f@100 c!31")
}

func TestClocksRunBeforeTheFirstFetchIsAnswered(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	c := &clockwork{t: t, tt: tt, in: tester.Input(tt, ticks), out: tester.Output(tt, tocks)}
	tt.Fail(tester.Fault{Op: tester.OpFetch, Topic: ticks.Name(), Times: -1, Do: tester.Delay(10 * time.Minute)})
	c.app = tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		out := processor.Output(tocks)
		g, err := processor.NewGraph("clockwork", out,
			processor.Input(ticks, func(*processor.Context, string) error { return nil }),
			processor.Every("beat", time.Minute, processor.WallClock, func(ctx *processor.Context, _ time.Time) error {
				out.Emit(ctx, "", "beat")
				return nil
			}))
		if err != nil {
			return nil, err
		}
		p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return []reka.Runner{p}, err
	})
	tt.Settle()
	tt.Advance(3 * time.Minute)
	c.wants("beat beat beat") //nolint:dupword // three of them
}

func TestPeriodicCallsEndWithTime(t *testing.T) {
	c := clocked(t, func(out *processor.Sink[string]) []processor.Edge {
		return []processor.Edge{
			processor.Input(ticks, func(*processor.Context, string) error { return nil }),
			processor.Every("beat", time.Minute, processor.StreamTime, func(ctx *processor.Context, now time.Time) error {
				out.Emit(ctx, "", fmt.Sprint(now.UnixMilli()))
				return nil
			}),
		}
	})
	c.send("k", "v", 1)
	c.send("k", "v", 1<<63-1)
	c.send("k", "v", 5)
	c.wants("1 9223372036854775807")
	c.app.Crash()
	c.app.Restart()
	c.wants("")
	if err := c.app.Err(); err != nil {
		t.Error(err)
	}
}

func TestTimerThatIsSetToItsOwnTimeRunsAMomentLater(t *testing.T) {
	c := clocked(t, func(out *processor.Sink[string]) []processor.Edge {
		timers := processor.Timer("alarms", processor.StreamTime)
		return []processor.Edge{
			timers.On(func(ctx *processor.Context, at time.Time) error {
				out.Emit(ctx, ctx.Key(), fmt.Sprint(at.UnixMilli()))
				timers.Set(ctx, at)
				return nil
			}),
			processor.Input(ticks, func(ctx *processor.Context, _ string) error {
				if ctx.Key() == "k" {
					timers.Set(ctx, time.UnixMilli(10))
				}
				return nil
			}),
		}
	})
	c.send("k", "v", 1)
	c.send("x", "v", 12)
	c.wants("10 11 12")
}

func TestPeriodicCallWithAShorterIntervalNeedNotWaitForTheLongOne(t *testing.T) {
	interval := 24 * time.Hour
	c := clocked(t, func(out *processor.Sink[string]) []processor.Edge {
		return []processor.Edge{
			processor.Input(ticks, func(*processor.Context, string) error { return nil }),
			processor.Every("beat", interval, processor.WallClock, func(ctx *processor.Context, _ time.Time) error {
				out.Emit(ctx, "", "beat")
				return nil
			}),
		}
	})
	c.tt.Advance(time.Minute)
	interval = 10 * time.Second
	c.app.Crash()
	c.app.Restart()
	c.wants("")
	c.tt.Advance(10 * time.Second)
	c.wants("beat")
}

// beats counts periodic calls of both clocks.
func beats(t *testing.T, interval time.Duration) *clockwork {
	t.Helper()
	call := func(out *processor.Sink[string], name string) func(*processor.Context, time.Time) error {
		return func(ctx *processor.Context, _ time.Time) error {
			out.Emit(ctx, "", name)
			return nil
		}
	}
	return clocked(t, func(out *processor.Sink[string]) []processor.Edge {
		return []processor.Edge{
			processor.Input(ticks, func(*processor.Context, string) error { return nil }),
			processor.Every("stream", interval, processor.StreamTime, call(out, "s")),
			processor.Every("wall", interval, processor.WallClock, call(out, "w")),
		}
	})
}

func TestMissedBeatsAreMadeUpForByOneCallOnTheOldBeat(t *testing.T) {
	c := beats(t, 100*time.Millisecond)
	for _, step := range []struct {
		at   int64
		want string
	}{{1000, "s"}, {1100, "s"}, {1200, "s"}, {2001, "s"}, {2002, ""}, {2100, "s"}} {
		c.send("k", "v", step.at)
		c.wants(step.want)
	}
}

func TestWallClockBeatsStayAlignedToTheirBeginning(t *testing.T) {
	c := beats(t, 10*time.Second)
	now := 0
	for _, step := range []struct {
		at    int
		calls int
	}{{10, 1}, {20, 1}, {29, 0}, {30, 1}, {50, 2}, {130, 8}, {135, 0}, {140, 1}} {
		c.tt.Advance(time.Duration(step.at-now) * time.Second)
		now = step.at
		c.wants(strings.TrimSpace(strings.Repeat("w ", step.calls)))
	}
}

func TestBothClocksBeatByTheirOwnTime(t *testing.T) {
	c := beats(t, 10*time.Second)
	for i := range int64(60) { // a minute of event time within 20 seconds
		c.send("k", "v", 1000*(i+1))
		c.tt.Advance(time.Second / 3)
	}
	c.tt.Advance(time.Second)
	all := strings.Join(c.out.Values(), "")
	if s, w := strings.Count(all, "s"), strings.Count(all, "w"); s != 6 || w != 2 {
		t.Errorf("%d calls in stream time and %d by the wall clock, want 6 and 2", s, w)
	}
}
