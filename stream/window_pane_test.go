package stream_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

func TestPanesGiveTheSameFinalsInTheSameOrder(t *testing.T) {
	final := func(w window.Windows, mergeable bool) func(*stream.Builder) {
		return func(b *stream.Builder) {
			by := counter()
			by.Mergeable = mergeable
			in := stream.From(b, text("in")).GroupByKey().Windowed(w).Late(text("late"))
			stream.AggregateWindows(in, by, stream.WithCodec(codec.String())).OnClose().To(windows("final", w))
		}
	}
	for seed := range seeds(t, 16) {
		r := rand.New(rand.NewPCG(seed, 3))
		advance := 1 + r.Int64N(9)
		w := window.Hopping(ms(advance+r.Int64N(30)), ms(advance), ms(r.Int64N(40)))
		if r.IntN(3) == 0 {
			w = w.WithRetention(ms(w.Retention() + r.Int64N(40)))
		}
		batches := disorder{keys: []string{"a", "ab", "b", ""}, n: 120, step: 4, back: 40, jump: r.Int64N(90)}.records(r)
		want, got := trial{build: final(w, false)}.run(t, batches), trial{build: final(w, true)}.run(t, batches)
		for _, topic := range []string{"final", "late"} {
			same(t, fmt.Sprintf("seed %d, %v: %s", seed, w, topic), got.topics[topic], want.topics[topic])
		}
		if rows := strings.Count(got.stores["in-aggregate"], "\n"); rows > 4 { // of the last window's one key
			t.Errorf("seed %d, %v: left behind: %s", seed, w, got.stores["in-aggregate"])
		}
		if t.Failed() {
			return
		}
	}
}

// Windows in which nothing is cost nothing: there are 80,000 of them here.
func TestPanesAreFoundBehindALongGap(t *testing.T) {
	w := window.Hopping(60*time.Second, time.Second, 24*time.Hour)
	s := playSpread(t, 1, finalCounts(w))
	var batch []record
	for _, at := range []int64{0, 80_000_000} {
		for i := range 200 {
			batch = append(batch, recordAt(fmt.Sprint("key", i), "v", at))
		}
	}
	s.send(0, batch...)
	s.send(0, recordAt("x", "v", 1_000_000_000))
	if n := len(s.tt.Raw("final", 0)); n != 200*(1+60) {
		t.Errorf("%d finals", n)
	}
}
