package transactions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/systemtest/fakekafka"
)

const partitions = 3

// rig is a topic, a group and a Transactor whose connections can fail.
type rig struct {
	t       *testing.T
	brokers []string
	fake    *fakekafka.Cluster // nil: real Kafka
	client  *kafka.Client
	wire    *wire
	cfg     kafka.TransactorConfig
	tx      kafka.Transactor
	topic   string
	want    []string // what is committed
	mark    int64    // the committed offset
	n       int
	faults  []*kfake.FaultHandle
}

// onBoth runs a scenario on the fake cluster and on real Kafka.
func onBoth(t *testing.T, scenario func(*testing.T, *rig)) {
	t.Run("fake", func(t *testing.T) { scenario(t, onFake(t, 1)) })
	t.Run("real", func(t *testing.T) { scenario(t, newRig(t, realBrokers(t))) })
}

func onFake(t *testing.T, brokers int) *rig {
	c := fakekafka.Start(t, fakekafka.Config{Brokers: brokers})
	r := newRig(t, c.Brokers())
	r.fake = c
	return r
}

func newRig(t *testing.T, brokers []string) *rig {
	name := strings.NewReplacer("/", "-", "_", "-", "#", "-").Replace(t.Name())
	r := &rig{t: t, brokers: brokers, wire: &wire{}, mark: -1, topic: fmt.Sprint(name, "-", time.Now().UnixNano())}
	r.client = r.newClient(r.wire)
	ctx := r.ctx(30 * time.Second)
	if err := r.client.EnsureTopics(ctx, kafka.TopicSpec{Name: r.topic, Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	r.cfg = kafka.TransactorConfig{ID: r.topic}
	r.tx = r.newTransactor(r.client, r.cfg)
	r.init(false)
	return r
}

func (r *rig) newClient(w *wire) *kafka.Client {
	cfg := sarama.NewConfig()
	cfg.ClientID = "reka"
	if w != nil {
		cfg.Net.Proxy.Enable, cfg.Net.Proxy.Dialer = true, w
	}
	c, err := kafka.NewClient(r.brokers, kafka.WithSarama(cfg))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			r.t.Errorf("close client: %v", err)
		}
	})
	return c
}

func (r *rig) newTransactor(c *kafka.Client, cfg kafka.TransactorConfig) kafka.Transactor {
	r.t.Helper()
	m, ok := c.Driver().(interface {
		NewTransactor(kafka.TransactorConfig) (kafka.Transactor, error)
	})
	if !ok {
		r.t.Fatal("the driver makes no transactors")
	}
	tx, err := m.NewTransactor(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return tx
}

func (r *rig) ctx(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *rig) init(own bool) {
	r.t.Helper()
	if err := r.tx.Init(r.ctx(20*time.Second), own); err != nil {
		r.t.Fatalf("init: %v", err)
	}
	if r.tx.InDoubt() {
		r.t.Fatal("in doubt after Init")
	}
}

// attempt is one transaction of a record in each partition and an offset.
type attempt struct {
	value   string
	mu      sync.Mutex
	left    int
	errs    []error
	done    chan struct{}
	offsets error
}

// write begins a transaction and adds everything to it.
func (r *rig) write(tx kafka.Transactor) *attempt {
	a := r.records(tx)
	a.offsets = r.offsets(tx)
	return a
}

func (r *rig) records(tx kafka.Transactor) *attempt {
	r.n++
	a := &attempt{value: fmt.Sprint("v", r.n), left: partitions, done: make(chan struct{})}
	tx.Begin()
	for p := range int32(partitions) {
		r.record(tx, a, p)
	}
	return a
}

func (r *rig) record(tx kafka.Transactor, a *attempt, p int32) {
	tx.Produce(kafka.Outgoing{
		TopicPartition: kafka.TopicPartition{Topic: r.topic, Partition: p},
		Records:        []kafka.Record{{Key: []byte("k"), Value: []byte(a.value), Timestamp: -1}},
		Done: func(run kafka.Run) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if run.Err != nil {
				a.errs = append(a.errs, run.Err)
			}
			if a.left--; a.left == 0 {
				close(a.done)
			}
		},
	})
}

func (r *rig) committer() kafka.Committer { return kafka.Committer{Group: r.topic, Generation: -1} }

