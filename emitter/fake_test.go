package emitter

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// fakeDriver is a broker of one topic that can be stopped. What it has not
// been taught panics, by the nil Driver in it.
type fakeDriver struct {
	kafka.Driver

	mu         sync.Mutex
	wake       *sync.Cond // up, lookups or closing changed
	up         bool
	partitions int32 // 0: the topic does not exist
	maxBytes   int   // of one record; told only if tell
	tell       bool
	describe   error // what Admin.Topics fails with
	refuse     error // what every run fails with
	logs       map[int32][]kafka.Record
	lookups    int
	producers  int
	produced   int  // calls of Produce
	discard    bool // acknowledge and forget
}

func newFakeDriver(partitions int32) *fakeDriver {
	d := &fakeDriver{up: true, partitions: partitions, logs: map[int32][]kafka.Record{}}
	d.wake = sync.NewCond(&d.mu)
	return d
}

func (d *fakeDriver) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	d.wake.Broadcast()
}

// get reads a counter.
func (d *fakeDriver) get(n *int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *n
}

func (d *fakeDriver) Clock() kafka.Clock { return kafka.SystemClock() }
func (d *fakeDriver) Work() work.Counter { return nil }
func (d *fakeDriver) Admin() kafka.Admin { return fakeAdmin{d: d} }
func (d *fakeDriver) Close() error       { return nil }

func (d *fakeDriver) NewProducer(c kafka.ProducerConfig) (kafka.Producer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.producers++
	p := &fakeProducer{d: d, cfg: c, ended: make(chan struct{})}
	go p.run() // ends with Close, which waits for it
	return p, nil
}

// log returns the values of one partition, as numbers.
func (d *fakeDriver) log(p int32) []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []int64
	for _, r := range d.logs[p] {
		n, _ := strconv.ParseInt(string(r.Value), 10, 64)
		out = append(out, n)
	}
	return out
}

func (d *fakeDriver) total() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.logs {
		n += len(l)
	}
	return n
}

type fakeAdmin struct {
	kafka.Admin
	d *fakeDriver
}

func (a fakeAdmin) Topics(ctx context.Context, names ...string) (map[string]kafka.Topic, error) {
	stop := context.AfterFunc(ctx, func() { a.d.set(func() {}) })
	defer stop()
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	a.d.lookups++
	for !a.d.up && ctx.Err() == nil {
		a.d.wake.Wait()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if a.d.describe != nil {
		return nil, a.d.describe
	}
	found := map[string]kafka.Topic{}
	if a.d.partitions > 0 {
		found[names[0]] = kafka.Topic{Name: names[0], Partitions: a.d.partitions}
	}
	return found, nil
}

func (a fakeAdmin) Configs(context.Context, string) (map[string]string, error) {
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	if !a.d.tell {
		return nil, kafka.ErrNotAuthorized
	}
	return map[string]string{"max.message.bytes": strconv.Itoa(a.d.maxBytes)}, nil
}

// fakeProducer acknowledges in the order of Produce, one Outgoing after the
// other, while the broker is up.
type fakeProducer struct {
	d     *fakeDriver
	cfg   kafka.ProducerConfig
	ended chan struct{}

	// Guarded by d.mu.
	queue  []queued
	closed bool
}

type queued struct {
	kafka.Outgoing
	deadline time.Time
}

func (p *fakeProducer) Produce(o kafka.Outgoing) {
	time.AfterFunc(p.cfg.DeliveryTimeout, func() { p.d.set(func() {}) })
	p.d.set(func() {
		p.d.produced++
		p.queue = append(p.queue, queued{o, time.Now().Add(p.cfg.DeliveryTimeout)})
	})
}

func (p *fakeProducer) Close() error {
	p.d.set(func() { p.closed = true })
	<-p.ended
	return nil
}

func (p *fakeProducer) run() {
	defer close(p.ended)
	for {
		p.d.mu.Lock()
		for !p.closed && (len(p.queue) == 0 || !p.d.up && time.Now().Before(p.queue[0].deadline)) {
			p.d.wake.Wait()
		}
		if p.closed {
			queue := p.queue
			p.d.mu.Unlock()
			for _, o := range queue {
				o.Done(kafka.Run{To: len(o.Records), Base: -1, Err: kafka.ErrClosed})
			}
			return
		}
		o := p.queue[0]
		p.queue = p.queue[1:]
		runs := p.write(o.Outgoing)
		p.d.mu.Unlock()
		for _, r := range runs {
			o.Done(r)
		}
	}
}

// write appends what the broker accepts. REQUIRES: d.mu.
func (p *fakeProducer) write(o kafka.Outgoing) []kafka.Run {
	all := kafka.Run{To: len(o.Records), Base: -1}
	switch {
	case !p.d.up:
		all.Err = kafka.ErrDeliveryTimeout
		return []kafka.Run{all}
	case p.d.refuse != nil:
		all.Err = p.d.refuse
		return []kafka.Run{all}
	case o.Partition >= p.d.partitions:
		all.Err = kafka.ErrUnknownTopic
		return []kafka.Run{all}
	}
	if p.d.discard {
		all.Base = 0
		return []kafka.Run{all}
	}
	var runs []kafka.Run
	for i := range o.Records {
		r := o.Records[i]
		run := kafka.Run{From: i, To: i + 1, Base: -1}
		if p.d.maxBytes > 0 && r.Size() > p.d.maxBytes {
			run.Err = kafka.ErrTooLarge
		} else {
			run.Base = int64(len(p.d.logs[o.Partition]))
			r.Key, r.Value = copyOf(r.Key), copyOf(r.Value)
			p.d.logs[o.Partition] = append(p.d.logs[o.Partition], r)
		}
		runs = append(runs, run)
	}
	return runs
}

func copyOf(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// text encodes numbers as decimal text. Its Encode can be made to fail.
type text struct{ fail error }

func (c text) Append(dst []byte, n int64) ([]byte, error) {
	if c.fail != nil {
		return nil, c.fail
	}
	return strconv.AppendInt(dst, n, 10), nil
}

func (text) Decode(b []byte) (int64, error) { return strconv.ParseInt(string(b), 10, 64) }

// raw passes bytes on.
type raw struct{}

func (raw) Append(dst, v []byte) ([]byte, error) { return append(dst, v...), nil }
func (raw) Decode(b []byte) ([]byte, error)      { return copyOf(b), nil }

var clicks = reka.NewStream("clicks", text{})

func clientOf(t testing.TB, d *fakeDriver) *kafka.Client {
	t.Helper()
	c, err := kafka.NewDriverClient(d, kafka.WithLogger(zap.NewNop()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newEmitter(t testing.TB, d *fakeDriver, opts ...Option) *Emitter[int64] {
	t.Helper()
	e, err := New(clientOf(t, d), clicks, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// closeNow ends an emitter whose broker may be gone.
func closeNow[T any](e *Emitter[T]) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.Close(ctx) // the test has looked at the results
}

func mustEmit(t testing.TB, e *Emitter[int64], key string, v int64, o ...reka.EmitOption) *Result {
	t.Helper()
	r, err := e.Emit(context.Background(), key, v, o...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
