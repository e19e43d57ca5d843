package tester

import (
	"errors"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

var _ kafka.Driver = (*incarnation)(nil)

// NewFetcher implements kafka.Driver.
func (inc *incarnation) NewFetcher(cfg kafka.FetcherConfig) (kafka.Fetcher, error) {
	if cfg.PartitionBytes <= 0 {
		cfg.PartitionBytes = 2 << 20
	}
	if cfg.TotalBytes <= 0 {
		cfg.TotalBytes = 64 << 20
	}
	f := &fetcher{inc: inc, cfg: cfg, follows: map[kafka.TopicPartition]*follower{}}
	return f, inc.add(func() { inc.fetchers = append(inc.fetchers, f) })
}

// NewProducer implements kafka.Driver.
func (inc *incarnation) NewProducer(cfg kafka.ProducerConfig) (kafka.Producer, error) {
	if cfg.BatchBytes <= 0 {
		cfg.BatchBytes = 1_000_000
	}
	p := &producer{inc: inc, cfg: cfg, queues: map[kafka.TopicPartition]*queue{}}
	return p, inc.add(func() { inc.producers = append(inc.producers, p) })
}

// NewTransactor returns a kafka.Transactor.
func (inc *incarnation) NewTransactor(cfg kafka.TransactorConfig) (kafka.Transactor, error) {
	if cfg.ID == "" {
		return nil, errors.New("tester: a transactor needs a transactional id")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTransaction
	}
	if cfg.BatchBytes <= 0 {
		cfg.BatchBytes = 1_000_000
	}
	t := newTransactor(inc, cfg)
	return t, inc.add(func() { inc.transactors = append(inc.transactors, t) })
}

// NewMember implements kafka.Driver.
func (inc *incarnation) NewMember(cfg kafka.MemberConfig) (kafka.Member, error) {
	if cfg.Group == "" || cfg.Protocol == "" {
		return nil, errors.New("tester: a member needs a group and a protocol")
	}
	if cfg.Subscribe == nil || cfg.Plan == nil || cfg.Assigned == nil || cfg.Lost == nil {
		return nil, errors.New("tester: a member needs all of its callbacks")
	}
	if cfg.SessionTimeout <= 0 {
		cfg.SessionTimeout = defaultSession
	}
	if cfg.HeartbeatInterval <= 0 {
		cfg.HeartbeatInterval = defaultHeartbeat
	}
	if cfg.RebalanceTimeout <= 0 {
		cfg.RebalanceTimeout = defaultRebalance
	}
	m := &member{inc: inc, cfg: cfg, box: work.NewMailbox[func()](&inc.work), adopted: -1}
	return m, inc.add(func() { inc.members = append(inc.members, m) })
}

// add registers something that was made of the driver, if it may be.
func (inc *incarnation) add(register func()) error {
	w := inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if inc.dead || inc.closed {
		return kafka.ErrClosed
	}
	register()
	return nil
}
