package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// ms is a number of milliseconds.
func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// windows is a table of strings by window.
func windows(name string, w window.Windows) reka.WindowTable[string] {
	return reka.NewWindowTable(name, w, codec.String())
}

// adding gathers values as "0+a+b".
func adding() stream.Aggregator[string, string] {
	return stream.Aggregator[string, string]{
		Init: func() string { return "0" },
		Add:  func(_, v, a string) string { return a + "+" + v },
		Merge: func(_, a, b string) string {
			return a + strings.TrimPrefix(b, "0")
		},
	}
}

// playWindows starts an aggregation by window of topic in, with every update
// in out and finals in final.
func playWindows(t *testing.T, w window.Windows, by stream.Aggregator[string, string]) *scene {
	t.Helper()
	return play(t, "in", func(b *stream.Builder) {
		in := stream.From(b, text("in")).GroupByKey().Windowed(w).Late(text("late"))
		res := stream.AggregateWindows(in, by, stream.WithCodec(codec.String()))
		res.To(windows("out", w))
		res.OnClose().To(windows("final", w))
	})
}

// results returns what came to a topic of results since the last call, as
// "key[start-end]=value@time".
func (s *scene) results(topic string, w window.Windows) string {
	s.t.Helper()
	s.tt.Settle()
	all := s.tt.Raw(topic, 0)
	out := readable(s.t, w, all[s.seen[topic]:])
	s.seen[topic] = len(all)
	return strings.Join(out, " ")
}

// readable returns results as "key[start-end]=value@time".
func readable(t *testing.T, w window.Windows, results []kafka.Record) (out []string) {
	t.Helper()
	for _, r := range results {
		key, win, err := w.SplitTopicKey(r.Key)
		if err != nil {
			t.Fatal(err)
		}
		value := "⊥"
		if r.Value != nil {
			value = string(r.Value)
		}
		out = append(out, fmt.Sprintf("%s[%d-%d]=%s@%d", key, win.Start, win.End, value, r.Timestamp))
	}
	return out
}

// shows checks what came to out and to final since the last call.
func (s *scene) shows(w window.Windows, out, final string) {
	s.t.Helper()
	if got := s.results("out", w); got != out {
		s.t.Errorf("updates:\n  got  %s\n  want %s", got, out)
	}
	if got := s.results("final", w); got != final {
		s.t.Errorf("finals:\n  got  %s\n  want %s", got, final)
	}
}

// counter counts in text.
func counter() stream.Aggregator[string, string] {
	return stream.Aggregator[string, string]{
		Init:  func() string { return "0" },
		Add:   func(_, _, a string) string { return plus(a, "1") },
		Merge: func(_, a, b string) string { return plus(a, b) },
	}
}

func plus(a, b string) string {
	var n, m int
	_, _ = fmt.Sscan(a, &n)
	_, _ = fmt.Sscan(b, &m)
	return fmt.Sprint(n + m)
}

// counts is a table of counts by window.
func counts(name string, w window.Windows) reka.WindowTable[int64] {
	return reka.NewWindowTable(name, w, codec.Int64())
}

func at(n int64) reka.EmitOption { return reka.At(time.UnixMilli(n)) }

// stored returns how many rows a store has.
func (s *scene) stored(store string) int {
	s.t.Helper()
	s.tt.Settle()
	return len(lastOfEachKey(s.tt.Raw(reka.ChangelogTopic("g", store), 0)))
}

// numbers is a stream of numbers.
func numbers(name string) reka.Stream[int64] { return reka.NewStream(name, codec.Int64()) }

// summing sums numbers.
func summing() stream.Aggregator[int64, int64] {
	return stream.Aggregator[int64, int64]{
		Add:   func(_ string, n, sum int64) int64 { return sum + n },
		Merge: func(_ string, a, b int64) int64 { return a + b },
	}
}
