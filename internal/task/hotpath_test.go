package task

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// What one record costs is measured on a task without a goroutine over a
// driver that does nothing: the caller pushes batches and lets the task
// process, seal and commit them.
type stand struct {
	task   *Task
	batch  []kafka.Record
	offset int64
}

const standBatch = 1000

var noOp = Handler(func(*Record) error { return nil })

// countUp adds one to the row of the record's key.
func countUp(r *Record) error {
	var buf [8]byte
	value, _ := r.Get(0, r.Key())
	copy(buf[:], value)
	buf[0]++
	r.Set(0, r.Key(), buf[:])
	return r.Err()
}

// emitSame copies the record.
func emitSame(r *Record) error {
	r.Emit(0, Emission{Key: r.Key(), Value: r.Source().Value, Time: -1, Partition: -1})
	return r.Err()
}

// newStand returns a stand whose records have the given number of keys.
func newStand(tb testing.TB, h Handler, keys int) *stand {
	tb.Helper()
	store, err := storage.Memory().Open()
	if err != nil {
		tb.Fatal(err)
	}
	lane := NewLane(LaneEnv{Clock: kafka.SystemClock(), Log: zap.NewNop(), Producer: nullProducer{}})
	lane.Adopt(Identity{Member: nullMember{}})
	disk := NewWorker(nil)
	env := &Env{
		Graph: &graph.Graph{Group: "g", Inputs: []graph.Input{{Topic: "in"}}, Outputs: []graph.Output{{Topic: "out"}},
			Stores: []graph.Store{{Name: "table", Changelog: "g-table"}}},
		Inputs: []Handler{h}, Clock: kafka.SystemClock(), Log: zap.NewNop(),
		Fetcher: nullFetcher{}, Restorer: nullFetcher{}, Producer: nullProducer{}, Place: kafka.Murmur2(),
		Store: store, Lane: lane, Disk: disk, Outputs: []Target{{Topic: "out", Partitions: 4}},
		Settings: Settings{CommitInterval: time.Hour, EpochBytes: 1 << 30, RecordBytes: 1 << 20,
			CacheBytes: 256 << 20, FlushBytes: 1 << 30, FlushAge: time.Hour},
		Event: func(Event) {},
	}
	s := &stand{task: New(env, 0, Start{Inputs: []InputStart{{}}, Stores: []StoreStart{{Bounds: replica.Bounds{}}}, Mark: Mark{StreamTime: -1}})}
	s.task.state = stateRestoring
	if err := s.task.open(); err != nil {
		tb.Fatal(err)
	}
	if s.task.state != stateRunning {
		tb.Fatalf("the task is %s", s.task.state)
	}
	s.batch = make([]kafka.Record, max(standBatch, keys))
	for i := range s.batch {
		s.batch[i] = kafka.Record{Key: fmt.Appendf(nil, "key-%08d", i*7919%keys), Value: make([]byte, 100), Timestamp: 1_700_000_000_000}
	}
	tb.Cleanup(func() {
		lane.Close()
		disk.Close()
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// process has the task process the next standBatch records.
func (s *stand) process(tb testing.TB) {
	at := int(s.offset) % len(s.batch)
	records := s.batch[at : at+standBatch]
	for i := range records {
		records[i].Offset = s.offset
		s.offset++
	}
	t := s.task
	t.take(t.inputs[0], kafka.NewBatch(kafka.Batch{TopicPartition: t.inputs[0].TopicPartition, Records: records, Position: s.offset, LastStable: s.offset}, nil))
	for t.process() {
	}
	t.endTurn(false)
	if t.failed != nil {
		tb.Fatal(t.failed)
	}
	if got := t.inputs[0].position; got != s.offset {
		tb.Fatalf("at %d, want %d", got, s.offset)
	}
}

// commit seals what was done and waits until it is committed.
func (s *stand) commit(tb testing.TB) {
	t := s.task
	t.seal()
	for t.writing != nil {
		messages, _ := t.box.Take()
		for i := range messages {
			t.handle(&messages[i])
		}
	}
	if t.failed != nil {
		tb.Fatal(t.failed)
	}
}

// A batch and an epoch may allocate a few times; a record may not.
func TestRecordsAllocateNothingInTheEngine(t *testing.T) {
	const perBatch = 12
	for name, h := range map[string]Handler{"no effects": noOp, "count": countUp, "emit": emitSame} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, h, 5000)
			for range 40 { // every key, every slab and chunk at its size
				s.process(t)
				s.commit(t)
			}
			n := testing.AllocsPerRun(20, func() { s.process(t) })
			if n > perBatch && !raceEnabled {
				t.Errorf("%v allocations for %d records, want at most %d", n, standBatch, perBatch)
			}
			s.commit(t)
		})
	}
}

