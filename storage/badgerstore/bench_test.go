package badgerstore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/storagetest"
)

// randomRows returns n rows with keys of 16 bytes out of a number of them, in
// random order, and values of the given size.
func randomRows(n, of, size int) []storage.Row {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	rows := make([]storage.Row, n)
	for i := range rows {
		key := make([]byte, 16)
		binary.BigEndian.PutUint64(key[8:], uint64(rnd.IntN(of))*0x9e3779b97f4a7c15)
		rows[i] = storage.Row{Key: key, Value: make([]byte, size)}
		binary.BigEndian.PutUint64(rows[i].Value, rnd.Uint64())
	}
	return rows
}

func BenchmarkApply(b *testing.B) {
	for _, test := range []struct{ batch, size int }{{10, 8}, {1000, 8}, {10_000, 8}, {100_000, 8}, {1_000_000, 8}, {100_000, 100}} {
		b.Run(fmt.Sprintf("rows=%d/bytes=%d", test.batch, test.size), func(b *testing.B) {
			tab := storagetest.Table(b, storagetest.Open(b, In(b.TempDir())), "t", 0)
			rows := randomRows(1_000_000, 1_000_000, test.size)
			n, cpu := 0, cpuTime(b)
			for b.Loop() {
				at := n % len(rows)
				if err := tab.Apply(rows[at:at+test.batch], &storage.Checkpoint{Position: int64(n)}); err != nil {
					b.Fatal(err)
				}
				n += test.batch
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric((cpuTime(b)-cpu).Seconds()*1e6/float64(n), "cpu-us/row")
		})
	}
}

// cpuTime is what the process has used: unlike rows per second it hardly
// depends on what else the machine does.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkGet(b *testing.B) {
	for _, there := range []bool{true, false} {
		b.Run(fmt.Sprintf("there=%v", there), func(b *testing.B) {
			tab := storagetest.Table(b, storagetest.Open(b, In(b.TempDir())), "t", 0)
			rows := randomRows(1_000_000, 1_000_000, 8)
			storagetest.Apply(b, tab, rows...)
			var dst []byte
			i := 0
			key := make([]byte, 16)
			b.ReportAllocs()
			for b.Loop() {
				i = (i + 7919) % len(rows)
				copy(key, rows[i].Key)
				if !there {
					key[0] = 1
				}
				v, ok, err := tab.Get(dst[:0], key)
				if err != nil || ok != there {
					b.Fatal(ok, err)
				}
				dst = v
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	tab := storagetest.Table(b, storagetest.Open(b, In(b.TempDir())), "t", 0)
	storagetest.Apply(b, tab, randomRows(1_000_000, 1_000_000, 8)...)
	s, err := tab.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Release()
	n := 0
	for b.Loop() {
		for _, err := range s.Scan(storage.Range{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkOpen opens a directory with a million rows, all of which are
// checked for damage.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s, tab := mustOpen(b, dir)
	storagetest.Apply(b, tab, randomRows(1_000_000, 1<<40, 100)...)
	mustClose(b, s)
	b.SetBytes(onDisk(b, dir))
	for b.Loop() {
		s, _ := mustOpen(b, dir)
		mustClose(b, s)
	}
}
