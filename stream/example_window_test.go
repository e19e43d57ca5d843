package stream_test

import (
	"fmt"
	"time"

	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

func ExampleWindowed_Count() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		w := window.Tumbling(time.Minute, 10*time.Second)
		clicks.GroupByKey().Windowed(w).Count(stream.Named("clicks-per-minute")).To(PerMinute)
	},
		"clicks ann:/home@10", "clicks ann:/shop@65", "clicks ann:/help@59", "clicks ann:/home@70", "clicks ann:/late@58")
	// Output:
	// clicks ann:/home@10 → per-minute ann[0..60)=1@10
	// clicks ann:/shop@65 → per-minute ann[60..120)=1@65
	// clicks ann:/help@59 → per-minute ann[0..60)=2@59
	// clicks ann:/home@70 → per-minute ann[60..120)=2@70
	// clicks ann:/late@58 → –
}

func ExampleWindows_OnClose() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		w := window.Tumbling(time.Minute, 10*time.Second)
		clicks.GroupByKey().Windowed(w).Count().OnClose().To(PerMinute)
	},
		"clicks bob:/home@10", "clicks ann:/home@20", "clicks ann:/shop@65", "clicks ann:/help@59", "clicks ann:/home@70")
	// Output:
	// clicks bob:/home@10 → –
	// clicks ann:/home@20 → –
	// clicks ann:/shop@65 → –
	// clicks ann:/help@59 → –
	// clicks ann:/home@70 → per-minute ann[0..60)=2@59, per-minute bob[0..60)=1@10
}

func ExampleWindowed_Count_hopping() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		w := window.Hopping(time.Minute, 30*time.Second, window.NoGrace)
		clicks.GroupByKey().Windowed(w).Count().To(Moving)
	},
		"clicks ann:/home@10", "clicks ann:/shop@40", "clicks ann:/help@70")
	// Output:
	// clicks ann:/home@10 → moving ann[0..60)=1@10
	// clicks ann:/shop@40 → moving ann[0..60)=2@40, moving ann[30..90)=1@40
	// clicks ann:/help@70 → moving ann[30..90)=2@70, moving ann[60..120)=1@70
}

func ExampleWindowed_Count_sliding() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		w := window.Sliding(10*time.Second, window.NoGrace)
		clicks.GroupByKey().Windowed(w).Count().To(Around)
	},
		"clicks ann:/home@20", "clicks ann:/shop@25", "clicks ann:/help@32")
	// Output:
	// clicks ann:/home@20 → around ann[10..20]=1@20
	// clicks ann:/shop@25 → around ann[15..25]=2@25, around ann[20.001..30.001]=1@25
	// clicks ann:/help@32 → around ann[22..32]=2@32, around ann[25.001..35.001]=1@32
}

func ExampleWindowed_Count_session() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		w := window.Session(30*time.Second, 30*time.Second)
		clicks.GroupByKey().Windowed(w).Count().To(Visits)
	},
		"clicks ann:/home@0", "clicks ann:/help@10", "clicks ann:/shop@45", "clicks ann:/cups@30", "clicks bob:/home@105.001", "clicks ann:/late@20")
	// Output:
	// clicks ann:/home@0       → visits ann[0..0]=1@0
	// clicks ann:/help@10      → visits ann[0..0]=⊥@0, visits ann[0..10]=2@10
	// clicks ann:/shop@45      → visits ann[45..45]=1@45
	// clicks ann:/cups@30      → visits ann[0..10]=⊥@10, visits ann[45..45]=⊥@45, visits ann[0..45]=4@45
	// clicks bob:/home@105.001 → visits bob[105.001..105.001]=1@105.001
	// clicks ann:/late@20      → –
}

func ExampleWindowed_Count_closedSession() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		w := window.Session(30*time.Second, window.NoGrace)
		clicks.GroupByKey().Windowed(w).Count().To(Visits)
	},
		"clicks ann:/home@0", "clicks ann:/shop@40", "clicks ann:/help@20")
	// Output:
	// clicks ann:/home@0  → visits ann[0..0]=1@0
	// clicks ann:/shop@40 → visits ann[40..40]=1@40
	// clicks ann:/help@20 → visits ann[40..40]=⊥@40, visits ann[20..40]=2@40
}

func ExampleWindowed_Reduce() {
	demo(func(b *stream.Builder) {
		payments := stream.From(b, Payments)
		w := window.Tumbling(time.Minute, 10*time.Second)
		payments.GroupByKey().Windowed(w).Reduce(func(a, b int64) int64 { return a + b }).To(PerMinute)
	},
		"payments ann:20@10", "payments ann:30@40", "payments ann:5@60")
	// Output:
	// payments ann:20@10 → per-minute ann[0..60)=20@10
	// payments ann:30@40 → per-minute ann[0..60)=50@40
	// payments ann:5@60  → per-minute ann[60..120)=5@60
}

