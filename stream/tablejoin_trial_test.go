package stream_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rekastream/reka/stream"
)

// modelTable is one side of modelJoin: rows by key, and if it is versioned the
// time of the newest version, a delete included.
type modelTable struct {
	rows   map[string]modelRow
	newest map[string]int64 // nil: not versioned
}

type modelRow struct {
	value string
	time  int64
}

// set reports whether the row was taken.
func (m *modelTable) set(key, value string, at int64) bool {
	if m.newest != nil {
		if was, ok := m.newest[key]; ok && was > at {
			return false
		}
		m.newest[key] = at
	}
	if delete(m.rows, key); value != "" {
		m.rows[key] = modelRow{value, at}
	}
	return true
}

// modelJoin is a join of two tables, the simple way.
type modelJoin struct {
	kind  int
	sides [2]modelTable
}

func (m *modelJoin) result(key string) string {
	l, lok := m.sides[0].rows[key]
	r, rok := m.sides[1].rows[key]
	if !lok && !rok || !rok && m.kind == 0 || !lok && m.kind < 2 {
		return ""
	}
	show := func(r modelRow, ok bool) *string {
		if !ok {
			return nil
		}
		return &r.value
	}
	return two(show(l, lok), show(r, rok))
}

// set returns what a change gives.
func (m *modelJoin) set(side int, key, value string, at int64) string {
	was := m.result(key)
	if !m.sides[side].set(key, value, at) {
		return ""
	}
	is := m.result(key)
	if is == was {
		return ""
	}
	if other, ok := m.sides[1-side].rows[key]; ok {
		at = max(at, other.time)
	}
	return fmt.Sprintf("%s:%s@%d", key, is, at)
}

func TestTablesJoinAsASimpleModelDoes(t *testing.T) {
	for v, variant := range []string{"plain", "versioned", "versioned left", "versioned right"} {
		for k, kind := range joinKinds {
			t.Run(variant+" "+kind, func(t *testing.T) { joinAtRandom(t, v, k) })
		}
	}
}

func joinAtRandom(t *testing.T, v, kind int) {
	random := rand.New(rand.NewPCG(uint64(v), uint64(kind)))
	m := &modelJoin{kind: kind}
	on := [2]bool{v == 1 || v == 2, v == 1 || v == 3}
	for i := range m.sides {
		m.sides[i].rows = map[string]modelRow{}
		if on[i] {
			m.sides[i].newest = map[string]int64{}
		}
	}
	s := play(t, "L R", func(b *stream.Builder) {
		joinTables(stream.FromTable(b, rows("L"), versioned(on[0])...), stream.FromTable(b, rows("R"), versioned(on[1])...), kind).To(rows("out"))
	})
	for i := range 300 {
		side, key, at := random.IntN(2), fmt.Sprint("k", random.IntN(2)), int64(random.IntN(100))
		value := fmt.Sprint("v", random.IntN(5))
		if random.IntN(3) == 0 {
			value = ""
		}
		s.send([]string{"L", "R"}[side], fmt.Sprintf("%s:%s@%d", key, value, at))
		if random.IntN(60) == 0 {
			s.tt.Advance(time.Second)
			s.app.Crash()
			s.app.Restart()
		}
		if got, want := s.news("out"), m.set(side, key, value, at); got != want {
			t.Fatalf("step %d, %d %s:%s@%d:\n  got  %s\n  want %s", i, side, key, value, at, got, want)
		}
	}
}
