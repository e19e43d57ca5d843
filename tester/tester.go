package tester

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/rekastream/reka/kafka"
)

// Tester is a Kafka in memory with a clock of its own, for one test. Its
// methods, and those of instances and handles, are for the goroutine of the
// test; what fails ends the test there.
type Tester struct {
	// Fixed after New.
	tb     testing.TB
	w      *world
	log    *zap.Logger
	client *kafka.Client
	self   *incarnation // the test's own process

	// Owned by the test's goroutine.
	patience  time.Duration
	instances []*Instance
	turn      int32 // partition of the next record without a key
}

// Option is an option of New.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	patience    time.Duration
	partitions  int32
	start       time.Time
	log         *zap.Logger
	partitioner kafka.Partitioner
}

// WithPartitions sets how many partitions topics get that do not say so: the
// ones that handles create, and those created with a count of 0. Default 3.
func WithPartitions(n int32) Option { return optionFunc(func(c *config) { c.partitions = n }) }

// WithStartTime sets the time at which the clock stands first. Default
// 2024-01-01 00:00:00 UTC.
func WithStartTime(t time.Time) Option { return optionFunc(func(c *config) { c.start = t }) }

// WithLogger sets where the code under test logs. Default: warnings and
// errors to the log of the test.
func WithLogger(l *zap.Logger) Option { return optionFunc(func(c *config) { c.log = l }) }

// WithPartitioner sets how clients and handles place keys. Default:
// kafka.Murmur2.
func WithPartitioner(p kafka.Partitioner) Option {
	return optionFunc(func(c *config) { c.partitioner = p })
}

// WithPatience sets how long, in real time, the tester waits for the code
// under test to come to rest or to an end. Default 10 s.
func WithPatience(d time.Duration) Option { return optionFunc(func(c *config) { c.patience = d }) }

// defaultPatience is how long, in real time, the tester waits for the code
// under test to come to rest or to an end.
const defaultPatience = 10 * time.Second

// New returns a Tester for tb. Everything that is started with it is stopped
// when the test ends, and what then went wrong fails the test: errors of
// instances that nobody asked for with Err or Stop, and goroutines left over.
func New(tb testing.TB, opts ...Option) *Tester {
	tb.Helper()
	c := config{patience: defaultPatience, partitions: 3, start: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), partitioner: kafka.Murmur2()}
	for _, o := range opts {
		o.apply(&c)
	}
	if c.log == nil {
		c.log = zaptest.NewLogger(tb, zaptest.Level(zap.WarnLevel))
	}
	if c.partitions <= 0 || c.partitioner == nil {
		tb.Fatalf("tester: WithPartitions(%d), WithPartitioner(%v): want at least one partition and a partitioner", c.partitions, c.partitioner)
	}
	t := &Tester{tb: tb, log: c.log, patience: c.patience, w: newWorld(c.start, defaults{c.partitions, c.partitioner})}
	t.self = t.w.newIncarnation("test", 1)
	var err error
	if t.client, err = t.newClient(t.self); err != nil {
		tb.Fatalf("tester: %v", err)
	}
	t.enter()
	tb.Cleanup(t.close)
	return t
}

func (t *Tester) newClient(d kafka.Driver) (*kafka.Client, error) {
	return kafka.NewDriverClient(d, kafka.WithLogger(t.log), kafka.WithPartitioner(t.w.defaults.partitioner))
}

// enter remembers the goroutine that drives the test.
func (t *Tester) enter() {
	id := goroutine()
	t.w.mu.Lock()
	t.w.driver = id
	t.w.mu.Unlock()
}

// close stops everything, in reverse order of starting.
func (t *Tester) close() {
	t.enter()
	for i := len(t.instances) - 1; i >= 0; i-- {
		t.instances[i].end()
		t.instances[i].report()
	}
	_ = t.client.Close() // never fails
	t.w.close()
}

// Client returns a client for what the test itself makes: an emitter, say.
// It belongs to a process of its own that never crashes.
func (t *Tester) Client() *kafka.Client { return t.client }

// Now returns the time of the virtual clock.
func (t *Tester) Now() time.Time {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.w.clock.now
}

// Settle lets everything happen that can happen without time passing: until
// all is delivered, processed and committed. It fails the test if that takes
// longer than its patience in real time: ten seconds, if WithPatience says nothing.
func (t *Tester) Settle() {
	t.tb.Helper()
	t.enter()
	t.await(t.w.settle(), "did not settle")
}

// Advance moves the clock by d, through every timer that falls due on the
// way, in order, and settles before, after and between.
func (t *Tester) Advance(d time.Duration) {
	t.tb.Helper()
	t.enter()
	t.await(t.w.settle(), "did not settle")
	t.await(t.w.move(t.Now().Add(d)), fmt.Sprintf("did not come to rest while time moved by %s", d))
}

// await waits for c, in real time, and fails the test if it takes too long.
func (t *Tester) await(c <-chan struct{}, what string) {
	t.tb.Helper()
	deadline := time.NewTimer(t.patience)
	defer deadline.Stop()
	select {
	case <-c:
	case <-deadline.C:
		t.tb.Fatalf("tester: %s within %s of real time\n%s", what, t.patience, t.w.report())
	}
	if n := t.w.running.Load(); n < 0 {
		t.tb.Fatalf("tester: %d goroutines are parked that were never counted: see package internal/work", -n)
	}
}