func ExampleAggregateWindows() {
	demo(func(b *stream.Builder) {
		payments := stream.From(b, Payments)
		w := window.Hopping(time.Minute, 30*time.Second, window.NoGrace)
		largest := stream.AggregateWindows(payments.GroupByKey().Windowed(w), stream.Aggregator[int64, int64]{
			Add:       func(_ string, amount, largest int64) int64 { return max(amount, largest) },
			Merge:     func(_ string, a, b int64) int64 { return max(a, b) },
			Mergeable: true,
		}, stream.WithCodec(Payments.Codec()))
		largest.OnClose().To(Moving)
	},
		"payments ann:20@10", "payments ann:50@40", "payments ann:30@70", "payments ann:1@130")
	// Output:
	// payments ann:20@10 → –
	// payments ann:50@40 → –
	// payments ann:30@70 → moving ann[0..60)=50@40
	// payments ann:1@130 → moving ann[30..90)=50@70, moving ann[60..120)=30@70
}

func ExampleResults() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		w := window.Tumbling(time.Minute, window.NoGrace)
		counts := stream.Results(clicks.GroupByKey().Windowed(w).Count().OnClose())
		busy := counts.Filter(func(_ string, r stream.Result[int64]) bool { return r.Value > 1 })
		stream.MapValues(busy, func(_ string, r stream.Result[int64]) string {
			return fmt.Sprintf("%d clicks from %s", r.Value, r.Window.StartTime().UTC().Format(time.TimeOnly))
		}).To(Out)
	},
		"clicks ann:/home@10", "clicks bob:/home@20", "clicks ann:/shop@30", "clicks ann:/help@65")
	// Output:
	// clicks ann:/home@10 → –
	// clicks bob:/home@20 → –
	// clicks ann:/shop@30 → –
	// clicks ann:/help@65 → out ann:2 clicks from 00:00:00@30
}

func ExampleWindowed_Late() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		w := window.Hopping(time.Minute, 30*time.Second, window.NoGrace)
		clicks.GroupByKey().Windowed(w).Late(Late).Count().To(Moving)
	},
		"clicks ann:/home@65", "clicks bob:/help@55", "clicks bob:/shop@20")
	// Output:
	// clicks ann:/home@65 → moving ann[30..90)=1@65, moving ann[60..120)=1@65
	// clicks bob:/help@55 → late bob:/help@55 (reka-late-windows: 0-60000) (reka-late-stream-time: 65000), moving bob[30..90)=1@55
	// clicks bob:/shop@20 → late bob:/shop@20 (reka-late-windows: 0-60000) (reka-late-stream-time: 65000)
}

func ExampleWindows_Suppress() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		w := window.Session(30*time.Second, window.NoGrace)
		visits := clicks.GroupByKey().Windowed(w).Count()
		visits.Suppress(stream.UntilClosed(), stream.Named("ended-visits")).To(Visits)
	},
		"clicks ann:/home@0", "clicks ann:/help@10", "clicks bob:/home@40", "clicks bob:/shop@40.001", "clicks ann:/back@15")
	// Output:
	// clicks ann:/home@0      → –
	// clicks ann:/help@10     → –
	// clicks bob:/home@40     → –
	// clicks bob:/shop@40.001 → visits ann[0..10]=2@10
	// clicks ann:/back@15     → –
}

func ExampleCogroupedWindows_Aggregate() {
	demo(func(b *stream.Builder) {
		clicks, payments := stream.From(b, Clicks), stream.From(b, Payments)
		scores := stream.Cogroup(
			stream.Add(clicks.GroupByKey(), func(_, _ string, score int64) int64 { return score + 1 }),
			stream.Add(payments.GroupByKey(), func(_ string, amount, score int64) int64 { return score + 10*amount }),
		).Windowed(window.Tumbling(time.Minute, 10*time.Second)).Aggregate(nil, nil, stream.WithCodec(Sums.Codec()))
		scores.To(PerMinute)
	},
		"clicks ann:/home@1", "payments ann:3@2", "clicks ann:/help@60")
	// Output:
	// clicks ann:/home@1  → per-minute ann[0..60)=1@1
	// payments ann:3@2    → per-minute ann[0..60)=31@2
	// clicks ann:/help@60 → per-minute ann[60..120)=1@60
}
