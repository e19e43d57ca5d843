package rows

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// twin is a dumb table: a map that forgets nothing, and the table under test
// beside it. Every call goes to both, and answers are compared.
type twin struct {
	tb      testing.TB
	table   *Table
	rows    map[string]*twinRow
	changes []string
	unclean map[uint32]int // bytes by version
	version uint32
	cleaned uint32
}

type twinRow struct {
	value   []byte // nil: absent
	time    int64
	version uint32
}

func newTwin(tb testing.TB, budget int) *twin {
	return &twin{tb: tb, table: New(budget), rows: map[string]*twinRow{}, unclean: map[uint32]int{}, version: 1}
}

func (w *twin) set(key string, value []byte, time int64) {
	r, ok := w.rows[key]
	if !ok {
		r = &twinRow{}
		w.rows[key] = r
	}
	if r.version != w.version {
		w.changes = append(w.changes, key)
		w.unclean[w.version] += len(key)
	} else {
		w.unclean[w.version] -= len(r.value)
	}
	w.unclean[w.version] += len(value)
	*r = twinRow{bytes.Clone(value), time, w.version}
	w.table.Set([]byte(key), value, time)
	w.compare(key, true)
}

// find reads key and fills in what the table does not know.
func (w *twin) find(key string) {
	if w.compare(key, false) {
		return
	}
	r, ok := w.rows[key]
	if !ok {
		r = &twinRow{}
		w.rows[key] = r
	}
	w.table.Fill([]byte(key), r.value, r.time, r.value == nil)
	w.compare(key, false)
}

// compare looks at what the table says of key, and reports whether it says
// anything.
func (w *twin) compare(key string, must bool) bool {
	w.tb.Helper()
	e, ok := w.table.Find([]byte(key))
	r := w.rows[key]
	if !ok {
		switch {
		case r == nil:
		case must || r.version > w.cleaned:
			w.tb.Fatalf("unclean row %.40q is gone", key)
		case r.value != nil && w.table.Complete():
			w.tb.Fatalf("row %.40q is missing in a complete table", key)
		}
		return false
	}
	if r == nil {
		w.tb.Fatalf("row %.40q out of nowhere", key)
	}
	w.same(key, r, e)
	return true
}

func (w *twin) same(key string, r *twinRow, e Entry) {
	w.tb.Helper()
	if !bytes.Equal(e.Value, r.value) || (e.Value == nil) != (r.value == nil) || e.Absent != (r.value == nil) || e.Time != r.time {
		w.tb.Fatalf("row %.40q is %.40q at %d, absent %v, want %.40q at %d", key, e.Value, e.Time, e.Absent, r.value, r.time)
	}
}

func (w *twin) seal() {
	w.tb.Helper()
	if got, want := w.table.Changed(), len(w.changes); got != want {
		w.tb.Fatalf("changed %d, want %d", got, want)
	}
	if got, want := w.table.ChangedBytes(), w.unclean[w.version]; got != want {
		w.tb.Fatalf("changed bytes %d, want %d", got, want)
	}
	n := 0
	v := w.table.Seal(func(key, value []byte, time int64, deleted bool) {
		if n >= len(w.changes) || w.changes[n] != string(key) {
			w.tb.Fatalf("change %d is of %.40q", n, key)
		}
		w.same(string(key), w.rows[string(key)], Entry{value, time, deleted})
		n++
	})
	if n != len(w.changes) || v != w.version {
		w.tb.Fatalf("sealed version %d with %d changes, want %d with %d", v, n, w.version, len(w.changes))
	}
	w.changes = nil
	w.version++
}

func (w *twin) clean(version uint32) {
	w.tb.Helper()
	w.table.Clean(version)
	w.cleaned = max(w.cleaned, min(version, w.version-1))
	want := 0
	for v, n := range w.unclean {
		if v <= w.cleaned {
			delete(w.unclean, v)
		} else {
			want += n
		}
	}
	if got := w.table.UncleanBytes(); got != want {
		w.tb.Fatalf("unclean bytes %d, want %d", got, want)
	}
}

// forget makes the table forget, and the twin what is not in the store.
func (w *twin) forget() {
	w.table.Forget()
	for k, r := range w.rows {
		if r.version > w.cleaned {
			delete(w.rows, k)
		}
	}
	w.changes = nil
	clear(w.unclean)
}

