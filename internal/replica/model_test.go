package replica

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rekastream/reka/storage"
)

// tableModel is the dumb twin of a Table: whole maps, copied at every step.
type tableModel struct {
	newest    map[string]modelRow
	layers    []map[string]modelRow // newest as of each seal, not committed
	committed map[string]modelRow
	position  int64
	flushing  map[string]modelRow
	flushPos  int64
	stored    map[string]modelRow
	storedPos int64
}

type modelRow struct {
	value string
	time  int64
}

// modelRun drives a Table and its twin through the same random steps.
type modelRun struct {
	t       *testing.T
	rnd     *rand.Rand
	builder storage.Builder
	table   *Table
	m       tableModel
	layers  []*Layer
	flush   *Flush
	step    int
}

func TestTableAgreesWithItsModel(t *testing.T) {
	for seed := range uint64(60) {
		r := &modelRun{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), builder: storage.Memory()}
		r.m = tableModel{newest: map[string]modelRow{}, committed: map[string]modelRow{}, stored: map[string]modelRow{}}
		r.open()
		for r.step = range 1500 {
			r.oneStep()
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, r.step)
			}
		}
	}
}

func (r *modelRun) open() {
	s, err := r.builder.Open()
	if err != nil {
		r.t.Fatal(err)
	}
	st, err := s.Table("t", 0)
	if err != nil {
		r.t.Fatal(err)
	}
	r.table, err = NewTable(TableConfig{Store: st, CacheBytes: 4 << 10, FlushBytes: 1 << 10})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *modelRun) oneStep() {
	switch n := r.rnd.IntN(100); {
	case n < 45:
		r.set()
	case n < 65:
		r.get(r.key())
	case n < 72:
		r.scan()
	case n < 82:
		r.seal()
	case n < 90:
		r.commit()
	case n < 92:
		r.rollback()
	case n < 95:
		r.beginFlush()
	case n < 98:
		r.endFlush()
	case n < 99:
		r.crash()
	case r.rnd.IntN(4) == 0:
		r.clear()
	}
}

func (r *modelRun) key() string { return fmt.Sprint("k", r.rnd.IntN(120)) }

func (r *modelRun) set() {
	k := r.key()
	if r.rnd.IntN(4) == 0 {
		r.table.Set([]byte(k), nil, int64(r.step))
		delete(r.m.newest, k)
		return
	}
	v := bytes.Repeat([]byte{byte('a' + r.rnd.IntN(26))}, r.rnd.IntN(40))
	r.table.Set([]byte(k), v, int64(r.step))
	r.m.newest[k] = modelRow{string(v), int64(r.step)}
}

func (r *modelRun) get(k string) {
	v, tm, ok, err := r.table.Get([]byte(k))
	if err != nil {
		r.t.Fatal(err)
	}
	want, wantOK := r.m.newest[k]
	if ok != wantOK || ok && (string(v) != want.value || tm != want.time) {
		r.t.Errorf("Get(%s) = %q, %d, %v; want %v, %v", k, v, tm, ok, want, wantOK)
	}
}

func (r *modelRun) scan() {
	var rg storage.Range
	switch r.rnd.IntN(4) {
	case 0:
		rg.From = []byte(r.key())
	case 1:
		rg.To = []byte(r.key())
	case 2:
		rg = storage.Prefix([]byte("k1"))
	}
	rg.Reverse = r.rnd.IntN(2) == 0
	var want []string
	for k, row := range r.m.newest {
		if rg.Contains([]byte(k)) {
			want = append(want, fmt.Sprintf("%s=%s@%d", k, row.value, row.time))
		}
	}
	slices.SortFunc(want, func(a, b string) int {
		ka, _, _ := bytes.Cut([]byte(a), []byte("="))
		kb, _, _ := bytes.Cut([]byte(b), []byte("="))
		return bytes.Compare(ka, kb)
	})
	if rg.Reverse {
		slices.Reverse(want)
	}
	var got []string
	disturb := r.rnd.IntN(3) == 0
	for row, err := range r.table.Scan(rg) {
		if err != nil {
			r.t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s=%s@%d", row.Key, row.Value, row.Time))
		if disturb { // what is set while the loop runs is not seen by it
			r.set()
		}
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("Scan(%q, %q, %v):\n got %v\nwant %v", rg.From, rg.To, rg.Reverse, got, want)
	}
}

func (r *modelRun) seal() {
	l := r.table.Seal()
	if l == nil {
		return
	}
	r.layers = append(r.layers, l)
	r.m.layers = append(r.m.layers, maps.Clone(r.m.newest))
	for row := range l.All() {
		want, ok := r.m.newest[string(row.Key)]
		if ok != (row.Value != nil) || ok && (string(row.Value) != want.value || row.Time != want.time) {
			r.t.Errorf("layer has %s=%q@%d, want %v %v", row.Key, row.Value, row.Time, want, ok)
		}
	}
}

func (r *modelRun) commit() {
	if len(r.layers) == 0 {
		return
	}
	r.m.position++
	r.m.committed = r.m.layers[0]
	r.table.Commit(r.layers[0], storage.Checkpoint{Position: r.m.position})
	r.layers, r.m.layers = r.layers[1:], r.m.layers[1:]
}

func (r *modelRun) rollback() {
	r.table.Rollback()
	r.m.newest, r.m.layers, r.layers = maps.Clone(r.m.committed), nil, nil
}

func (r *modelRun) beginFlush() {
	if r.flush != nil {
		return
	}
	if r.flush = r.table.BeginFlush(); r.flush != nil && r.m.flushing == nil {
		r.m.flushing, r.m.flushPos = maps.Clone(r.m.committed), r.m.position
	}
}

func (r *modelRun) endFlush() {
	if r.flush == nil {
		return
	}
	f := r.flush
	r.flush = nil
	if r.rnd.IntN(4) == 0 {
		r.table.EndFlush(f, errors.New("disk full"))
		return
	}
	if err := f.Run(); err != nil {
		r.t.Fatal(err)
	}
	r.table.EndFlush(f, nil)
	r.m.stored, r.m.storedPos, r.m.flushing = r.m.flushing, r.m.flushPos, nil
}

// crash loses what is in memory: the table is what was stored.
func (r *modelRun) crash() {
	if r.flush != nil && r.rnd.IntN(2) == 0 {
		if err := r.flush.Run(); err != nil {
			r.t.Fatal(err)
		}
		r.m.stored, r.m.storedPos = r.m.flushing, r.m.flushPos
	}
	r.builder.(interface{ Crash() }).Crash()
	r.open()
	cp, _ := r.table.Committed()
	if cp.Position != r.m.storedPos {
		r.t.Errorf("checkpoint after a crash is %d, want %d", cp.Position, r.m.storedPos)
	}
	r.flush, r.layers = nil, nil
	r.m = tableModel{
		newest: maps.Clone(r.m.stored), committed: maps.Clone(r.m.stored), position: r.m.storedPos,
		stored: r.m.stored, storedPos: r.m.storedPos,
	}
}

func (r *modelRun) clear() {
	if err := r.table.Clear(); err != nil {
		r.t.Fatal(err)
	}
	r.flush, r.layers = nil, nil
	r.m = tableModel{newest: map[string]modelRow{}, committed: map[string]modelRow{}, stored: map[string]modelRow{}}
}
