package stream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/window"
)

func TestStoresAndResultsAreReadByTheTester(t *testing.T) {
	w := window.Tumbling(ms(10), window.NoGrace).WithRetention(ms(30))
	s := play(t, "in", func(b *stream.Builder) {
		keys := stream.From(b, text("in")).GroupByKey()
		keys.Reduce(func(a, b string) string { return a + b }, stream.Named("all"))
		res := keys.Windowed(w).Reduce(func(a, b string) string { return a + b }, stream.Named("windows"))
		res.OnClose().To(windows("final", w))
	})
	final, store := tester.Windows(s.tt, windows("final", w)), tester.WindowStore(s.tt, "g", "windows", windows("", w))
	s.send("in", "a:1@1", "aa:2@2", "a:3@12", "a:4@25")
	if got, ok := tester.Store(s.tt, "g", "all", codec.String()).Get("a"); got != "134" || !ok {
		t.Errorf("store of rows: %q, %v", got, ok)
	}
	if got := fmt.Sprint(final.All()); got != fmt.Sprint([]any{
		fmt.Sprintf("{a {0 10} 1 %v}", moment(1)), fmt.Sprintf("{aa {0 10} 2 %v}", moment(2)), fmt.Sprintf("{a {10 20} 3 %v}", moment(12)),
	}) {
		t.Errorf("results %s", got)
	}
	if got, ok := store.Get("a", moment(20)); got != "4" || !ok {
		t.Errorf("open window: %q, %v", got, ok)
	}
	if n := len(store.All()); n != 4 {
		t.Errorf("%d rows in the store, want 4", n)
	}
	s.send("in", "b:5@45")
	if n := len(store.All()); n != 2 {
		t.Errorf("%d rows in the store, want the two that have not expired", n)
	}
}

func moment(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
