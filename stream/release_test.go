package stream_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/window"
)

// A result that is due and fails goes by the error policy, and takes nothing
// with it.
func TestResultThatFailsWhenItIsDueIsSkippedAlone(t *testing.T) {
	w := window.Tumbling(ms(10), 0)
	for name, results := range map[string]func(in stream.Flow[string]) stream.Flow[string]{
		"window": func(in stream.Flow[string]) stream.Flow[string] {
			res := stream.Results(in.GroupByKey().Windowed(w).Reduce(func(a, b string) string { return a + b }).OnClose())
			return stream.MapValues(res, func(_ string, r stream.Result[string]) string { return r.Value })
		},
		"session": func(in stream.Flow[string]) stream.Flow[string] {
			res := stream.Results(in.GroupByKey().Windowed(window.Session(ms(9), 0)).Reduce(func(a, b string) string { return a + b }).OnClose())
			return stream.MapValues(res, func(_ string, r stream.Result[string]) string { return r.Value })
		},
		"sliding": func(in stream.Flow[string]) stream.Flow[string] {
			res := stream.Results(in.GroupByKey().Windowed(window.Sliding(ms(1), 0)).Reduce(func(a, b string) string { return a + b }).OnClose())
			return stream.MapValues(res, func(_ string, r stream.Result[string]) string { return r.Value })
		},
		"suppression": func(in stream.Flow[string]) stream.Flow[string] {
			return stream.Changes(in.ToTable().Suppress(stream.UntilElapsed(ms(10))))
		},
		"left join": func(in stream.Flow[string]) stream.Flow[string] {
			none := in.Filter(func(string, string) bool { return false })
			return stream.LeftJoin(in, none, stream.Within(ms(9), 0), func(_, l string, _ *string) string { return l })
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := stream.NewBuilder("g", processor.OnError(processor.Process, processor.SkipAndCount))
			stream.TryMapValues(results(stream.From(b, text("in"))), func(_, v string) (string, error) {
				switch {
				case strings.Contains(v, "bad"):
					return "", errors.New("bad value")
				case strings.Contains(v, "panic"):
					panic("bad value")
				}
				return v, nil
			}, stream.WithCodec(codec.String())).To(text("out"))
			g, err := b.Graph()
			if err != nil {
				t.Fatal(err)
			}
			tt := tester.New(t, tester.WithPartitions(1))
			in, out := tester.Input(tt, text("in")), tester.Output(tt, text("out"))
			var p *processor.Processor
			app := tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
				p, err = processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
				return []reka.Runner{p}, err
			})
			for _, kv := range []string{"a:1", "b:bad", "c:2", "d:panic", "e:3"} {
				key, v, _ := strings.Cut(kv, ":")
				in.Send(key, v, reka.At(time.UnixMilli(1)))
			}
			in.Send("z", "9", reka.At(time.UnixMilli(100)))
			if got := fmt.Sprint(out.Values()); got != "[1 2 3]" {
				t.Errorf("results %s", got)
			}
			if err := app.Err(); err != nil {
				t.Error(err)
			}
			if n := p.Stats().Partitions[0].Skipped; n != 2 {
				t.Errorf("%d skipped, want 2", n)
			}
		})
	}
}

// A large value does not share a row that would become too large with it.
func TestLargeValuesOfOneKeyAreJoinedWithoutSharingARow(t *testing.T) {
	b := stream.NewBuilder("g")
	in := stream.From(b, text("in"))
	stream.Join(in, in, stream.Within(ms(100), 0), func(_, l, r string) string { return fmt.Sprint(len(l), "+", len(r)) },
		stream.WithCodec(codec.String()), stream.Named("j")).To(text("out"))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	tt := tester.New(t, tester.WithPartitions(1))
	tt.CreateTopic("g-j-changelog", 1, "cleanup.policy", "compact", "max.message.bytes", "20000")
	src, out := tester.Input(tt, text("in")), tester.Output(tt, text("out"))
	tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return []reka.Runner{p}, err
	})
	src.Send("k", strings.Repeat("a", 3000), reka.At(time.UnixMilli(1)))
	src.Send("k", strings.Repeat("b", 17500), reka.At(time.UnixMilli(2)))
	if got := fmt.Sprint(out.Values()); got != "[3000+3000 17500+3000 3000+17500 17500+17500]" {
		t.Errorf("results %s", got)
	}
}

func TestRecordInThousandsOfWindowsIsCountedInEach(t *testing.T) {
	w := window.Hopping(ms(3000), ms(1), 0)
	s := play(t, "in", func(b *stream.Builder) {
		stream.From(b, text("in")).GroupByKey().Windowed(w).Count(stream.Named("n")).To(counts("out", w))
	})
	s.send("in", "k:v@5000", "k:v@5000", "k:v@5001")
	rows := tester.WindowStore(s.tt, "g", "n", counts("", w)).All()
	if len(rows) != 3000 { // the first one is over
		t.Fatalf("%d windows, want 3000", len(rows))
	}
	for _, r := range rows {
		want := int64(3)
		if r.Window.Start == 5001 {
			want = 1
		}
		if r.Value != want {
			t.Errorf("window %d: %d, want %d", r.Window.Start, r.Value, want)
		}
	}
}
