package tester

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// text is a codec for the tests of this package, which stand below the
// engine.
type text struct{}

func (text) Append(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }
func (text) Decode(b []byte) (string, error)             { return string(b), nil }

// number is eight bytes, big-endian.
type number struct{}

func (number) Append(dst []byte, v int64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
}

func (number) Decode(b []byte) (int64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("%d bytes", len(b))
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

var (
	_      codec.Codec[int64] = number{}
	words                     = reka.NewStream("words", text{})
	shouts                    = reka.NewStream("shouts", text{})
	counts                    = reka.GroupTable("toy", number{})
)

// toy is a small engine that keeps the rules of package internal/work: it
// forwards words and counts them in a table. One goroutine owns it.
type toy struct {
	client   *kafka.Client
	builder  storage.Builder
	instance string                      // makes the member static
	on       func(kafka.Record) error    // called for each record
	lost     func(error)                 // told of losses
	assigned func(kafka.Assignment)      // told of assignments
	box      *work.Mailbox[func() error] // the owner's
	member   kafka.Member
	fetcher  kafka.Fetcher
	producer kafka.Producer
	store    storage.Store

	mine    kafka.Assignment
	tasks   map[int32]*toyTask
	dirty   bool
	stopped bool
	started context.Context
}

// toyTask is one partition. Its rows are kept in the store at once.
type toyTask struct {
	table    storage.Table
	position int64
}

func (e *toy) Run(ctx context.Context) error {
	d := e.client.Driver()
	e.box = work.NewMailbox[func() error](d.Work())
	e.tasks = map[int32]*toyTask{}
	e.started = ctx
	stop := context.AfterFunc(ctx, func() { e.box.Put(func() error { e.stopped = true; return nil }) })
	defer stop()
	done := make(chan error, 1) // one result
	work.Go(d.Work(), func() { done <- e.own(d) })
	return <-done
}

func (e *toy) own(d kafka.Driver) (err error) {
	if err := e.open(d); err != nil {
		return err
	}
	defer func() {
		_ = e.fetcher.Close()
		if err == nil {
			err = e.commit()
			_ = e.member.Leave(context.Background())
		}
		_ = e.member.Close()
		_ = e.producer.Close()
		for _, t := range e.tasks {
			_ = t.table.Close()
		}
		_ = e.store.Close()
	}()
	e.member.Start()
	for !e.stopped {
		todo, _ := e.box.Take()
		for _, f := range todo {
			if err := f(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *toy) open(d kafka.Driver) (err error) {
	spec := kafka.TopicSpec{Name: counts.Name(), Partitions: 3, Configs: kafka.ChangelogConfigs(), Require: []string{"cleanup.policy"}}
	if err := e.client.EnsureTopics(context.Background(), spec); err != nil {
		return err
	}
	if e.store, err = e.builder.Open(); err != nil {
		return err
	}
	if e.fetcher, err = d.NewFetcher(kafka.FetcherConfig{}); err != nil {
		return err
	}
	if e.producer, err = d.NewProducer(kafka.ProducerConfig{}); err != nil {
		return err
	}
	e.member, err = d.NewMember(kafka.MemberConfig{
		Group: "toy", Protocol: "toy", InstanceID: e.instance,
		Subscribe: func() kafka.Subscription { return kafka.Subscription{Topics: []string{words.Name()}} },
		Plan:      toyPlan,
		Assigned:  func(a kafka.Assignment) { e.box.Put(func() error { return e.assign(a) }) },
		Lost: func(err error) {
			if e.lost != nil {
				e.lost(err)
			}
			e.box.Put(func() error { return e.assign(kafka.Assignment{}) })
		},
	})
	return err
}

func toyPlan(_ context.Context, ms []kafka.GroupMember) (map[string]kafka.Share, error) {
	ids := []string{}
	for _, m := range ms {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	out := map[string]kafka.Share{}
	for p := range int32(3) {
		id := ids[int(p)%len(ids)]
		s := out[id]
		s.Partitions = append(s.Partitions, kafka.TopicPartition{Topic: words.Name(), Partition: p})
		out[id] = s
	}
	return out, nil
}

func (e *toy) assign(a kafka.Assignment) error {
	if e.assigned != nil {
		e.assigned(a)
	}
	want := map[int32]bool{}
	for _, tp := range a.Partitions {
		want[tp.Partition] = true
	}
	for _, p := range slices.Sorted(maps.Keys(e.tasks)) {
		if !want[p] {
			e.fetcher.Unfollow(kafka.TopicPartition{Topic: words.Name(), Partition: p})
			_ = e.tasks[p].table.Close()
			delete(e.tasks, p)
		}
	}
	e.mine = a
	for _, tp := range a.Partitions {
		if e.tasks[tp.Partition] == nil {
			if err := e.start(tp); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *toy) start(tp kafka.TopicPartition) error {
	offsets, err := e.member.Committed(context.Background(), []kafka.TopicPartition{tp}, true)
	if err != nil {
		return err
	}
	t := &toyTask{position: max(offsets[0].Offset, 0)}
	if t.table, err = e.store.Table("counts", tp.Partition); err != nil {
		return err
	}
	e.tasks[tp.Partition] = t
	e.fetcher.Follow(kafka.Follow{TopicPartition: tp, Position: t.position, Deliver: func(b *kafka.Batch) {
		e.box.Put(func() error { return e.batch(t, b) })
	}})
	return nil
}

func (e *toy) batch(t *toyTask, b *kafka.Batch) error {
	defer b.Release()
	if b.Err != nil {
		return b.Err
	}
	if e.tasks[b.Partition] != t {
		return nil
	}
	for _, r := range b.Records {
		if e.on != nil {
			if err := e.on(r); err != nil {
				return err
			}
		}
		if err := e.count(t, b.Partition, r); err != nil {
			return err
		}
	}
	t.position = b.Position
	if len(b.Records) > 0 && !e.dirty {
		e.dirty = true
		e.client.Driver().Clock().Linger(100*time.Millisecond, func() { e.box.Put(e.commit) })
	}
	return nil
}

func (e *toy) count(t *toyTask, p int32, r kafka.Record) error {
	old, _, err := t.table.Get(nil, r.Key)
	if err != nil {
		return err
	}
	n, _ := number{}.Decode(append(make([]byte, 8-len(old)), old...))
	row, _ := number{}.Append(nil, n+1)
	if err := t.table.Apply([]storage.Row{{Key: r.Key, Value: row}}, nil); err != nil {
		return err
	}
	var failed error
	done := func(run kafka.Run) { failed = run.Err } // called from within Produce here
	e.producer.Produce(kafka.Outgoing{TopicPartition: kafka.TopicPartition{Topic: counts.Name(), Partition: p},
		Records: []kafka.Record{{Key: r.Key, Value: row, Timestamp: r.Timestamp}}, Done: done})
	out := e.client.Partitioner().Partition(r.Value, 3)
	e.producer.Produce(kafka.Outgoing{TopicPartition: kafka.TopicPartition{Topic: shouts.Name(), Partition: out},
		Records: []kafka.Record{{Key: r.Value, Value: []byte(string(r.Value) + "!"), Timestamp: r.Timestamp}}, Done: done})
	return failed
}

func (e *toy) commit() error {
	e.dirty = false
	var offsets []kafka.CommittedOffset
	for _, p := range slices.Sorted(maps.Keys(e.tasks)) {
		offsets = append(offsets, kafka.CommittedOffset{TopicPartition: kafka.TopicPartition{Topic: words.Name(), Partition: p},
			Offset: e.tasks[p].position, LeaderEpoch: -1})
	}
	if len(offsets) == 0 {
		return nil
	}
	return e.member.Commit(context.Background(), e.mine.MemberID, e.mine.Generation, offsets)
}

// startToy starts an instance that runs one toy.
func startToy(tt *Tester, name string, change ...func(*toy)) *Instance {
	Input(tt, words)
	Output(tt, shouts)
	return tt.Start(name, func(i *Instance) ([]reka.Runner, error) {
		e := &toy{client: i.Client(), builder: i.Storage()}
		for _, f := range change {
			f(e)
		}
		return []reka.Runner{e}, nil
	})
}
