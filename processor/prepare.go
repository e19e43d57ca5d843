package processor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// prepare opens the store, checks the topics, begins to load lookups, and
// makes everything that tasks need. The member joins when the lookups are
// loaded.
func (s *session) prepare(ctx context.Context) error {
	p, g := s.p, &s.p.graph.spec
	process, err := s.openStore()
	if err != nil {
		return err
	}
	if s.spec, err = p.checkTopics(ctx); err != nil {
		return err
	}
	driver := p.client.Driver()
	fetch := kafka.FetcherConfig{PartitionBytes: p.cfg.tuning.FetchBytes}
	if s.fetcher, err = driver.NewFetcher(fetch); err != nil {
		return err
	}
	if s.restorer, err = driver.NewFetcher(kafka.FetcherConfig{PartitionBytes: 4 << 20}); err != nil {
		return err
	}
	if s.producer, err = driver.NewProducer(kafka.ProducerConfig{}); err != nil {
		return err
	}
	s.disk, s.errands = task.NewWorker(driver.Work()), task.NewWorker(driver.Work())
	if p.cfg.guarantee != WithoutTransactions {
		if err := s.openTransactor(ctx, process); err != nil {
			return err
		}
	}
	s.lane = task.NewLane(task.LaneEnv{
		Clock: driver.Clock(), Work: driver.Work(), Log: p.log, Producer: s.producer,
		Transactor: s.txn, Group: g.Group, ProcessID: process, Timeout: p.cfg.transaction,
	})
	s.env = &task.Env{
		Graph: g, Clock: driver.Clock(), Work: driver.Work(), Log: p.log,
		Fetcher: s.fetcher, Restorer: s.restorer, Producer: s.producer, Place: p.client.Partitioner(),
		Store: s.store, Lane: s.lane, Disk: s.disk, Fingerprint: g.Fingerprint(),
		Epochs:  replica.NewEpochs(driver),
		Outputs: s.spec.targets(g),
		Event:   func(e task.Event) { s.box.Put(message{kind: msgEvent, event: e}) },
		Purge:   s.purge,
		Settings: task.Settings{
			CommitInterval: p.cfg.commit, EpochBytes: p.cfg.tuning.EpochBytes, RecordBytes: p.cfg.tuning.RecordBytes, Unfinished: p.cfg.tuning.Unfinished,
			CacheBytes: p.cfg.tuning.CacheBytes, FlushBytes: p.cfg.tuning.FlushBytes, FlushAge: p.cfg.tuning.FlushAge, ProcessID: process,
			HoldOutputs: p.cfg.guarantee == ExactlyOnce,
		},
	}
	part := &p.graph.part
	s.env.Holds, s.env.Before, s.env.After, s.env.Wall, s.env.Counters, s.env.Decodes, s.env.Begin = part.Holds, part.Before, part.After, part.Wall, part.Counters, part.Decodes, part.Begin
	s.env.Attach = func(r *task.Record) { r.Attached = newContext(p.graph, r) }
	for _, h := range part.Joins {
		if h == nil {
			s.env.Joins = append(s.env.Joins, nil)
			continue
		}
		s.env.Joins = append(s.env.Joins, p.handler(h, nil))
	}
	var where *placement
	if g.Stateful() {
		where = &placement{place: p.client.Partitioner(), partitions: s.spec.partitions, log: p.log}
	}
	for _, h := range p.graph.inputs {
		s.env.Inputs = append(s.env.Inputs, p.handler(h, where))
	}
	for _, h := range p.graph.visitors {
		s.env.Visitors = append(s.env.Visitors, p.handler(h, nil))
	}
	if !p.cfg.dynamic && s.store != nil {
		s.instance = process
	}
	if s.member, err = driver.NewMember(s.memberConfig(s.instance)); err != nil {
		return err
	}
	return s.startMirrors()
}

