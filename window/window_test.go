package window_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rekastream/reka/window"
)

const forever = math.MaxInt64

func TestWindowsCloseAtTheirExclusiveEndPlusGrace(t *testing.T) {
	type win = window.Window
	for _, x := range []struct {
		name        string
		ws          window.Windows
		w           win
		end, close_ int64
	}{
		{"tumbling", window.Tumbling(10*ms, 90*ms), win{100, 110}, 110, 200},
		{"tumbling, no grace", window.Tumbling(10*ms, 0), win{0, 10}, 10, 10},
		{"hopping", window.Hopping(10*ms, 5*ms, 5*ms), win{5, 15}, 15, 20},
		{"sliding", window.Sliding(5*ms, 15*ms), win{5, 10}, 11, 26},
		{"sliding, early", window.Sliding(10*ms, 0), win{0, 10}, 11, 11},
		{"sliding, difference 0", window.Sliding(0, 0), win{7, 7}, 8, 8},
		{"session", window.Session(10*ms, 0), win{0, 0}, 11, 11},
		{"session, grace", window.Session(10*ms, 1*ms), win{0, 5}, 16, 17},
		{"session, gap 0", window.Session(0, 0), win{3, 3}, 4, 4},
		{"at the end of time", window.Tumbling(10*ms, 0), win{forever - 7, forever}, forever, forever},
		{"grace past the end of time", window.Session(10*ms, 10*ms), win{0, forever - 12}, forever - 1, forever},
	} {
		if got := x.ws.ExclusiveEnd(x.w); got != x.end {
			t.Errorf("%s: exclusive end %d, want %d", x.name, got, x.end)
		}
		if got := x.ws.CloseTime(x.w); got != x.close_ {
			t.Errorf("%s: closes at %d, want %d", x.name, got, x.close_)
		}
		if x.ws.Closed(x.w, x.close_-1) || !x.ws.Closed(x.w, x.close_) {
			t.Errorf("%s: closed at %d and not at %d", x.name, x.close_-1, x.close_)
		}
		if x.ws.Closed(x.w, -1) {
			t.Errorf("%s: closed before there is a time", x.name)
		}
	}
}

func TestRowsExpireAfterTheirRetention(t *testing.T) {
	type win = window.Window
	for _, x := range []struct {
		name string
		ws   window.Windows
		w    win
		want int64
	}{
		{"tumbling", window.Tumbling(10*ms, 5*ms), win{20, 30}, 35},
		{"tumbling, longer", window.Tumbling(10*ms, 5*ms).WithRetention(100 * ms), win{20, 30}, 120},
		{"hopping", window.Hopping(10*ms, 5*ms, 0).WithRetention(100 * ms), win{5, 15}, 105},
		// A record in grace at 15+d+g still counts in windows that start d
		// before its own left one.
		{"sliding", window.Sliding(10*ms, 5*ms), win{15, 25}, 15 + 25 + 1},
		{"sliding, difference 0", window.Sliding(0, 0), win{15, 15}, 16},
		{"session", window.Session(10*ms, 5*ms), win{15, 25}, 25 + 15 + 1},
		{"session, longer", window.Session(10*ms, 5*ms).WithRetention(100 * ms), win{15, 25}, 25 + 100 + 1},
	} {
		if got := x.ws.ExpiryTime(x.w); got != x.want || x.ws.Expired(x.w, got-1) || !x.ws.Expired(x.w, got) {
			t.Errorf("%s: expires at %d, want %d", x.name, got, x.want)
		}
	}
}

func TestExpiredWindowsAreClosedAndNeitherIsTakenBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		ws, w := randomWindows(rnd), window.Window{}
		w.Start = rnd.Int64N(100)
		w = ws.At(w.Start)
		if ws.Kind() == window.KindSession {
			w.End += rnd.Int64N(30)
		}
		closed, expired := false, false
		for st := int64(-1); st < 400; st++ {
			c, e := ws.Closed(w, st), ws.Expired(w, st)
			if closed && !c || expired && !e || e && !c {
				t.Fatalf("%s %v at %d: closed %v, expired %v", ws, w, st, c, e)
			}
			closed, expired = c, e
		}
		if !closed || !expired {
			t.Fatalf("%s %v: never closed or expired", ws, w)
		}
		// A window is not closed by a record that it holds.
		if last := ws.ExclusiveEnd(w) - 1; ws.Kind() != window.KindSession && ws.Closed(w, last) || ws.Closed(w, w.Start) {
			t.Fatalf("%s %v: closed within", ws, w)
		}
	}
}

func TestSlidingWindowsOfARecord(t *testing.T) {
	ws := window.Sliding(10*ms, 5*ms)
	for at, want := range map[int64]window.Window{0: {0, 10}, 9: {0, 10}, 10: {0, 10}, 11: {1, 11}, 30: {20, 30}} {
		if got := ws.Left(at); got != want {
			t.Errorf("left of %d: %v, want %v", at, got, want)
		}
	}
	if got, ok := ws.Right(10); got != (window.Window{Start: 11, End: 21}) || !ok {
		t.Errorf("right of 10: %v, %v", got, ok)
	}
	if got, ok := ws.Right(forever); ok {
		t.Errorf("right of the end of time: %v", got)
	}
}

func TestSessionsTouchWithinTheirGap(t *testing.T) {
	ws := window.Session(5*ms, 0)
	w := window.Window{Start: 10, End: 20}
	for at, want := range map[int64]bool{0: false, 4: false, 5: true, 10: true, 15: true, 25: true, 26: false, forever: false} {
		if got := ws.Touches(w, at); got != want {
			t.Errorf("%d touches: %v", at, got)
		}
	}
	if !ws.Touches(window.Window{Start: 3, End: forever - 2}, forever) {
		t.Error("the end of time does not touch what ends just before it")
	}
	if got := w.Merge(window.Window{Start: 5, End: 5}).Merge(window.Window{Start: 18, End: 25}); got != (window.Window{Start: 5, End: 25}) {
		t.Errorf("merged: %v", got)
	}
}

func TestWindowTellsTimes(t *testing.T) {
	w := window.Window{Start: 1500, End: 2500}
	if !w.StartTime().Equal(time.Unix(1, 5e8)) || !w.EndTime().Equal(time.Unix(2, 5e8)) {
		t.Errorf("%v to %v", w.StartTime(), w.EndTime())
	}
}

// randomWindows are small valid windows of any kind.
func randomWindows(rnd *rand.Rand) window.Windows {
	d := func(low, n int) time.Duration { return time.Duration(low+rnd.IntN(n)) * ms }
	grace := d(0, 20)
	var ws window.Windows
	switch rnd.IntN(4) {
	case 0:
		ws = window.Tumbling(d(1, 30), grace)
	case 1:
		size := d(1, 30)
		ws = window.Hopping(size, d(1, int(size/ms)), grace)
	case 2:
		ws = window.Sliding(d(0, 30), grace)
	default:
		ws = window.Session(d(0, 30), grace)
	}
	if rnd.IntN(2) == 0 {
		ws = ws.WithRetention(time.Duration(ws.Retention())*ms + d(0, 50))
	}
	return ws
}