func (r *rig) offsets(tx kafka.Transactor) error {
	return tx.Offsets(r.ctx(20*time.Second), r.committer(), []kafka.CommittedOffset{
		{TopicPartition: kafka.TopicPartition{Topic: r.topic}, Offset: int64(r.n), LeaderEpoch: -1, Metadata: fmt.Sprint("m", r.n)},
	})
}

// err waits for all records and returns the first error of the transaction
// so far.
func (a *attempt) err(t *testing.T) error {
	t.Helper()
	select {
	case <-a.done:
	case <-time.After(20 * time.Second):
		t.Fatal("records without a fate")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(append(a.errs, a.offsets)...)
}

// committed notes that the transaction of a was committed.
func (r *rig) committed(a *attempt) {
	for p := range partitions {
		r.want = append(r.want, fmt.Sprint(p, ":", a.value))
	}
	r.mark = int64(r.n)
}

// commit runs a transaction that must succeed.
func (r *rig) commit() {
	r.t.Helper()
	a := r.write(r.tx)
	if err := r.tx.End(r.ctx(20*time.Second), true); err != nil {
		r.t.Fatalf("commit: %v (%v)", err, a.err(r.t))
	}
	if err := a.err(r.t); err != nil {
		r.t.Fatal(err)
	}
	r.committed(a)
}

// verify compares what a reader of committed records, and the group, see.
func (r *rig) verify() {
	r.t.Helper()
	c := r.newClient(nil)
	got := r.read(c)
	slices.Sort(r.want)
	slices.Sort(got)
	if !slices.Equal(got, r.want) {
		r.t.Errorf("committed records\n got %v\nwant %v", got, r.want)
	}
	if o := r.committedOffset(); o.Offset != r.mark || r.mark >= 0 && o.Metadata != fmt.Sprint("m", r.mark) {
		r.t.Errorf("committed offset %d %q, want %d", o.Offset, o.Metadata, r.mark)
	}
}

// committedOffset is the group's, when no transaction is open.
func (r *rig) committedOffset() kafka.CommittedOffset {
	r.t.Helper()
	m, err := r.newClient(nil).Driver().NewMember(kafka.MemberConfig{
		Group: r.topic, Protocol: "none", Lost: func(error) {}, Assigned: func(kafka.Assignment) {},
		Subscribe: func() kafka.Subscription { return kafka.Subscription{} },
		Plan:      func(context.Context, []kafka.GroupMember) (map[string]kafka.Share, error) { return nil, nil },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	offsets, err := m.Committed(r.ctx(20*time.Second), []kafka.TopicPartition{{Topic: r.topic}}, true)
	if err != nil {
		r.t.Fatal(err)
	}
	return offsets[0]
}

// read returns the committed records, and fails if a transaction is open.
func (r *rig) read(c *kafka.Client) (got []string) {
	r.t.Helper()
	var tps []kafka.TopicPartition
	for p := range int32(partitions) {
		tps = append(tps, kafka.TopicPartition{Topic: r.topic, Partition: p})
	}
	ctx := r.ctx(20 * time.Second)
	ends, err := c.Driver().Admin().Offsets(ctx, kafka.HighWatermark, tps...)
	if err != nil {
		r.t.Fatal(err)
	}
	f, err := c.Driver().NewFetcher(kafka.FetcherConfig{MaxWait: 50 * time.Millisecond})
	if err != nil {
		r.t.Fatal(err)
	}
	batches := make(chan *kafka.Batch, 1000) // more than will come
	left := 0
	for _, tp := range tps {
		if ends[tp] > 0 {
			left++
			f.Follow(kafka.Follow{TopicPartition: tp, Deliver: func(b *kafka.Batch) { batches <- b }})
		}
	}
	for left > 0 {
		select {
		case b := <-batches:
			for _, rec := range b.Records {
				got = append(got, fmt.Sprint(b.Partition, ":", string(rec.Value)))
			}
			if b.Err != nil {
				r.t.Fatal(b.Err)
			}
			if b.Position >= ends[b.TopicPartition] {
				left--
				f.Unfollow(b.TopicPartition)
			}
			b.Release()
		case <-ctx.Done():
			r.t.Fatal("a transaction is left open")
		}
	}
	if err := f.Close(); err != nil {
		r.t.Fatal(err)
	}
	return got
}