// handler makes what a task calls of a callback: middleware around it, and
// the context that handles act through. where, if not nil, looks at some of
// the records.
func (p *Processor) handler(h handler, where *placement) task.Handler {
	for i := len(p.cfg.middleware) - 1; i >= 0; i-- {
		m, next := p.cfg.middleware[i], h
		h = func(ctx *Context) error { return m(ctx, next) }
	}
	return func(r *task.Record) error {
		ctx, ok := r.Attached.(*Context)
		if !ok {
			ctx = newContext(p.graph, r)
			r.Attached = ctx
		}
		if where != nil && ctx.seen&lookEvery == 0 {
			where.look(r)
		}
		ctx.seen++
		return h(ctx)
	}
}

// openStore opens the store, if the graph keeps anything, and returns the
// process id.
func (s *session) openStore() (process string, err error) {
	var id [12]byte
	if _, err := rand.Read(id[:]); err != nil {
		return "", fmt.Errorf("process id: %w", err)
	}
	process = hex.EncodeToString(id[:])
	if s.p.cfg.storage == nil {
		return process, nil
	}
	if s.store, err = s.p.cfg.storage.Open(); err != nil {
		return "", err
	}
	process = s.store.ProcessID()
	s.release, err = claimGroup(s.p.graph.spec.Group, process)
	return process, err
}

// running are the groups that this process runs, by state.
var running = struct {
	mu  sync.Mutex
	all map[[2]string]bool // guarded by mu
}{all: map[[2]string]bool{}}

// claimGroup refuses a second processor of one group on one state.
func claimGroup(group, process string) (release func(), err error) {
	key := [2]string{group, process}
	running.mu.Lock()
	defer running.mu.Unlock()
	if running.all[key] {
		return func() {}, ErrGroupBusy
	}
	running.all[key] = true
	return func() {
		running.mu.Lock()
		defer running.mu.Unlock()
		delete(running.all, key)
	}, nil
}

// startMirrors runs the copies of looked up tables. Without any the member
// joins at once.
func (s *session) startMirrors() error {
	p := s.p
	for _, l := range p.graph.spec.Lookups {
		var loaded sync.Once
		m, err := replica.NewMirror(replica.MirrorConfig{
			Client: p.client, Topic: l.Topic, Store: p.cfg.storage,
			StoreName:  p.graph.spec.Group + "/lookup:" + l.Topic,
			CacheBytes: p.cfg.tuning.CacheBytes, FlushBytes: p.cfg.tuning.FlushBytes, FlushAge: p.cfg.tuning.FlushAge,
			OnState: func(state replica.MirrorState) {
				if state == replica.MirrorReady {
					loaded.Do(func() { s.box.Put(message{kind: msgLoaded}) })
				}
			},
		})
		if err != nil {
			return err
		}
		s.mirrors = append(s.mirrors, m)
	}
	s.env.Lookups = s.mirrors
	for i, m := range s.mirrors {
		s.helpers++
		work.Go(s.env.Work, func() { // ends with s.ctx; giveBack waits
			defer s.ended.Put(struct{}{})
			if err := m.Run(s.ctx); err != nil {
				s.box.Put(message{kind: msgFailed, err: fmt.Errorf("lookup %s: %w", p.graph.spec.Lookups[i].Topic, err)})
			}
		})
	}
	if len(s.mirrors) == 0 {
		s.member.Start()
	}
	return nil
}

// purge deletes committed records of the loop topic, on the errand goroutine.
func (s *session) purge(tp kafka.TopicPartition, before int64) {
	s.errands.Do(func() {
		err := s.p.client.Driver().Admin().DeleteRecords(s.ctx, map[kafka.TopicPartition]int64{tp: before})
		if err != nil && s.ctx.Err() == nil && !errors.Is(err, kafka.ErrClosed) {
			s.p.log.Warn("purging the loop topic failed", zap.String("partition", tp.String()), zap.Error(err))
		}
	})
}