// What a slab held when a part of it was refused is not used again: the
// refused records are read later.
func TestRefusedOutputsKeepTheirBytes(t *testing.T) {
	s := newSlab()
	task := newStand(t, noOp, standBatch).task
	e := newEpoch(task, 1)
	box := &outbox{slab: s, target: kafka.TopicPartition{Topic: "out"}}
	for i := range 3 {
		box.add(kafka.Record{Key: []byte{'k', byte('0' + i)}}, origin{offset: int64(i)})
	}
	hold := &holdingProducer{}
	box.send(hold, e)
	hold.out.Done(kafka.Run{To: 1})
	hold.out.Done(kafka.Run{From: 1, To: 2, Err: kafka.ErrTooLarge})
	hold.out.Done(kafka.Run{From: 2, To: 3})
	messages := task.box.TryTake()
	if len(messages) != 1 || messages[0].kind != msgRefused {
		t.Fatalf("messages: %+v", messages)
	}
	r := messages[0].refusals[0]
	if len(r.records()) != 1 || string(r.records()[0].Key) != "k1" || r.origins()[0].offset != 1 {
		t.Errorf("refused: %+v of %+v", r.records(), r.origins())
	}
	if other := newSlab(); other == s {
		t.Error("the slab is in use again")
	}
	if got := e.pending.Load(); got != 2 { // the refused one, and not being sealed
		t.Errorf("pending: %d, want 2", got)
	}
}

func BenchmarkRecord(b *testing.B) {
	for _, bench := range []struct {
		name string
		h    Handler
		keys int
	}{{"none", noOp, 1000}, {"count 20,000 keys", countUp, 20_000}, {"count 1,000,000 keys", countUp, 1_000_000}, {"emit", emitSame, 1000}} {
		b.Run(bench.name, func(b *testing.B) {
			s := newStand(b, bench.h, bench.keys)
			batches := 0
			step := func() {
				s.process(b)
				if batches++; batches%50 == 0 {
					s.commit(b)
				}
			}
			for range 2 * len(s.batch) / standBatch {
				step()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += standBatch {
				step()
			}
		})
	}
}

type nullProducer struct{}

func (nullProducer) Produce(o kafka.Outgoing) { o.Done(kafka.Run{To: len(o.Records), Base: -1}) }
func (nullProducer) Close() error             { return nil }

// holdingProducer leaves the answers to the test.
type holdingProducer struct{ out kafka.Outgoing }

func (p *holdingProducer) Produce(o kafka.Outgoing) { p.out = o }
func (p *holdingProducer) Close() error             { return nil }

type nullFetcher struct{}

func (nullFetcher) Follow(kafka.Follow)              {}
func (nullFetcher) Unfollow(...kafka.TopicPartition) {}
func (nullFetcher) Close() error                     { return nil }

// nullMember commits everything at once.
type nullMember struct{ kafka.Member }

func (nullMember) Lease() time.Time { return time.Now().Add(time.Hour) }
func (nullMember) Commit(context.Context, string, int32, []kafka.CommittedOffset) error {
	return nil
}
