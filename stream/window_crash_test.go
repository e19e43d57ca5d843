package stream_test

import (
	"time"

	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// windowGraphs are graphs that read the topic in by window.
func windowGraphs() map[string]func(*stream.Builder) {
	both := func(w window.Windows) func(*stream.Builder) {
		return func(b *stream.Builder) {
			in := stream.From(b, text("in")).GroupByKey().Windowed(w).Late(text("late"))
			res := stream.AggregateWindows(in, adding(), stream.WithCodec(codec.String()))
			res.To(windows("out", w))
			res.OnClose().To(windows("final", w))
		}
	}
	out := map[string]func(*stream.Builder){
		"tumbling":                both(window.Tumbling(ms(10), ms(5))),
		"tumbling kept longer":    both(window.Tumbling(ms(10), ms(5)).WithRetention(ms(60))),
		"hopping":                 both(window.Hopping(ms(10), ms(3), ms(4))),
		"sliding":                 both(window.Sliding(ms(7), ms(6))),
		"sessions":                both(window.Session(ms(6), ms(8))),
		"sessions kept longer":    both(window.Session(ms(6), ms(8)).WithRetention(ms(50))),
		"hopping in panes":        func(b *stream.Builder) { countsOnClose(b, window.Hopping(ms(20), ms(6), ms(5))) },
		"final windows of finals": finalsOfFinals,
		"regrouped finals":        regroupedFinals,
		"outer join":              func(b *stream.Builder) { joinedHalves(b, stream.Between(ms(8), ms(3), ms(4))) },
		"join of one side later":  func(b *stream.Builder) { joinedHalves(b, stream.Between(ms(-2), ms(9), ms(4))) },
		"timers":                  alarms,
	}
	for name, by := range map[string]stream.Suppression{
		"closed": stream.UntilClosed(), "elapsed": stream.UntilElapsed(ms(15)), "full": stream.UntilFull().MaxRecords(3),
		"elapsed or full": stream.UntilElapsed(ms(15)).MaxBytes(60),
	} {
		out["suppressed until "+name] = func(b *stream.Builder) { suppressedInWindows(b, by) }
	}
	return out
}

// joinedHalves joins the records with even last bytes to the others, outer and
// inner.
func joinedHalves(b *stream.Builder, w stream.JoinWindow) {
	even := func(_, v string) bool { return v == "" || v[len(v)-1]%2 == 0 }
	in := stream.From(b, text("in"))
	l, r := in.Filter(even), in.FilterNot(even)
	stream.OuterJoin(l, r, w, func(_ string, l, r *string) string { return side(l) + "+" + side(r) }, stream.WithCodec(codec.String()),
		stream.LateLeft(text("late")), stream.LateRight(text("late"))).To(text("out"))
	stream.Join(l, r, w, func(_, l, r string) string { return l + "+" + r }, stream.WithCodec(codec.String())).To(text("inner"))
}

// alarms sets and cancels a timer of stream time by key, and counts what comes
// between its beats.
func alarms(b *stream.Builder) {
	out := processor.Output(text("out"))
	timers := processor.Timer("alarms", processor.StreamTime)
	beats := processor.Store("beats", codec.Int64())
	edges := []processor.Edge{out, timers.On(func(ctx *processor.Context, at time.Time) error {
		out.Emit(ctx, ctx.Key(), fmt.Sprint("alarm ", at.UnixMilli()))
		return nil
	}), beats, processor.Every("beat", 7*time.Millisecond, processor.StreamTime, func(ctx *processor.Context, now time.Time) error {
		n, _ := beats.Get(ctx, "n")
		beats.Set(ctx, "n", n+1)
		out.Emit(ctx, "", fmt.Sprint("beat ", n, " at ", now.UnixMilli()))
		return nil
	})}
	stream.Process(stream.From(b, text("in")), func(ctx *processor.Context, v string, _ func(string, string)) error {
		if ctx.NullKey() {
			return nil
		}
		switch len(v) % 3 {
		case 0:
			timers.Cancel(ctx)
		default:
			timers.Set(ctx, ctx.Time().Add(ms(int64(v[len(v)-1]%20))))
		}
		return nil
	}, edges)
}

func countsOnClose(b *stream.Builder, w window.Windows) {
	stream.From(b, text("in")).GroupByKey().Windowed(w).Count().OnClose().To(counts("final", w))
}

// finalsOfFinals counts final results by window.
func finalsOfFinals(b *stream.Builder) {
	small, large := window.Tumbling(ms(5), ms(4)), window.Session(ms(12), ms(3))
	first := stream.Results(stream.From(b, text("in")).GroupByKey().Windowed(small).Late(text("late")).Count().OnClose())
	again := stream.MapValues(first, func(_ string, r stream.Result[int64]) string { return fmt.Sprint(r.Value) }, stream.WithCodec(codec.String())).
		GroupByKey().Windowed(large).Late(text("again"))
	stream.AggregateWindows(again, adding(), stream.WithCodec(codec.String())).OnClose().To(windows("final", large))
}

// regroupedFinals gathers final results by another key, behind a repartition
// topic.
func regroupedFinals(b *stream.Builder) {
	small, large := window.Tumbling(ms(5), ms(4)), window.Sliding(ms(9), ms(3))
	first := stream.Results(stream.From(b, text("in")).GroupByKey().Windowed(small).Late(text("late")).Count().OnClose())
	again := stream.MapValues(first, func(_ string, r stream.Result[int64]) string { return fmt.Sprint(r.Value) }, stream.WithCodec(codec.String())).
		GroupBy(func(_, n string) string { return n }).Windowed(large).Late(text("again"))
	res := stream.AggregateWindows(again, adding(), stream.WithCodec(codec.String()))
	res.To(windows("updates", large))
	res.OnClose().To(windows("final", large))
}

// suppressedInWindows gathers suppressed results by window again.
func suppressedInWindows(b *stream.Builder, by stream.Suppression) {
	w := window.Tumbling(ms(10), ms(5))
	first := stream.From(b, text("in")).GroupByKey().Windowed(w).Late(text("late")).Count().Suppress(by)
	first.To(counts("out", w))
	again := stream.MapValues(stream.Results(first), func(_ string, r stream.Result[int64]) string { return fmt.Sprint(r.Value) }, stream.WithCodec(codec.String())).
		GroupByKey().Windowed(w).Late(text("again"))
	res := stream.AggregateWindows(again, adding(), stream.WithCodec(codec.String()))
	res.To(windows("updates", w))
	res.OnClose().To(windows("final", w))
}

func TestCrashesChangeNothingInWindows(t *testing.T) {
	t.Parallel()
	for name, build := range windowGraphs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashes := 0
			for seed := range seeds(t, 4) {
				r := rand.New(rand.NewPCG(seed, 1))
				batches := disorder{keys: []string{"a", "aa", "b", "\x00", ""}, n: 60, step: 4, back: 25, jump: 80}.records(r)
				want := trial{build: build}.run(t, batches)
				tuning := processor.Tuning{EpochBytes: 1 + r.IntN(400)}
				got := trial{build: build, tuning: tuning, troubled: r}.run(t, batches)
				if diff := want.differs(got); diff != "" {
					t.Fatalf("seed %d, %d crashes, epochs of %d bytes:\n%s", seed, got.crashes, tuning.EpochBytes, diff)
				}
				crashes += got.crashes
			}
			if crashes == 0 {
				t.Error("nothing crashed")
			}
		})
	}
}

