package stream_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/window"
)

// watchedStorage counts the snapshots that are taken of tables: every read of
// a range takes one.
type watchedStorage struct {
	storage.Builder
	snapshots, applied atomic.Int64
}

func (w *watchedStorage) Open() (storage.Store, error) {
	s, err := w.Builder.Open()
	return watchedStore{s, w}, err
}

type watchedStore struct {
	storage.Store
	w *watchedStorage
}

func (s watchedStore) Table(name string, partition int32) (storage.Table, error) {
	t, err := s.Store.Table(name, partition)
	return watchedTable{t, s.w}, err
}

type watchedTable struct {
	storage.Table
	w *watchedStorage
}

func (t watchedTable) Snapshot() (storage.Snapshot, error) {
	t.w.snapshots.Add(1)
	return t.Table.Snapshot()
}

func (t watchedTable) Apply(rows []storage.Row, cp *storage.Checkpoint) error {
	for _, r := range rows {
		if r.Value != nil {
			t.w.applied.Add(1)
		}
	}
	return t.Table.Apply(rows, cp)
}

// watched runs a graph over records of topic in and returns what it read and
// wrote on disk.
func watched(t *testing.T, build func(*stream.Builder), records []kafka.Record) *watchedStorage {
	t.Helper()
	b := stream.NewBuilder("g")
	build(b)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	tt := tester.New(t, tester.WithPartitions(1))
	tt.CreateTopic("in", 1)
	for _, name := range g.Outputs() {
		tt.CreateTopic(name, 1)
	}
	w := &watchedStorage{}
	tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		w.Builder = i.Storage()
		p, err := processor.New(i.Client(), g, processor.WithStorage(w))
		return []reka.Runner{p}, err
	})
	tt.SendRaw("in", 0, records...)
	tt.Settle()
	return w
}

// clicking are n records of many keys, a millisecond apart.
func clicking(n int) []kafka.Record {
	out := make([]kafka.Record, n)
	for i := range out {
		out[i] = kafka.Record{Key: fmt.Appendf(nil, "k%d", i%1000), Value: fmt.Append(nil, i), Timestamp: int64(i)}
	}
	return out
}

// Ranges are read when a task starts, not for records: neither for those that
// look for partners, nor for results that are due.
func TestLeftJoinReadsNoRangePerRecord(t *testing.T) {
	count := func(n int) int64 {
		return watched(t, func(b *stream.Builder) {
			in := stream.From(b, text("in"))
			odd := in.Filter(func(_, v string) bool { return (v[len(v)-1]-'0')%2 == 1 })
			stream.LeftJoin(in, odd, stream.Within(time.Second, 0), func(_, l string, r *string) string { return l + side(r) },
				stream.WithCodec(codec.String())).To(text("out"))
		}, clicking(n)).snapshots.Load()
	}
	if few, many := count(500), count(8000); many > few {
		t.Errorf("%d ranges are read for 8000 records, %d for 500", many, few)
	}
}

func TestWindowedCountReadsNoRangePerRecord(t *testing.T) {
	count := func(n int) int64 {
		return watched(t, func(b *stream.Builder) {
			w := window.Tumbling(ms(100), window.NoGrace)
			stream.From(b, text("in")).GroupByKey().Windowed(w).Count().To(counts("out", w))
		}, clicking(n)).snapshots.Load()
	}
	if few, many := count(500), count(8000); many > few {
		t.Errorf("%d ranges are read for 8000 records, %d for 500", many, few)
	}
}

// Rows that have expired were deleted in the changelog, too: a restore does
// not bring them to the disk again.
func TestRestoreWritesOnlyWindowsThatAreLive(t *testing.T) {
	w := window.Tumbling(ms(100), window.NoGrace)
	s := play(t, "in", func(b *stream.Builder) {
		stream.From(b, text("in")).GroupByKey().Windowed(w).Count(stream.Named("n"))
	})
	s.tt.SendRaw("in", 0, clicking(20_000)...)
	s.tt.Settle()
	s.app.Crash()
	disk := &watchedStorage{}
	s.tt.Start("elsewhere", func(i *tester.Instance) ([]reka.Runner, error) {
		disk.Builder = i.Storage()
		p, err := processor.New(i.Client(), s.graph, processor.WithStorage(disk), processor.WithTuning(processor.Tuning{FlushAge: time.Minute}))
		return []reka.Runner{p}, err
	})
	s.tt.Advance(2 * time.Minute)
	if n := disk.applied.Load(); n != 100 {
		t.Errorf("%d rows were written, want the 100 of the open window", n)
	}
}
