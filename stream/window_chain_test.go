package stream_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// chained is a chain of windows: each sums what the one before it lets go.
func chained(r *rand.Rand, links int) (func(*stream.Builder), string) {
	type link struct {
		w        window.Windows
		suppress int // 0: emit on close; 1: until closed; 2: until elapsed
	}
	var chain []link
	var text []string
	for range links {
		l := link{suppress: r.IntN(3)}
		span, grace := ms(1+r.Int64N(15)), ms(r.Int64N(10))
		switch r.IntN(3) {
		case 0:
			l.w = window.Tumbling(span, grace)
		case 1:
			l.w = window.Hopping(span, span, grace)
		default:
			l.w = window.Session(span, grace)
		}
		chain, text = append(chain, l), append(text, fmt.Sprintf("%v, results %d", l.w, l.suppress))
	}
	return func(b *stream.Builder) {
		flow := stream.From(b, numbers("in"))
		for _, l := range chain {
			sums := stream.AggregateWindows(flow.GroupByKey().Windowed(l.w), summing(), stream.WithCodec(codec.Int64()))
			switch l.suppress {
			case 0:
				sums = sums.OnClose()
			case 1:
				sums = sums.Suppress(stream.UntilClosed())
			default:
				sums = sums.Suppress(stream.UntilElapsed(ms(7)))
			}
			flow = stream.MapValues(stream.Results(sums), func(_ string, r stream.Result[int64]) int64 { return r.Value }, stream.WithCodec(codec.Int64()))
		}
		flow.To(numbers("out"))
	}, strings.Join(text, " → ")
}

// What an operation holds back is not late for those behind it.
func TestChainsOfWindowsLoseNothingToTheirOwnDelay(t *testing.T) {
	for seed := range seeds(t, 24) {
		r := rand.New(rand.NewPCG(seed, 4))
		build, text := chained(r, 2+r.IntN(3))
		whole := !strings.Contains(text, "results 2") // else some are there more than once
		var batches [][]record
		sent := map[string]int64{}
		at := int64(0)
		for i := range 80 {
			at += r.Int64N(9)
			if r.IntN(15) == 0 {
				at += r.Int64N(200)
			}
			key := string('a' + rune(r.IntN(3)))
			sent[key] += int64(i)
			batches = append(batches, []record{recordAt(key, encoded(int64(i)), at)})
		}
		batches = append(batches, []record{recordAt("end", encoded(0), at+100_000)})
		got := trial{build: build}.run(t, batches)
		for name, n := range got.counters {
			if strings.HasSuffix(name, ": late") && n > 0 {
				t.Errorf("seed %d, %s: %s: %d", seed, text, name, n)
			}
		}
		for _, r := range got.raw["out"] {
			sent[string(r.Key)] -= decoded(r.Value)
		}
		for key, left := range sent {
			if whole && left != 0 && key != "end" {
				t.Errorf("seed %d, %s: %s lacks %s", seed, text, key, strconv.FormatInt(left, 10))
			}
		}
		if t.Failed() {
			return
		}
	}
}