// report says what still runs.
func (w *world) report() string {
	w.mu.Lock()
	s := fmt.Sprintf("time %s, %d goroutines running, %d of them just started, %d waiting in a call, %d timers, %d lingers\n",
		w.clock.now.Format(time.RFC3339Nano), w.running.Load(), len(w.runners), len(w.waiters), len(w.clock.timers), len(w.clock.lingers))
	for _, inc := range w.incs {
		s += fmt.Sprintf("%s: %d running, paused %t\n", inc.label(), inc.work.n.Load(), inc.paused)
	}
	if f := w.nextDelivery(); f != nil {
		s += fmt.Sprintf("next: a batch of %s from %d for %s\n", f.TopicPartition, f.Position, f.f.inc.name)
	}
	for _, g := range w.sortedGroups() {
		s += fmt.Sprintf("group %s: %s, generation %d, %d members, %d messages\n", g.name, g.state, g.generation, len(g.members), len(g.out))
	}
	w.mu.Unlock()
	return s + "\n" + string(dump())
}

// CreateTopic creates a topic; 0 partitions stand for the default. Settings
// are pairs of name and value; those not given are a broker's defaults.
func (t *Tester) CreateTopic(name string, partitions int32, configs ...string) {
	t.tb.Helper()
	t.enter()
	if len(configs)%2 != 0 {
		t.tb.Fatalf("tester: topic %s: settings come in pairs", name)
	}
	spec := kafka.TopicSpec{Name: name, Partitions: partitions, Configs: map[string]string{}}
	for i := 0; i+1 < len(configs); i += 2 {
		spec.Configs[configs[i]] = configs[i+1]
	}
	t.create(spec)
}

func (t *Tester) create(spec kafka.TopicSpec) {
	t.tb.Helper()
	t.w.mu.Lock()
	err := t.w.createTopic(spec)
	t.w.mu.Unlock()
	if err != nil {
		t.tb.Fatalf("tester: %v", err)
	}
}

// ensure creates a topic if there is none of that name.
func (t *Tester) ensure(spec kafka.TopicSpec) {
	t.tb.Helper()
	t.w.mu.Lock()
	there := t.w.topics[spec.Name] != nil
	t.w.mu.Unlock()
	if !there {
		t.create(spec)
	}
}

// Compact runs the log cleaner over a topic: of each key the last record
// stays. It heeds min.compaction.lag.ms and delete.retention.ms by the
// virtual clock, keeps offsets and log start, and never touches the last
// record of a partition.
func (t *Tester) Compact(topic string) {
	t.tb.Helper()
	t.enter()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	tp := t.w.topics[topic]
	if tp == nil {
		t.tb.Fatalf("tester: compact %s: %v", topic, kafka.ErrUnknownTopic)
	}
	for _, l := range tp.logs {
		l.compact(tp, t.w.clock.now.UnixMilli())
	}
}

// DeleteRecords moves the log start of a partition up to an offset, as
// retention does.
func (t *Tester) DeleteRecords(topic string, partition int32, before int64) {
	t.tb.Helper()
	t.enter()
	tp := kafka.TopicPartition{Topic: topic, Partition: partition}
	if err := t.client.Driver().Admin().DeleteRecords(context.Background(), map[kafka.TopicPartition]int64{tp: before}); err != nil {
		t.tb.Fatalf("tester: %v", err)
	}
}

// DeleteTopic deletes a topic. Created again under the same name it is
// another one.
func (t *Tester) DeleteTopic(topic string) {
	t.tb.Helper()
	t.enter()
	if err := t.client.Driver().Admin().DeleteTopics(context.Background(), topic); err != nil {
		t.tb.Fatalf("tester: %v", err)
	}
}

// WriteControl writes a control record, as the end of a transaction does: it
// takes an offset and is delivered to nobody.
func (t *Tester) WriteControl(topic string, partition int32) {
	t.tb.Helper()
	t.enter()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	_, l := t.w.log(kafka.TopicPartition{Topic: topic, Partition: partition})
	if l == nil {
		t.tb.Fatalf("tester: %s/%d: %v", topic, partition, kafka.ErrUnknownTopic)
	}
	t.w.appendControl(l)
}

// Committed returns the committed offset of a group, next to read; -1 if
// there is none. It settles first.
func (t *Tester) Committed(group, topic string, partition int32) int64 {
	t.tb.Helper()
	t.Settle()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.w.group(group).committed([]kafka.TopicPartition{{Topic: topic, Partition: partition}})[0].Offset
}

// Rebalance makes a group rebalance, as if a member had asked for it.
func (t *Tester) Rebalance(group string) {
	t.enter()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if g := t.w.group(group); g.state == stable || g.state == completing {
		g.prepare()
	}
}

// Expel throws an instance's members out of a group, as if their sessions
// had expired. They learn of it by their next heartbeat, and join again.
func (t *Tester) Expel(group string, inst *Instance) {
	t.enter()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	g := t.w.group(group)
	for _, m := range append([]*groupMember(nil), g.members...) {
		if m.m.inc == inst.inc {
			g.remove(m, kafka.ErrUnknownMember)
		}
	}
}
