package storagetest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rekastream/reka/storage"
)

// Model does steps at random and compares what a store answers with a sorted
// map. The same seed does the same.
func Model(t *testing.T, b storage.Builder, seed uint64, steps int) {
	m := &model{t: t, b: b, rnd: rand.New(rand.NewPCG(seed, seed)), parts: make([]part, 3)}
	for i := range m.parts {
		m.parts[i].rows = map[string]string{}
	}
	m.open()
	defer func() { m.store.Close() }()
	for i := range steps {
		m.at = fmt.Sprintf("seed %d step %d", seed, i)
		m.step()
	}
	for i := range m.parts {
		m.compare(&m.parts[i])
	}
}

type model struct {
	t     *testing.T
	b     storage.Builder
	rnd   *rand.Rand
	at    string
	store storage.Store
	parts []part
}

// part is one table and what should be in it.
type part struct {
	table storage.Table
	rows  map[string]string
	cp    *storage.Checkpoint
	snaps []still
}

// still is a snapshot and what should be in it.
type still struct {
	snap storage.Snapshot
	rows map[string]string
}

func (m *model) open() {
	s, err := m.b.Open()
	if err != nil {
		m.t.Fatalf("%s: %v", m.at, err)
	}
	m.store = s
	for i := range m.parts {
		m.parts[i].table = Table(m.t, s, fmt.Sprint("t", i%2), int32(i))
	}
}

func (m *model) step() {
	p := &m.parts[m.rnd.IntN(len(m.parts))]
	switch n := m.rnd.IntN(100); {
	case n < 45:
		m.apply(p)
	case n < 65:
		m.get(p)
	case n < 75:
		m.scan(p.rows, m.snapshot(p), true)
	case n < 82:
		if len(p.snaps) < 3 {
			p.snaps = append(p.snaps, still{m.snapshot(p), maps.Clone(p.rows)})
		}
	case n < 92:
		if len(p.snaps) > 0 {
			i := m.rnd.IntN(len(p.snaps))
			last := m.rnd.IntN(2) == 0
			m.scan(p.snaps[i].rows, p.snaps[i].snap, last)
			if last {
				p.snaps = slices.Delete(p.snaps, i, i+1)
			}
		}
	case n < 95:
		if err := p.table.Clear(); err != nil {
			m.t.Fatalf("%s: clear: %v", m.at, err)
		}
		clear(p.rows)
		p.cp = nil
	case n < 98:
		m.reopen()
	default:
		m.compare(p)
	}
}

func (m *model) reopen() {
	for i := range m.parts {
		for _, s := range m.parts[i].snaps {
			if m.rnd.IntN(2) == 0 {
				s.snap.Release()
			}
		}
		m.parts[i].snaps = nil
	}
	if err := m.store.Close(); err != nil {
		m.t.Fatalf("%s: close: %v", m.at, err)
	}
	m.open()
}

func (m *model) apply(p *part) {
	n := m.rnd.IntN(30)
	if m.rnd.IntN(10) == 0 {
		n = 3000
	}
	rows := make([]storage.Row, n)
	for i := range rows {
		key := m.key()
		rows[i].Key = []byte(key)
		if m.rnd.IntN(4) == 0 {
			delete(p.rows, key)
			continue
		}
		value := m.value(n)
		rows[i].Value = append([]byte{}, value...)
		p.rows[key] = value
	}
	var cp *storage.Checkpoint
	if m.rnd.IntN(2) == 0 {
		cp = &storage.Checkpoint{Position: m.rnd.Int64(), LeaderEpoch: m.rnd.Int32(), Owner: []byte(m.value(1000))}
		p.cp = cp
	}
	if err := p.table.Apply(rows, cp); err != nil {
		m.t.Fatalf("%s: apply: %v", m.at, err)
	}
}

// key returns a key out of few, so that they meet again.
func (m *model) key() string {
	switch n := m.rnd.IntN(200); {
	case n == 0:
		return ""
	case n < 3:
		return long()[m.rnd.IntN(len(long()))]
	case n < 20:
		return strings.Repeat("\xff", m.rnd.IntN(4)) + strings.Repeat("\x00", m.rnd.IntN(4))
	case n < 100:
		return fmt.Sprint(m.rnd.IntN(100))
	default:
		return fmt.Sprintf("key%05d", m.rnd.IntN(5000))
	}
}

func (m *model) value(rows int) string {
	switch n := m.rnd.IntN(100); {
	case n == 0 && rows < 100:
		return strings.Repeat(fmt.Sprint(m.rnd.IntN(10)), 512<<10+m.rnd.IntN(1<<20))
	case n < 5:
		return ""
	default:
		return fmt.Sprint(m.rnd.Uint64())
	}
}

func (m *model) get(p *part) {
	for range 10 {
		key := m.key()
		want, there := p.rows[key]
		v, ok, err := p.table.Get(nil, []byte(key))
		if err != nil || ok != there || string(v) != want {
			m.t.Fatalf("%s: get %.40q: %.40q %v %v, want %.40q %v", m.at, key, v, ok, err, want, there)
		}
	}
}

func (m *model) snapshot(p *part) storage.Snapshot {
	s, err := p.table.Snapshot()
	if err != nil {
		m.t.Fatalf("%s: snapshot: %v", m.at, err)
	}
	return s
}

// scan compares a range of a snapshot, and now and then leaves in the middle.
func (m *model) scan(rows map[string]string, s storage.Snapshot, release bool) {
	if release {
		defer s.Release()
	}
	r := storage.Range{Reverse: m.rnd.IntN(2) == 0}
	if m.rnd.IntN(2) == 0 {
		r.From = []byte(m.key())
	}
	if m.rnd.IntN(2) == 0 {
		r.To = []byte(m.key())
	}
	var want []string
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		if r.Contains([]byte(k)) {
			want = append(want, k)
		}
	}
	if r.Reverse {
		slices.Reverse(want)
	}
	stop := len(want)
	if m.rnd.IntN(4) == 0 {
		stop = m.rnd.IntN(len(want) + 1)
	}
	i := 0
	for row, err := range s.Scan(r) {
		if i == stop && stop < len(want) {
			return
		}
		if err != nil || i >= len(want) || string(row.Key) != want[i] || string(row.Value) != rows[want[i]] {
			m.t.Fatalf("%s: scan %+.40q row %d of %d: %.40q=%.40q, %v", m.at, r.From, i, len(want), row.Key, row.Value, err)
		}
		i++
	}
	if i != len(want) {
		m.t.Fatalf("%s: scan: %d rows of %d", m.at, i, len(want))
	}
}

func (m *model) compare(p *part) {
	s := m.snapshot(p)
	defer s.Release()
	got := list(m.t, s.Scan(storage.Range{}))
	want := slices.Sorted(maps.Keys(p.rows))
	if len(got) != len(want) {
		m.t.Fatalf("%s: %d rows of %d", m.at, len(got), len(want))
	}
	for i, k := range want {
		if string(got[i].Key) != k || string(got[i].Value) != p.rows[k] {
			m.t.Fatalf("%s: row %.40q=%.40q, want %.40q", m.at, got[i].Key, got[i].Value, k)
		}
	}
	cp, ok, err := p.table.Checkpoint()
	if err != nil || ok != (p.cp != nil) {
		m.t.Fatalf("%s: checkpoint %v %v", m.at, ok, err)
	}
	if ok && (cp.Position != p.cp.Position || cp.LeaderEpoch != p.cp.LeaderEpoch || !bytes.Equal(cp.Owner, p.cp.Owner)) {
		m.t.Fatalf("%s: checkpoint %+v, want %+v", m.at, cp, p.cp)
	}
}
