package stream_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// definition is what windows are by definition: all records are kept, and
// results are made of them anew each time.
type definition struct {
	w       window.Windows
	now     int64
	records map[string][]arrival
	open    map[string]map[window.Window]string // sessions
	final   map[string]bool                     // given out
	updates []string
	finals  []string
	late    []string
}

// arrival is a record, and the stream time when it came.
type arrival struct {
	time, at int64
	value    string
}

type finalResult struct {
	end  int64
	key  string
	text string
}

func define(w window.Windows, batches [][]record) *definition {
	d := &definition{w: w, now: -1, records: map[string][]arrival{}, open: map[string]map[window.Window]string{}, final: map[string]bool{}}
	for _, b := range batches {
		for _, r := range b {
			d.now = max(d.now, r.Timestamp)
			d.release()
			d.add(string(r.Key), string(r.Value), r.Timestamp)
		}
	}
	return d
}

func (d *definition) add(key, value string, at int64) {
	if d.w.Kind() == window.KindSession {
		d.addSession(key, value, at)
		return
	}
	late := fmt.Sprintf("%q=%q@%d", key, value, at)
	if d.w.Kind() == window.KindSliding && d.w.Closed(d.w.At(at), d.now) {
		d.late = append(d.late, late)
		return
	}
	if d.w.Kind() != window.KindSliding {
		for win := range d.w.Each(at) {
			if d.w.Closed(win, d.now) {
				d.late = append(d.late, late)
				break
			}
		}
	}
	before := d.windows(key)
	d.records[key] = append(d.records[key], arrival{at, d.now, value})
	after := d.windows(key)
	for _, win := range slices.SortedFunc(maps.Keys(after), byStart) {
		if !d.w.Closed(win, d.now) && before[win] != after[win] {
			d.updates = append(d.updates, result(key, win, after[win]))
		}
	}
}

func byStart(a, b window.Window) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
}

func result(key string, win window.Window, value string) string {
	return fmt.Sprintf("%s[%d-%d]=%s", key, win.Start, win.End, value)
}

// windows returns what a key's windows hold, as value@time.
func (d *definition) windows(key string) map[window.Window]string {
	made := map[window.Window]bool{}
	for _, r := range d.records[key] {
		if d.w.Kind() == window.KindSliding {
			if right, ok := d.w.Right(r.time); ok {
				made[right] = true
			}
			if left := d.w.Left(r.time); !d.w.Closed(left, r.at) {
				made[left] = true
			}
			continue
		}
		for win := range d.w.Each(r.time) {
			made[win] = true
		}
	}
	out := map[window.Window]string{}
	for win := range made {
		value, latest, n := "0", int64(0), 0
		for _, r := range d.records[key] {
			if r.time >= win.Start && r.time < d.w.ExclusiveEnd(win) && !d.w.Closed(win, r.at) {
				value, latest, n = value+"+"+r.value, max(latest, r.time), n+1
			}
		}
		if n > 0 {
			out[win] = fmt.Sprintf("%s@%d", value, latest)
		}
	}
	return out
}

func (d *definition) addSession(key, value string, at int64) {
	win, a := window.Window{Start: at, End: at}, "0"
	var near []window.Window
	for _, o := range slices.SortedFunc(maps.Keys(d.open[key]), byStart) {
		if d.w.Touches(o, at) && !d.w.Closed(o, d.now) {
			near, win, a = append(near, o), win.Merge(o), a+strings.TrimPrefix(d.open[key][o], "0")
		}
	}
	if d.w.Closed(win, d.now) {
		d.late = append(d.late, fmt.Sprintf("%q=%q@%d", key, value, at))
		return
	}
	if d.open[key] == nil {
		d.open[key] = map[window.Window]string{}
	}
	for _, o := range near {
		delete(d.open[key], o)
		if win.Start != win.End {
			d.updates = append(d.updates, result(key, o, fmt.Sprintf("⊥@%d", o.End)))
		}
	}
	d.open[key][win] = a + "+" + value
	d.updates = append(d.updates, result(key, win, fmt.Sprintf("%s@%d", a+"+"+value, win.End)))
}

// release gives out what is final, in order of (end, key).
func (d *definition) release() {
	var due []finalResult
	take := func(key string, win window.Window, value string) {
		if text := result(key, win, value); d.w.Closed(win, d.now) && !d.final[fmt.Sprint(key, win)] {
			d.final[fmt.Sprint(key, win)] = true
			due = append(due, finalResult{win.End, key, text})
		}
	}
	for key := range d.records {
		for win, value := range d.windows(key) {
			take(key, win, value)
		}
	}
	for key, list := range d.open {
		for win, value := range list {
			take(key, win, fmt.Sprintf("%s@%d", value, win.End))
		}
	}
	slices.SortFunc(due, func(a, b finalResult) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.key, b.key)) })
	for _, f := range due {
		d.finals = append(d.finals, f.text)
	}
}

func TestWindowsAreWhatTheirDefinitionSays(t *testing.T) {
	t.Parallel()
	for kind, random := range map[string]func(*rand.Rand) window.Windows{
		"tumbling": func(r *rand.Rand) window.Windows { return window.Tumbling(ms(1+r.Int64N(12)), ms(r.Int64N(20))) },
		"hopping": func(r *rand.Rand) window.Windows {
			advance := 1 + r.Int64N(6)
			return window.Hopping(ms(advance+r.Int64N(12)), ms(advance), ms(r.Int64N(20)))
		},
		"sliding": func(r *rand.Rand) window.Windows { return window.Sliding(ms(r.Int64N(12)), ms(r.Int64N(20))) },
		"session": func(r *rand.Rand) window.Windows { return window.Session(ms(r.Int64N(9)), ms(r.Int64N(20))) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds(t, 16) {
				r := rand.New(rand.NewPCG(seed, 2))
				w := random(r)
				if kind != "hopping" && r.IntN(3) == 0 {
					w = w.WithRetention(ms(w.Retention() + r.Int64N(40)))
				}
				batches := disorder{keys: []string{"a", "ab", "b"}, n: 80, step: 3, back: 20, jump: r.Int64N(60)}.records(r)
				want := define(w, batches)
				got := trial{build: everyResult(w)}.run(t, batches)
				same(t, fmt.Sprintf("seed %d, %v: updates", seed, w), strings.Join(readable(t, w, got.raw["out"]), "\n"), strings.Join(want.updates, "\n"))
				same(t, fmt.Sprintf("seed %d, %v: finals", seed, w), strings.Join(readable(t, w, got.raw["final"]), "\n"), strings.Join(want.finals, "\n"))
				var late []string
				for _, rec := range got.raw["late"] {
					late = append(late, fmt.Sprintf("%q=%q@%d", rec.Key, rec.Value, rec.Timestamp))
				}
				same(t, fmt.Sprintf("seed %d, %v: late", seed, w), strings.Join(late, "\n"), strings.Join(want.late, "\n"))
				for line := range strings.Lines(got.stores["in-aggregate"]) {
					if !strings.Contains(line, "end") {
						t.Errorf("seed %d, %v: left behind: %s", seed, w, line)
					}
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// everyResult is an aggregation with every update in out, finals in final and
// late records in late.
func everyResult(w window.Windows) func(*stream.Builder) {
	return func(b *stream.Builder) {
		in := stream.From(b, text("in")).GroupByKey().Windowed(w).Late(text("late"))
		res := stream.AggregateWindows(in, adding(), stream.WithCodec(codec.String()))
		res.To(windows("out", w))
		res.OnClose().To(windows("final", w))
	}
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s", what, firstDifference(want, got))
	}
}
