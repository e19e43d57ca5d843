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
	p := s.p
	err := s.openStore()
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
	s.disk, s.errands = task.NewWorker(s.work), task.NewWorker(s.work)
	if p.cfg.guarantee != WithoutTransactions {
		if err := s.openTransactor(ctx); err != nil {
			return err
		}
	}
	s.lane = task.NewLane(task.LaneEnv{
		Clock: s.clock, Work: s.work, Log: p.log, Producer: s.producer,
		Transactor: s.txn, Group: p.graph.group, ProcessID: s.process, Timeout: p.cfg.transaction,
	})
	s.epochs = replica.NewEpochs(driver)
	for _, part := range p.graph.parts {
		s.subgraphs = append(s.subgraphs, s.newSubgraph(part))
	}
	s.tellCounts()
	if !p.cfg.dynamic && s.store != nil {
		s.instance = s.process
	}
	if s.member, err = driver.NewMember(s.memberConfig(s.instance)); err != nil {
		return err
	}
	return s.startMirrors()
}

// openStore opens the store, if the graph keeps anything, and finds the
// process id.
func (s *session) openStore() (err error) {
	var id [12]byte
	if _, err := rand.Read(id[:]); err != nil {
		return fmt.Errorf("process id: %w", err)
	}
	s.process = hex.EncodeToString(id[:])
	if s.p.cfg.storage == nil {
		return nil
	}
	if s.store, err = s.p.cfg.storage.Open(); err != nil {
		return err
	}
	s.process = s.store.ProcessID()
	s.release, err = claimGroup(s.p.graph.group, s.process)
	return err
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

// startMirrors runs the copies of looked up tables, one for each table,
// whatever the number of subgraphs that look it up. Without any the member
// joins at once.
func (s *session) startMirrors() error {
	of := map[string]*replica.Mirror{}
	var topics []string
	for _, sg := range s.subgraphs {
		for _, l := range sg.spec.Lookups {
			if of[l.Topic] == nil {
				m, err := s.newMirror(l.Topic)
				if err != nil {
					return err
				}
				of[l.Topic] = m
				s.mirrors, topics = append(s.mirrors, m), append(topics, l.Topic)
			}
			sg.env.Lookups = append(sg.env.Lookups, of[l.Topic])
		}
	}
	for i, m := range s.mirrors {
		s.helpers++
		work.Go(s.work, func() { // ends with s.ctx; giveBack waits
			defer s.ended.Put(struct{}{})
			if err := m.Run(s.ctx); err != nil {
				s.box.Put(message{kind: msgFailed, err: fmt.Errorf("lookup %s: %w", topics[i], err)})
			}
		})
	}
	if len(s.mirrors) == 0 {
		s.member.Start()
	}
	return nil
}

func (s *session) newMirror(topic string) (*replica.Mirror, error) {
	var loaded sync.Once
	t := &s.p.cfg.tuning
	return replica.NewMirror(replica.MirrorConfig{
		Client: s.p.client, Topic: topic, Store: s.p.cfg.storage,
		StoreName:  s.p.graph.group + "/lookup:" + topic,
		CacheBytes: t.CacheBytes, FlushBytes: t.FlushBytes, FlushAge: t.FlushAge,
		OnState: func(state replica.MirrorState) {
			if state == replica.MirrorReady {
				loaded.Do(func() { s.box.Put(message{kind: msgLoaded}) })
			}
		},
	})
}

// purge deletes committed records of the loop or of a repartition topic, on
// the errand goroutine.
func (s *session) purge(tp kafka.TopicPartition, before int64) {
	s.errands.Do(func() {
		err := s.p.client.Driver().Admin().DeleteRecords(s.ctx, map[kafka.TopicPartition]int64{tp: before})
		if err != nil && s.ctx.Err() == nil && !errors.Is(err, kafka.ErrClosed) {
			s.p.log.Warn("deleting committed records failed", zap.String("partition", tp.String()), zap.Error(err))
		}
	})
}

// ends asks for the ends of inputs, on the errand goroutine.
func (s *session) ends(parts []kafka.TopicPartition, answer func(map[kafka.TopicPartition]int64, error)) {
	s.errands.Do(func() {
		answer(s.p.client.Driver().Admin().Offsets(s.ctx, kafka.LastStable, parts...))
	})
}
