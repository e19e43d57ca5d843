package replica

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// fakeKafka is a Driver with logs in memory, for what a replica needs of one.
type fakeKafka struct {
	kafka.Driver // what is not implemented is not used

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	down     bool
	topics   map[string]*fakeTopic
	ids      byte
	epochErr error // that EpochEnd fails with
	batch    int   // records of one batch
	limit    int64 // nothing is fetched from here on; 0: no limit
	fetched  int   // records that were delivered
}

type fakeTopic struct {
	id      kafka.TopicID
	configs map[string]string
	parts   []*fakeLog
}

type fakeLog struct {
	records    []kafka.Record
	start, end int64
	stable     int64 // -1: the end
	epochs     []fakeEpoch
}

// fakeEpoch is a leader epoch and where it begins.
type fakeEpoch struct {
	epoch int32
	start int64
}

// epochAt is the leader epoch of an offset.
func (l *fakeLog) epochAt(offset int64) int32 {
	epoch := int32(-1)
	for _, e := range l.epochs {
		if e.start <= offset {
			epoch = e.epoch
		}
	}
	return epoch
}

func newFakeKafka() *fakeKafka {
	return &fakeKafka{changed: make(chan struct{}), topics: map[string]*fakeTopic{}, batch: 100}
}

func (k *fakeKafka) client(t testing.TB, opts ...kafka.Option) *kafka.Client {
	c, err := kafka.NewDriverClient(k, append([]kafka.Option{kafka.WithLogger(zap.NewNop())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// change runs f and wakes everybody who waits.
func (k *fakeKafka) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
	close(k.changed)
	k.changed = make(chan struct{})
}

func (k *fakeKafka) create(topic string, partitions int) {
	k.change(func() {
		k.ids++
		t := &fakeTopic{id: kafka.TopicID{k.ids}, configs: map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "86400000"}}
		for range partitions {
			t.parts = append(t.parts, &fakeLog{stable: -1, epochs: []fakeEpoch{{1, 0}}})
		}
		k.topics[topic] = t
	})
}

func (k *fakeKafka) log(topic string, partition int32) *fakeLog {
	return k.topics[topic].parts[partition]
}

// write appends a record; a nil value is a tombstone.
func (k *fakeKafka) write(topic string, partition int32, key string, value []byte) {
	k.change(func() {
		l := k.log(topic, partition)
		l.records = append(l.records, kafka.Record{Key: []byte(key), Value: value, Offset: l.end, Timestamp: 1000 + l.end})
		l.end++
	})
}

// put writes to the partition where the client's default partitioner places
// the key.
func (k *fakeKafka) put(topic, key, value string) {
	n := int32(len(k.topics[topic].parts))
	k.write(topic, kafka.Murmur2().Partition([]byte(key), n), key, []byte(value))
}

// trim removes the records below offset.
func (k *fakeKafka) trim(topic string, partition int32, offset int64) {
	k.change(func() {
		l := k.log(topic, partition)
		for len(l.records) > 0 && l.records[0].Offset < offset {
			l.records = l.records[1:]
		}
		l.start = offset
	})
}

// cut elects a leader that has nothing from offset on.
func (k *fakeKafka) cut(topic string, partition int32, offset int64) {
	k.change(func() {
		l := k.log(topic, partition)
		next := l.epochs[len(l.epochs)-1].epoch + 1
		for len(l.records) > 0 && l.records[len(l.records)-1].Offset >= offset {
			l.records = l.records[:len(l.records)-1]
		}
		for len(l.epochs) > 0 && l.epochs[len(l.epochs)-1].start >= offset {
			l.epochs = l.epochs[:len(l.epochs)-1]
		}
		l.end, l.epochs = offset, append(l.epochs, fakeEpoch{next, offset})
	})
}

func (k *fakeKafka) setDown(down bool) { k.change(func() { k.down = down }) }

// fetches is how many records were delivered.
func (k *fakeKafka) fetches() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fetched
}

// up waits until the brokers are there, and returns with mu held.
func (k *fakeKafka) up(ctx context.Context) error {
	for {
		k.mu.Lock()
		if !k.down {
			return nil
		}
		changed := k.changed
		k.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *fakeLog) marks() (start, stable, end int64) {
	if l.stable >= 0 {
		return l.start, l.stable, l.end
	}
	return l.start, l.end, l.end
}

func (k *fakeKafka) Clock() kafka.Clock { return kafka.SystemClock() }
func (k *fakeKafka) Work() work.Counter { return nil }
func (k *fakeKafka) Admin() kafka.Admin { return fakeAdmin{k: k} }
func (k *fakeKafka) Close() error       { return nil }

func (k *fakeKafka) NewFetcher(kafka.FetcherConfig) (kafka.Fetcher, error) {
	return &fakeFetcher{k: k, all: map[kafka.TopicPartition]*fakeFollow{}}, nil
}

type fakeAdmin struct {
	kafka.Admin
	k *fakeKafka
}

func (a fakeAdmin) Topics(ctx context.Context, names ...string) (map[string]kafka.Topic, error) {
	if err := a.k.up(ctx); err != nil {
		return nil, err
	}
	defer a.k.mu.Unlock()
	out := map[string]kafka.Topic{}
	for _, n := range names {
		if t := a.k.topics[n]; t != nil {
			out[n] = kafka.Topic{Name: n, ID: t.id, Partitions: int32(len(t.parts)), Replicas: 1}
		}
	}
	return out, nil
}

func (a fakeAdmin) Configs(ctx context.Context, topic string) (map[string]string, error) {
	if err := a.k.up(ctx); err != nil {
		return nil, err
	}
	defer a.k.mu.Unlock()
	if t := a.k.topics[topic]; t != nil {
		return t.configs, nil
	}
	return nil, kafka.ErrUnknownTopic
}

func (a fakeAdmin) Offsets(ctx context.Context, at kafka.Mark, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	if err := a.k.up(ctx); err != nil {
		return nil, err
	}
	defer a.k.mu.Unlock()
	out := map[kafka.TopicPartition]int64{}
	for _, tp := range tps {
		t := a.k.topics[tp.Topic]
		if t == nil || int(tp.Partition) >= len(t.parts) {
			return nil, fmt.Errorf("%s: %w", tp, kafka.ErrUnknownTopic)
		}
		start, stable, end := t.parts[tp.Partition].marks()
		out[tp] = map[kafka.Mark]int64{kafka.LogStart: start, kafka.LastStable: stable, kafka.HighWatermark: end}[at]
	}
	return out, nil
}

func (a fakeAdmin) EpochEnd(ctx context.Context, tp kafka.TopicPartition, asked int32) (epoch int32, end int64, err error) {
	if err := a.k.up(ctx); err != nil {
		return -1, -1, err
	}
	defer a.k.mu.Unlock()
	t := a.k.topics[tp.Topic]
	if t == nil || int(tp.Partition) >= len(t.parts) {
		return -1, -1, &kafka.Error{TopicPartition: tp, Offset: -1, Err: kafka.ErrUnknownTopic}
	}
	if a.k.epochErr != nil {
		return -1, -1, a.k.epochErr
	}
	l := t.parts[tp.Partition]
	newest := l.epochs[len(l.epochs)-1].epoch
	switch {
	case asked == kafka.NewestEpoch:
		return newest, l.end, nil
	case asked > newest:
		return -1, -1, nil
	}
	for _, e := range l.epochs {
		if e.epoch > asked {
			return asked, e.start, nil
		}
	}
	return asked, l.end, nil
}

type fakeFetcher struct {
	k   *fakeKafka
	mu  sync.Mutex
	all map[kafka.TopicPartition]*fakeFollow
}

type fakeFollow struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (f *fakeFetcher) Follow(to kafka.Follow) {
	f.Unfollow(to.TopicPartition)
	ctx, cancel := context.WithCancel(context.Background())
	w := &fakeFollow{cancel, make(chan struct{})}
	f.mu.Lock()
	f.all[to.TopicPartition] = w
	f.mu.Unlock()
	go func() {
		defer close(w.done)
		read := int32(-1) // epoch of what was delivered last
		for first := true; ; first = false {
			b := f.k.next(ctx, &to, first)
			if b == nil {
				return
			}
			if end, cut := f.k.cutBelow(to, read, b.LeaderEpoch); cut {
				b.Records, b.Position = nil, to.Position
				b.Err = &kafka.TruncatedError{End: end, OffsetOutOfRangeError: kafka.OffsetOutOfRangeError{
					TopicPartition: to.TopicPartition, Position: to.Position, LogStart: b.LogStart, HighWatermark: b.HighWatermark}}
			}
			read = max(read, b.LeaderEpoch)
			to.Deliver(b)
			if b.Err != nil {
				return
			}
			to.Position = b.Position
		}
	}()
}

// cutBelow reports whether the log was cut below a position that was read up
// to in one epoch, now that another one begins.
func (k *fakeKafka) cutBelow(to kafka.Follow, read, next int32) (end int64, cut bool) {
	if read < 0 || next <= read {
		return 0, false
	}
	_, end, err := k.Admin().EpochEnd(context.Background(), to.TopicPartition, read)
	return end, err == nil && end < to.Position
}

func (f *fakeFetcher) Unfollow(tps ...kafka.TopicPartition) {
	for _, tp := range tps {
		f.mu.Lock()
		w := f.all[tp]
		delete(f.all, tp)
		f.mu.Unlock()
		if w != nil {
			w.cancel()
			<-w.done
		}
	}
}

func (f *fakeFetcher) Close() error {
	f.mu.Lock()
	var tps []kafka.TopicPartition
	for tp := range f.all {
		tps = append(tps, tp)
	}
	f.mu.Unlock()
	f.Unfollow(tps...)
	return nil
}

// next waits for a batch at to.Position, which may be empty if it is the first.
func (k *fakeKafka) next(ctx context.Context, to *kafka.Follow, first bool) *kafka.Batch {
	for ctx.Err() == nil && k.up(ctx) == nil {
		b, ok := k.batchAt(to, first)
		changed := k.changed
		k.mu.Unlock()
		if ok {
			return kafka.NewBatch(b, nil)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

func (k *fakeKafka) batchAt(to *kafka.Follow, first bool) (kafka.Batch, bool) {
	b := kafka.Batch{TopicPartition: to.TopicPartition, Position: to.Position, LeaderEpoch: -1}
	t := k.topics[to.Topic]
	switch {
	case t == nil || int(to.Partition) >= len(t.parts):
		b.Err = kafka.ErrUnknownTopic
		return b, true
	case t.id != to.TopicID:
		b.Err = kafka.ErrTopicChanged
		return b, true
	}
	l := t.parts[to.Partition]
	b.LogStart, b.LastStable, b.HighWatermark = l.marks()
	if to.Position < l.start || to.Position > l.end {
		b.Err = &kafka.OffsetOutOfRangeError{TopicPartition: to.TopicPartition, Position: to.Position, LogStart: l.start, HighWatermark: l.end}
		return b, true
	}
	readable := b.LastStable
	if k.limit > 0 {
		readable = min(readable, k.limit)
	}
	for _, rec := range l.records {
		if rec.Offset >= to.Position && rec.Offset < readable && len(b.Records) < k.batch {
			b.Records = append(b.Records, rec)
		}
	}
	for i := range b.Records { // of one epoch
		if l.epochAt(b.Records[i].Offset) != l.epochAt(b.Records[0].Offset) {
			b.Records = b.Records[:i]
			readable = b.Records[i-1].Offset + 1
			break
		}
	}
	k.fetched += len(b.Records)
	if len(b.Records) == k.batch {
		b.Position = b.Records[k.batch-1].Offset + 1
	} else {
		b.Position = readable
	}
	b.Position = max(b.Position, to.Position)
	if b.Position > to.Position {
		b.LeaderEpoch = l.epochAt(b.Position - 1)
	}
	return b, first || b.Position > to.Position
}

// warnings returns a logger and what it has warned of.
func warnings() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zap.WarnLevel)
	return zap.New(core), logs
}

// eventually fails the test if what does not become true in virtual time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(20 * time.Millisecond) // virtual: tests run in a synctest bubble
	}
	t.Fatalf("never: %s", what)
}
