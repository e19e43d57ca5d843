package stream_test

import (
	"fmt"
	"time"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// Results that are emitted on close are older than the stream time that has
// closed them. What counts them is given as much time more.
func ExampleWindows_OnClose_chained() {
	demo(func(b *stream.Builder) {
		minutes := stream.From(b, Clicks).GroupByKey().Windowed(window.Tumbling(time.Minute, window.NoGrace))
		busy := stream.Results(minutes.Count(stream.Named("minutes")).OnClose()).WithCodec(codec.JSON[stream.Result[int64]]())
		two := window.Tumbling(2*time.Minute, window.NoGrace)
		busy.GroupByKey().Windowed(two).Count(stream.Named("busy-minutes")).OnClose().To(PerTwo)
	},
		"clicks ann:/home@10", "clicks ann:/home@70", "clicks ann:/home@120", "clicks ann:/home@180")
	// Output:
	// clicks ann:/home@10  → –
	// clicks ann:/home@70  → –
	// clicks ann:/home@120 → –
	// clicks ann:/home@180 → per-two-minutes ann[0..120)=2@70
}

// A timer of each key. It is part of the state, and its callback writes
// through handles.
func ExampleProcess_timers() {
	demo(func(b *stream.Builder) {
		idle := processor.Timer("idle", processor.StreamTime)
		out := processor.Output(Out)
		stream.Process(stream.From(b, Clicks),
			func(ctx *processor.Context, page string, _ func(string, string)) error {
				idle.Set(ctx, ctx.Time().Add(30*time.Second)) // instead of the one before
				return nil
			},
			[]processor.Edge{out, idle.On(func(ctx *processor.Context, at time.Time) error {
				out.Emit(ctx, ctx.Key(), "gone")
				return nil
			})})
	},
		"clicks ann:/home@0", "clicks bob:/home@10", "clicks ann:/shop@20", "clicks bob:/home@45", "clicks cid:/home@80")
	// Output:
	// clicks ann:/home@0  → –
	// clicks bob:/home@10 → –
	// clicks ann:/shop@20 → –
	// clicks bob:/home@45 → –
	// clicks cid:/home@80 → out ann:gone@50, out bob:gone@75
}

// A call of each partition, once an interval of stream time.
func ExampleProcess_every() {
	demo(func(b *stream.Builder) {
		seen := processor.Store("seen", codec.Int64())
		out := processor.Output(Out)
		stream.Process(stream.From(b, Clicks),
			func(ctx *processor.Context, page string, _ func(string, string)) error {
				n, _ := seen.Get(ctx, "all")
				seen.Set(ctx, "all", n+1)
				return nil
			},
			[]processor.Edge{seen, out, processor.Every("report", 10*time.Second, processor.StreamTime, func(ctx *processor.Context, now time.Time) error {
				n, _ := seen.Get(ctx, "all")
				out.Emit(ctx, "clicks", fmt.Sprint(n))
				return nil
			})})
	},
		"clicks ann:/home@3", "clicks bob:/home@12", "clicks ann:/shop@13", "clicks bob:/home@45", "clicks cid:/home@50")
	// Output:
	// clicks ann:/home@3  → out clicks:1@3
	// clicks bob:/home@12 → –
	// clicks ann:/shop@13 → out clicks:3@13
	// clicks bob:/home@45 → out clicks:4@45
	// clicks cid:/home@50 → –
}

// Without data no window closes, unless stream time may follow the clock.
func Example_idleTime() {
	demoWith([]processor.Option{processor.WithIdleTime(20 * time.Second)}, func(b *stream.Builder) {
		w := window.Tumbling(time.Minute, 10*time.Second)
		stream.From(b, Clicks).GroupByKey().Windowed(w).Late(Late).Count().OnClose().To(PerMinute)
	},
		"clicks ann:/home@30", "wait 50s", "wait 20s", "clicks ann:/slow@40")
	// Output:
	// clicks ann:/home@30 → –
	// wait 50s            → –
	// wait 20s            → per-minute ann[0..60)=1@30
	// clicks ann:/slow@40 → late ann:/slow@40 (reka-late-windows: 0-60000) (reka-late-stream-time: 80000)
}

// A record from far in the future would close every window.
func ExampleFrom_maxFuture() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks, processor.MaxFuture(time.Hour))
		clicks.GroupByKey().Windowed(window.Tumbling(time.Minute, window.NoGrace)).Count().To(PerMinute)
	},
		"clicks ann:/home@10", "clicks ann:/wrong@86400", "clicks ann:/shop@20")
	// Output:
	// clicks ann:/home@10     → per-minute ann[0..60)=1@10
	// clicks ann:/wrong@86400 → –
	// clicks ann:/shop@20     → per-minute ann[0..60)=2@20
}

// Records that are filtered away, and those of tables, have a time too.
func ExampleWindows_OnClose_time() {
	demo(func(b *stream.Builder) {
		bought := stream.From(b, Clicks).Filter(func(_, page string) bool { return page == "/buy" })
		users := stream.FromTable(b, Users)
		stream.Changes(users).To(Out)
		both := stream.LeftJoinTable(bought, users, func(_, page string, _ *string) string { return page }, texts())
		both.GroupByKey().Windowed(window.Tumbling(time.Minute, window.NoGrace)).Count().OnClose().To(PerMinute)
	},
		"clicks ann:/buy@10", "clicks bob:/home@60", "clicks ann:/buy@70", "users ann:fr@125")
	// Output:
	// clicks ann:/buy@10  → –
	// clicks bob:/home@60 → per-minute ann[0..60)=1@10
	// clicks ann:/buy@70  → –
	// users ann:fr@125    → out ann:fr@125, per-minute ann[60..120)=1@70
}
