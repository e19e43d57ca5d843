package rows

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// BenchmarkCounter is what a counting callback costs the table: read a row of
// a 12-byte key and an 8-byte value, and set it.
func BenchmarkCounter(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			t := filled(n, 1<<30)
			rng := rand.New(rand.NewPCG(1, 2))
			order := make([]uint32, 1<<20)
			for i := range order {
				order[i] = uint32(rng.IntN(n))
			}
			var key [12]byte
			var value [8]byte
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				putKey(&key, order[i%len(order)])
				e, _ := t.Find(key[:])
				binary.BigEndian.PutUint64(value[:], binary.BigEndian.Uint64(e.Value)+1)
				t.Set(key[:], value[:], int64(i))
				if i++; i%10_000 == 0 {
					b.StopTimer()
					t.Clean(t.Seal(func(_, _ []byte, _ int64, _ bool) {}))
					b.StartTimer()
				}
			}
		})
	}
}

// BenchmarkCounterAhead is BenchmarkCounter with keys prefetched by tens.
func BenchmarkCounterAhead(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			t := filled(n, 1<<30)
			rng := rand.New(rand.NewPCG(1, 2))
			order := make([]uint32, 1<<20)
			for i := range order {
				order[i] = uint32(rng.IntN(n))
			}
			var keys [16][12]byte
			ahead := make([][]byte, 16)
			var value [8]byte
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if i%16 == 0 {
					for j := range keys {
						putKey(&keys[j], order[(i+j)%len(order)])
						ahead[j] = keys[j][:]
					}
					t.Prefetch(ahead)
				}
				key := keys[i%16][:]
				e, _ := t.Find(key)
				binary.BigEndian.PutUint64(value[:], binary.BigEndian.Uint64(e.Value)+1)
				t.Set(key, value[:], int64(i))
				if i++; i%10_000 == 0 {
					b.StopTimer()
					t.Clean(t.Seal(func(_, _ []byte, _ int64, _ bool) {}))
					b.StartTimer()
				}
			}
		})
	}
}

// BenchmarkMap is the same with a Go map, for comparison.
func BenchmarkMap(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			type pair [2]uint64 // value and time
			var key [12]byte
			m := map[string]pair{}
			for i := range n {
				putKey(&key, uint32(i))
				m[string(key[:])] = pair{}
			}
			rng := rand.New(rand.NewPCG(1, 2))
			order := make([]uint32, 1<<20)
			for i := range order {
				order[i] = uint32(rng.IntN(n))
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				putKey(&key, order[i%len(order)])
				v := m[string(key[:])]
				v[0]++
				m[string(key[:])] = v
				i++
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	const n = 100_000
	t := filled(n, 1<<30)
	var key [12]byte
	for _, unknown := range []uint32{0, n} {
		b.Run(fmt.Sprintf("unknown=%v", unknown > 0), func(b *testing.B) {
			i := uint32(0)
			for b.Loop() {
				putKey(&key, i*7919%n+unknown)
				t.Find(key[:])
				i++
			}
		})
	}
}

// BenchmarkInsert fills tables of 1,000,000 rows.
func BenchmarkInsert(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		filled(1_000_000, 1<<30)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/row")
}

// BenchmarkSeal is the cost of a change until it is handed out.
func BenchmarkSeal(b *testing.B) {
	const n, changes = 100_000, 10_000
	t := filled(n, 1<<30)
	var key [12]byte
	i := uint32(0)
	for b.Loop() {
		b.StopTimer()
		for range changes {
			putKey(&key, i*7919%n)
			t.Set(key[:], key[:8], 1)
			i++
		}
		b.StartTimer()
		t.Clean(t.Seal(func(_, _ []byte, _ int64, _ bool) {}))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/changes, "ns/row")
}

// BenchmarkEvict looks keys up in a table that holds a tenth of them, and
// tells how long a call takes that sweeps a chunk.
func BenchmarkEvict(b *testing.B) {
	t := New(8 << 20)
	rng := rand.New(rand.NewPCG(1, 2))
	var key [12]byte
	missed := 0
	var sweeps []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		putKey(&key, uint32(rng.IntN(1_200_000)))
		if _, ok := t.Find(key[:]); !ok {
			oldest, start := t.arena.oldest(), time.Now()
			t.Fill(key[:], key[:8], 1, false)
			if t.arena.oldest() != oldest {
				sweeps = append(sweeps, time.Since(start))
			}
			missed++
		}
	}
	b.ReportMetric(float64(missed)/float64(b.N), "misses/op")
	if len(sweeps) > 0 {
		slices.Sort(sweeps) // the machine's own pauses are at the end
		b.ReportMetric(float64(sweeps[len(sweeps)/2].Microseconds()), "sweep-µs")
	}
}

// filled returns a table of n clean rows.
func filled(n, budget int) *Table {
	t := New(budget)
	var key [12]byte
	var value [8]byte
	for i := range n {
		putKey(&key, uint32(i))
		t.Fill(key[:], value[:], 1, false)
	}
	return t
}

func putKey(key *[12]byte, n uint32) {
	copy(key[:], "user")
	const digits = "0123456789abcdef"
	for i := range 8 {
		key[4+i] = digits[n>>(28-4*i)&15]
	}
}
