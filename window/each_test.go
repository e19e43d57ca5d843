package window_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rekastream/reka/window"
)

func each(ws window.Windows, t int64) (out []window.Window) {
	for w := range ws.Each(t) {
		out = append(out, w)
	}
	return out
}

func TestWindowsThatContainAMoment(t *testing.T) {
	type wins = []window.Window
	hopping := window.Hopping(10*ms, 4*ms, window.NoGrace)
	for _, x := range []struct {
		ws   window.Windows
		t    int64
		want wins
	}{
		{window.Tumbling(12*ms, 0), 21, wins{{12, 24}}},
		{window.Tumbling(12*ms, 0), 24, wins{{24, 36}}},
		{window.Tumbling(12*ms, 0), 0, wins{{0, 12}}},
		{window.Tumbling(12*ms, 0), -1, nil},
		{window.Hopping(12*ms, 5*ms, 0), 21, wins{{10, 22}, {15, 27}, {20, 32}}},
		{window.Hopping(6*ms, 5*ms, 0), 7, wins{{5, 11}}},
		{hopping, 9, wins{{0, 10}, {4, 14}, {8, 18}}},
		{hopping, 10, wins{{4, 14}, {8, 18}}},
		{hopping, 14, wins{{8, 18}, {12, 22}}},
		{hopping, 0, wins{{0, 10}}},
		{window.Tumbling(10*ms, 0), forever, wins{{forever - 7, forever}}},
		{hopping, forever, wins{{forever - 7, forever}, {forever - 3, forever}}},
		{window.Sliding(10*ms, 0), 5, nil},
		{window.Session(10*ms, 0), 5, nil},
	} {
		if got := each(x.ws, x.t); !slices.Equal(got, x.want) {
			t.Errorf("%s at %d: %v, want %v", x.ws, x.t, got, x.want)
		}
	}
	for w := range hopping.Each(9) { // left early
		if w.Start == 4 {
			break
		}
	}
}

// The definition: all [k*advance, k*advance+size) that contain t, k from 0.
func TestEachYieldsWhatTheDefinitionSays(t *testing.T) {
	for size := int64(1); size <= 13; size++ {
		for advance := int64(1); advance <= size; advance++ {
			ws := window.Hopping(time.Duration(size)*ms, time.Duration(advance)*ms, 0)
			for at := range int64(60) {
				var want []window.Window
				for start := int64(0); start <= at; start += advance {
					if at < start+size {
						want = append(want, window.Window{Start: start, End: start + size})
					}
				}
				if got := each(ws, at); !slices.Equal(got, want) {
					t.Fatalf("%s at %d: %v, want %v", ws, at, got, want)
				}
			}
		}
	}
}

func TestPanesPartitionTimeAndMakeUpWindows(t *testing.T) {
	for size := int64(1); size <= 13; size++ {
		for advance := int64(1); advance <= size; advance++ {
			ws := window.Hopping(time.Duration(size)*ms, time.Duration(advance)*ms, 0)
			holder := map[int64]window.Window{} // of each moment
			for at := range int64(80) {
				p := ws.Pane(at)
				if p.Start > at || at >= p.End {
					t.Fatalf("%s: %d is not in its pane %v", ws, at, p)
				}
				for i := p.Start; i < p.End; i++ {
					if q, taken := holder[i]; taken && q != p {
						t.Fatalf("%s: %d is in panes %v and %v", ws, i, q, p)
					}
					holder[i] = p
				}
			}
			for start := int64(0); start < 40; start += advance {
				w := ws.At(start)
				next := start
				for p := range ws.Panes(w) {
					if p != holder[p.Start] || p.Start != next {
						t.Fatalf("%s: pane %v of %v, want %v from %d", ws, p, w, holder[p.Start], next)
					}
					next = p.End
				}
				if next != w.End {
					t.Fatalf("%s: the panes of %v end at %d", ws, w, next)
				}
			}
		}
	}
}

func TestPanesAreCutAtAdvancesAndAtEndsOfWindows(t *testing.T) {
	ws := window.Hopping(10*ms, 4*ms, 0)
	var got []window.Window
	for p := range ws.Panes(window.Window{Start: 4, End: 14}) {
		got = append(got, p)
	}
	if want := []window.Window{{4, 6}, {6, 8}, {8, 10}, {10, 12}, {12, 14}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for range ws.Panes(window.Window{Start: 4, End: 14}) { // left early
		break
	}
	if got, want := window.Hopping(12*ms, 4*ms, 0).Pane(9), (window.Window{Start: 8, End: 12}); got != want {
		t.Errorf("size a multiple of advance: %v, want %v", got, want)
	}
	if got, want := window.Tumbling(12*ms, 0).Pane(21), (window.Window{Start: 12, End: 24}); got != want {
		t.Errorf("tumbling: %v, want %v", got, want)
	}
	for _, ws := range []window.Windows{ws, window.Tumbling(10*ms, 0)} {
		n := 0
		for w := range ws.Each(forever) {
			for p := range ws.Panes(w) {
				if n++; p.End <= p.Start {
					t.Errorf("%s at the end of time: pane %v", ws, p)
				}
			}
		}
		if n == 0 || n > 8 {
			t.Errorf("%s at the end of time: %d panes", ws, n)
		}
	}
	if got := ws.Pane(-1); got != (window.Window{}) {
		t.Errorf("pane of a time below 0: %v", got)
	}
}

func TestEachAndPanesAllocateNothing(t *testing.T) {
	ws := window.Hopping(time.Hour, 7*time.Minute, time.Minute)
	at, sum := rand.Int64N(1<<40), int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		for w := range ws.Each(at) {
			sum += w.Start
			for p := range ws.Panes(w) {
				sum += p.End
			}
			if ws.Closed(w, at) || ws.Expired(w, at) {
				sum++
			}
		}
		sum += ws.Pane(at).Start
		at += 12345
	}); n != 0 {
		t.Errorf("%v allocations, sum %d", n, sum)
	}
}
