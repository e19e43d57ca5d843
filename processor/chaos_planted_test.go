package processor_test

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/tester"
)

// planted is a fault between the engine and its surroundings: what a weaker
// engine, or a broker that breaks a rule, would do. It lies in the driver, so
// that the engine knows nothing of it. What is nil is as it should be.
type planted struct {
	name  string
	scene string // in which it shows
	rare  bool   // random schedules find it too seldom
	from  int64  // first seed of the schedules that are to find it

	fetcher   func(*kafka.FetcherConfig)
	dirty     bool // stable reads wait for nothing
	agrees    bool // a second look at offsets sees what the first one saw
	committer func(*kafka.Committer)
	offsets   bool                           // are committed at once, outside of the transaction
	judged    bool                           // epochs are judged by their offsets, not by their marks
	end       func(error) error              // what became of an end
	certain   bool                           // no request is ever in doubt
	ends      func(*plantedAdmin) kafka.Mark // asked for instead of the high watermark
	bound     func(topic string, end int64) int64
	disk      func(storage.Builder) storage.Builder
}

// plant returns what an instance works with.
func (c *chaos) plant(i *tester.Instance, disk storage.Builder) (*kafka.Client, storage.Builder, error) {
	if c.fault == nil {
		return i.Client(), i.Guard(disk), nil
	}
	client, err := c.fault.client(i)
	if disk = i.Guard(disk); c.fault.disk != nil {
		disk = c.fault.disk(disk)
	}
	return client, disk, err
}

// client returns an instance's client with the fault in it.
func (f *planted) client(i *tester.Instance) (*kafka.Client, error) {
	d := &plantedDriver{Driver: i.Client().Driver(), f: f, marks: map[kafka.TopicPartition]kafka.CommittedOffset{}, stable: map[kafka.TopicPartition]kafka.CommittedOffset{}}
	return kafka.NewDriverClient(d, kafka.WithPartitioner(i.Client().Partitioner()))
}

type plantedDriver struct {
	kafka.Driver
	f *planted

	mu     sync.Mutex
	joined *plantedMember                                 // guarded by mu; the last one made
	marks  map[kafka.TopicPartition]kafka.CommittedOffset // guarded by mu; the last ones sent
	stable map[kafka.TopicPartition]kafka.CommittedOffset // guarded by mu; the last ones read as stable
}

func (d *plantedDriver) NewFetcher(c kafka.FetcherConfig) (kafka.Fetcher, error) {
	if d.f.fetcher != nil {
		d.f.fetcher(&c)
	}
	return d.Driver.NewFetcher(c)
}

func (d *plantedDriver) NewMember(c kafka.MemberConfig) (kafka.Member, error) {
	inner, err := d.Driver.NewMember(c)
	m := &plantedMember{Member: inner, d: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.joined = m
	return m, err
}

func (d *plantedDriver) NewTransactor(c kafka.TransactorConfig) (kafka.Transactor, error) {
	inner, err := d.Driver.NewTransactor(c)
	return &plantedTransactor{inner, d}, err
}

func (d *plantedDriver) Admin() kafka.Admin { return &plantedAdmin{d.Driver.Admin(), d} }

type plantedMember struct {
	kafka.Member
	d *plantedDriver
}

func (m *plantedMember) Committed(ctx context.Context, tps []kafka.TopicPartition, stable bool) ([]kafka.CommittedOffset, error) {
	got, err := m.Member.Committed(ctx, tps, stable && !m.d.f.dirty)
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	for i := range got {
		if stable {
			m.d.stable[got[i].TopicPartition] = got[i]
		} else if first, ok := m.d.stable[got[i].TopicPartition]; ok && m.d.f.agrees {
			got[i] = first
		}
		if sent, ok := m.d.marks[got[i].TopicPartition]; ok && m.d.f.judged && sent.Offset == got[i].Offset {
			got[i].Metadata = sent.Metadata
		}
	}
	return got, err
}

type plantedTransactor struct {
	kafka.Transactor
	d *plantedDriver
}

func (t *plantedTransactor) Offsets(ctx context.Context, by kafka.Committer, offsets []kafka.CommittedOffset) error {
	if t.d.f.committer != nil {
		t.d.f.committer(&by)
	}
	t.d.mu.Lock()
	for _, o := range offsets {
		t.d.marks[o.TopicPartition] = o
	}
	t.d.mu.Unlock()
	if t.d.f.offsets {
		t.d.mu.Lock()
		m := t.d.joined
		t.d.mu.Unlock()
		if err := m.Member.Commit(ctx, by.MemberID, by.Generation, offsets); err != nil {
			return errors.Join(kafka.ErrAbortable, err)
		}
		return nil
	}
	return t.Transactor.Offsets(ctx, by, offsets)
}

func (t *plantedTransactor) End(ctx context.Context, commit bool) error {
	err := t.Transactor.End(ctx, commit)
	if commit && t.d.f.end != nil {
		return t.d.f.end(err)
	}
	return err
}

func (t *plantedTransactor) InDoubt() bool { return !t.d.f.certain && t.Transactor.InDoubt() }

type plantedAdmin struct {
	kafka.Admin
	d *plantedDriver
}

// ownLog reports whether a topic is written by the group itself.
func ownLog(topic string) bool {
	return strings.HasSuffix(topic, "-table") || strings.HasSuffix(topic, "-changelog")
}

func (a *plantedAdmin) Offsets(ctx context.Context, at kafka.Mark, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	if at == kafka.HighWatermark && len(tps) > 0 && ownLog(tps[0].Topic) && a.d.f.ends != nil {
		at = a.d.f.ends(a)
	}
	got, err := a.Admin.Offsets(ctx, at, tps...)
	if at != kafka.HighWatermark || err != nil {
		return got, err
	}
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	for tp, end := range got {
		if !ownLog(tp.Topic) {
			continue
		}
		if a.d.f.bound != nil && a.d.joined != nil {
			got[tp] = a.d.f.bound(tp.Topic, end)
		}
	}
	return got, nil
}

// plantedDisk is a storage whose tables apply rows in their own way. It is
// outside of the instance's guard: each Apply of apply is a call of its own.
type plantedDisk struct {
	storage.Builder
	apply func(storage.Table, []storage.Row, *storage.Checkpoint) error
}

func (d *plantedDisk) Open() (storage.Store, error) {
	s, err := d.Builder.Open()
	return &plantedStore{s, d}, err
}

type plantedStore struct {
	storage.Store
	d *plantedDisk
}

func (s *plantedStore) Table(name string, partition int32) (storage.Table, error) {
	t, err := s.Store.Table(name, partition)
	return &plantedTable{t, s.d}, err
}

type plantedTable struct {
	storage.Table
	d *plantedDisk
}

func (t *plantedTable) Apply(rows []storage.Row, cp *storage.Checkpoint) error {
	return t.d.apply(t.Table, rows, cp)
}
