package view_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage/badgerstore"
	"github.com/rekastream/reka/view"
)

// flood is a Driver whose topics have any number of rows, and updates of them
// as long as a fetcher follows.
type flood struct {
	kafka.Driver
	partitions int32
	rows       int // at the start, over all partitions
	rate       int // updates a second, over all partitions
}

const floodBatch = 20000

func (f *flood) Clock() kafka.Clock { return kafka.SystemClock() }
func (f *flood) Work() work.Counter { return nil }
func (f *flood) Admin() kafka.Admin { return floodAdmin{f: f} }

func (f *flood) NewFetcher(kafka.FetcherConfig) (kafka.Fetcher, error) {
	ctx, cancel := context.WithCancel(context.Background())
	return &floodFetcher{f: f, ctx: ctx, cancel: cancel}, nil
}

type floodAdmin struct {
	kafka.Admin
	f *flood
}

func (a floodAdmin) Topics(_ context.Context, names ...string) (map[string]kafka.Topic, error) {
	return map[string]kafka.Topic{names[0]: {Name: names[0], ID: kafka.TopicID{1}, Partitions: a.f.partitions}}, nil
}

func (a floodAdmin) Configs(context.Context, string) (map[string]string, error) {
	return map[string]string{}, nil
}

func (a floodAdmin) Offsets(_ context.Context, at kafka.Mark, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	out := map[kafka.TopicPartition]int64{}
	for _, tp := range tps {
		if at != kafka.LogStart {
			out[tp] = int64(a.f.rows) / int64(a.f.partitions)
		}
	}
	return out, nil
}

type floodFetcher struct {
	f      *flood
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func (x *floodFetcher) Unfollow(...kafka.TopicPartition) {}

func (x *floodFetcher) Close() error {
	x.cancel()
	x.wg.Wait()
	return nil
}

func (x *floodFetcher) Follow(to kafka.Follow) {
	x.wg.Go(func() { // ends with Close
		per := x.f.rows / int(x.f.partitions)
		released := make(chan struct{}, 2)
		released <- struct{}{}
		released <- struct{}{}
		rnd := rand.New(rand.NewPCG(uint64(to.Partition), 1))
		for {
			n := floodBatch
			if int(to.Position) >= per {
				n = x.f.rate / int(x.f.partitions) / 100
				select {
				case <-time.After(10 * time.Millisecond):
				case <-x.ctx.Done():
					return
				}
			}
			b := kafka.Batch{TopicPartition: to.TopicPartition, LeaderEpoch: 1}
			buf := make([]byte, 0, n*20)
			for range n {
				i := int(to.Position)
				if i >= per {
					i = rnd.IntN(per)
				}
				at := len(buf)
				buf = floodKey(buf, i, to.Partition)
				buf = binary.BigEndian.AppendUint64(buf, uint64(to.Position))
				b.Records = append(b.Records, kafka.Record{Key: buf[at : at+12 : at+12], Value: buf[at+12 : at+20 : at+20], Offset: to.Position, Timestamp: 1})
				to.Position++
			}
			b.Position, b.LastStable, b.HighWatermark = to.Position, max(to.Position, int64(per)), max(to.Position, int64(per))
			select {
			case <-released:
			case <-x.ctx.Done():
				return
			}
			to.Deliver(kafka.NewBatch(b, func() { released <- struct{}{} }))
		}
	})
}

// floodKey appends a key of 12 bytes.
func floodKey(dst []byte, i int, partition int32) []byte {
	return fmt.Appendf(dst, "k%08d-%02d", i, partition)
}

// byNumber places the keys of a flood.
type byNumber struct{}

func (byNumber) Partition(key []byte, n int32) int32 {
	return (int32(key[10]-'0')*10 + int32(key[11]-'0')) % n
}
func (byNumber) String() string { return "by number" }

func runFlood(b *testing.B, f *flood) (*view.View[int64], func()) {
	c, err := kafka.NewDriverClient(f, kafka.WithPartitioner(byNumber{}), kafka.WithLogger(zap.NewNop()))
	if err != nil {
		b.Fatal(err)
	}
	v, err := view.New(c, counts, view.WithStorage(badgerstore.In(b.TempDir())))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }() // ends with cancel
	if err := v.WaitReady(ctx); err != nil {
		b.Fatal(err)
	}
	return v, func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkRestore restores 2,000,000 rows of 12-byte keys and 8-byte values
// into Badger.
func BenchmarkRestore(b *testing.B) {
	for b.Loop() {
		const rows = 2_000_000
		start := time.Now()
		_, stop := runFlood(b, &flood{partitions: 4, rows: rows})
		ready := time.Since(start)
		stop()
		b.ReportMetric(rows/ready.Seconds(), "rows/s")
		b.ReportMetric(rows/time.Since(start).Seconds(), "durable-rows/s")
	}
}

// BenchmarkGetDuringUpdates reads 100,000 rows from two goroutines while
// 50,000 of them change each second.
func BenchmarkGetDuringUpdates(b *testing.B) {
	v, stop := runFlood(b, &flood{partitions: 4, rows: 100_000, rate: 50_000})
	defer stop()
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = string(floodKey(nil, i/4, int32(i%4)))
	}
	before := v.Stats().Records
	var reads atomic.Int64
	start := time.Now()
	b.ResetTimer()
	var wg sync.WaitGroup
	for r := range 2 {
		wg.Go(func() { // ends after its share of b.N
			rnd := rand.New(rand.NewPCG(uint64(r), 7))
			for range b.N / 2 {
				if _, ok, err := v.Get(keys[rnd.IntN(len(keys))]); !ok || err != nil {
					b.Errorf("%v, %v", ok, err)
					return
				}
				reads.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(start).Seconds()
	b.ReportMetric(float64(reads.Load())/took, "gets/s")
	b.ReportMetric(float64(v.Stats().Records-before)/took, "updates/s")
}