// An epoch may end between two of the runs that one advance of time takes, and
// the process then: what follows sees the same times as if nothing had been.
func TestCrashesWhileMuchIsReleasedChangeNothing(t *testing.T) {
	t.Parallel()
	for name, build := range windowGraphs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first []kafka.Record
			for i := range 150 {
				first = append(first, recordAt(fmt.Sprint("key", i%140), fmt.Sprint(i), int64(i%12)))
			}
			batches := [][]record{first, {recordAt("x", "x", 200)}, {recordAt("x", "y", 1000)}}
			want := trial{build: build}.run(t, batches)
			for n := range 9 {
				got := trial{build: build, tuning: processor.Tuning{EpochBytes: 1 << (n % 3 * 5)}, nth: 1 + n/3}.run(t, batches)
				if diff := want.differs(got); diff != "" {
					t.Fatalf("crash at commit %d, %d crashes:\n%s", n, got.crashes, diff)
				}
			}
		})
	}
}

// One run lets go of as much as one record may emit, and no more.
func TestManyLargeResultsAreReleasedInSeveralRuns(t *testing.T) {
	for name, build := range windowGraphs() {
		t.Run(name, func(t *testing.T) {
			var first []record
			for i := range 100 {
				first = append(first, recordAt(fmt.Sprint("key", i), strings.Repeat("x", 500), int64(i%9)))
			}
			batches := [][]record{first, {recordAt("x", "x", 200)}, {recordAt("x", "y", 1000)}}
			want := trial{build: build}.run(t, batches)
			got := trial{build: build, tuning: processor.Tuning{RecordBytes: 12_000}}.run(t, batches)
			if diff := want.differs(got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}