func (w *twin) all() {
	w.tb.Helper()
	seen := map[string]bool{}
	w.table.Each(func(key []byte, e Entry, clean bool) bool {
		r := w.rows[string(key)]
		if r == nil || seen[string(key)] {
			w.tb.Fatalf("row %.40q: known %v, seen before %v", key, r != nil, seen[string(key)])
		}
		if clean != (r.version <= w.cleaned) {
			w.tb.Fatalf("row %.40q: clean %v", key, clean)
		}
		w.same(string(key), r, e)
		seen[string(key)] = true
		return true
	})
	if len(seen) != w.table.Len() {
		w.tb.Fatalf("%d rows seen, length %d", len(seen), w.table.Len())
	}
	for k := range w.rows {
		w.compare(k, false)
	}
	checkInvariants(w.tb, w.table)
}

// checkInvariants counts again everything that the table counts as it goes.
func checkInvariants(tb testing.TB, t *Table) {
	tb.Helper()
	live, slots, held := 0, 0, 0
	var total waste
	for n := t.arena.chunks[0].next; n != 0; n = t.arena.chunks[n].next {
		var w waste
		t.arena.each(n, func(r ref, e row) bool {
			if e.meta()&flagDead != 0 {
				w.dead += e.size()
				return true
			}
			live++
			if e.meta()&flagAbsent != 0 {
				w.absent += e.size()
			}
			h := hash(e.key())
			t.index.part(h).position(h, r) // hangs if it is not there
			if e.meta()&flagChanged != 0 && t.changes.at(int(e.mark())) != r {
				tb.Fatalf("entry %d is not where the list of changes says", r)
			}
			return true
		})
		if w != t.arena.chunks[n].waste {
			tb.Fatalf("chunk %d wastes %+v, counted %+v", n, w, t.arena.chunks[n].waste)
		}
		total.dead += w.dead
		total.absent += w.absent
		held += cap(t.arena.chunks[n].buf)
	}
	refs := 0
	for i := range t.index.parts {
		p := &t.index.parts[i]
		slots += len(p.slots)
		n := 0
		for _, s := range p.slots {
			if s != 0 {
				n++
			}
		}
		if n != p.n {
			tb.Fatalf("part %d has %d refs, counted %d", i, n, p.n)
		}
		refs += n
	}
	got := fmt.Sprintln(live, refs, slots, held, total)
	if want := fmt.Sprintln(t.index.n, t.index.n, t.index.slots, t.arena.bytes, t.arena.waste); got != want {
		tb.Fatalf("live, refs, slots, held, waste: %s, counted %s", got, want)
	}
}

// play runs random calls. Small budgets evict all the time.
func (w *twin) play(rng *rand.Rand, steps int) {
	keys := 1 << (2 + rng.IntN(12))
	maxValue := 1 << rng.IntN(13)
	now := int64(0)
	w.table.SetComplete()
	for range steps {
		now++
		n := rng.IntN(keys)
		key := strings.Repeat("k", n%40) + fmt.Sprint(n)
		switch p := rng.IntN(1000); {
		case p < 400:
			w.find(key)
		case p < 750:
			w.set(key, randomValue(rng, maxValue), now)
		case p < 800:
			w.set(key, nil, now)
		case p < 900: // read, then set
			w.find(key)
			w.set(key, randomValue(rng, maxValue), now)
		case p < 910: // a value that aliases the table
			w.find(key)
			if e, ok := w.table.Find([]byte(key)); ok && !e.Absent {
				w.set(fmt.Sprint(rng.IntN(keys)), e.Value[len(e.Value)/2:], now)
			}
		case p < 980:
			w.compare(key, false)
		case p < 990:
			w.seal()
		case p < 997:
			w.clean(w.version - 1 - uint32(rng.IntN(min(3, int(w.version)))))
		case p < 998 && rng.IntN(10) == 0:
			w.forget()
		case p < 999:
			w.set(key, randomValue(rng, 300<<10), now)
		default:
			w.all()
		}
	}
	w.all()
}

func randomValue(rng *rand.Rand, limit int) []byte {
	v := make([]byte, rng.IntN(limit))
	for i := range v {
		v[i] = byte(rng.Uint32())
	}
	return v
}

func TestTableAnswersAsItsTwin(t *testing.T) {
	for i := range 40 {
		seed := uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := newTwin(t, 1<<(12+rng.IntN(14)))
			w.play(rng, 4000)
		})
	}
}

func FuzzTableAnswersAsItsTwin(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, uint64(64<<10), uint16(500))
	}
	f.Fuzz(func(t *testing.T, seed, budget uint64, steps uint16) {
		newTwin(t, int(budget%(1<<24))).play(rand.New(rand.NewPCG(seed, 2)), int(steps%3000))
	})
}
