package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/IBM/sarama"
)

// metadata caches what brokers tell of topics, leaders and coordinators. It
// is refreshed on demand only, by one request at a time; whoever needs a
// refresh while one is on its way shares the next one.
//
// Topic ids need a configured protocol version of 2.8 or newer; below that
// they are zero.
type metadata struct {
	d     *saramaDriver
	conns *conns
	turn  chan struct{} // holds a token while nobody asks; who takes it owns conns

	mu           sync.Mutex
	wanted       map[string]struct{} // topics that the next request asks for
	brokers      map[int32]string
	topics       map[string]*topicMeta
	coordinators map[coordinatorKey]string
	controller   int32
	good         string // the broker that answered last
}

type topicMeta struct {
	id    TopicID
	code  sarama.KError
	parts []partitionMeta // by partition
	stale bool            // invalidated; guarded by metadata.mu
}

type partitionMeta struct {
	leader   int32 // broker id, -1 if there is none
	epoch    int32
	replicas int16
}

type coordinatorKey struct {
	kind sarama.CoordinatorType
	key  string
}

func newMetadata(d *saramaDriver) *metadata {
	m := &metadata{
		d: d, conns: d.newConns("metadata"), turn: make(chan struct{}, 1),
		wanted: map[string]struct{}{}, topics: map[string]*topicMeta{}, coordinators: map[coordinatorKey]string{}, controller: -1,
	}
	m.turn <- struct{}{}
	return m
}

func (m *metadata) close() { m.conns.close() }

// leader returns the address of the leader of tp and the leader epoch, -1 if
// unknown. It asks, and waits for a leader to be elected, until ctx ends. A
// broker that says that the topic or partition does not exist is believed at
// once (ErrUnknownTopic): whoever has reason to think it stale asks again.
func (d *saramaDriver) leader(ctx context.Context, tp TopicPartition) (addr string, epoch int32, err error) {
	err = d.retry(ctx, "looking up the leaders of partitions", func() error {
		addr, epoch, err = d.meta.leader(tp)
		if errors.Is(err, errNotCached) {
			if err = d.meta.refresh(ctx, tp.Topic); err == nil {
				addr, epoch, err = d.meta.leader(tp)
			}
		}
		return err
	})
	if err != nil {
		return "", -1, fmt.Errorf("leader of %s: %w", tp, err)
	}
	return addr, epoch, nil
}

// describe asks for topics until each is known or known not to exist; those
// that do not are left out.
func (d *saramaDriver) describe(ctx context.Context, names ...string) (map[string]*topicMeta, error) {
	var found map[string]*topicMeta
	err := d.retry(ctx, "looking up topics", func() error {
		for _, name := range names {
			d.meta.invalidate(name)
		}
		if err := d.meta.refresh(ctx, names...); err != nil {
			return err
		}
		found = make(map[string]*topicMeta, len(names))
		for _, name := range names {
			t := d.meta.cached(name)
			if t == nil {
				return fmt.Errorf("topic %s: %w", name, sarama.ErrIncompleteResponse)
			}
			switch err := kerror(t.code); {
			case err == nil:
				found[name] = t
			case !errors.Is(err, ErrUnknownTopic):
				return fmt.Errorf("topic %s: %w", name, err)
			}
		}
		return nil
	})
	return found, err
}

// invalidate makes the next lookup in a topic ask a broker.
func (d *saramaDriver) invalidate(topic string) { d.meta.invalidate(topic) }

// coordinator returns the address of the coordinator of a group or of a
// transactional id. It asks until ctx ends.
func (d *saramaDriver) coordinator(ctx context.Context, kind sarama.CoordinatorType, key string) (addr string, err error) {
	err = d.retry(ctx, "looking up the coordinator of "+key, func() error {
		addr, err = d.meta.coordinator(ctx, coordinatorKey{kind, key})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("coordinator of %q: %w", key, err)
	}
	return addr, nil
}

// forgetCoordinator makes the next lookup ask a broker.
func (d *saramaDriver) forgetCoordinator(kind sarama.CoordinatorType, key string) {
	d.meta.mu.Lock()
	defer d.meta.mu.Unlock()
	delete(d.meta.coordinators, coordinatorKey{kind, key})
}

var errNotCached = errors.New("not cached")

func (m *metadata) leader(tp TopicPartition) (string, int32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topics[tp.Topic]
	switch {
	case t == nil || t.stale:
		return "", -1, errNotCached
	case t.code != sarama.ErrNoError:
		t.stale = true // an error is told once
		return "", -1, kerror(t.code)
	case int(tp.Partition) >= len(t.parts) || tp.Partition < 0:
		t.stale = true
		return "", -1, kerror(sarama.ErrUnknownTopicOrPartition)
	}
	p := t.parts[tp.Partition]
	addr, ok := m.brokers[p.leader]
	if !ok {
		t.stale = true
		return "", -1, kerror(sarama.ErrLeaderNotAvailable)
	}
	return addr, p.epoch, nil
}

func (m *metadata) cached(topic string) *topicMeta {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.topics[topic]
}

// fresh reports whether a topic was asked for and not invalidated since.
func (m *metadata) fresh(topic string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topics[topic]
	return t != nil && !t.stale
}

// addr returns the address of a broker by its id.
func (m *metadata) addr(id int32) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	addr, ok := m.brokers[id]
	return addr, ok
}

// addrs returns the addresses of all brokers that are known.
func (m *metadata) addrs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Values(m.brokers))
}

func (m *metadata) invalidate(topic string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.topics[topic]; t != nil {
		t.stale = true
	}
}

// controllerAddr returns the address of the controller, or "" if it is unknown.
func (m *metadata) controllerAddr() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.brokers[m.controller]
}

// led returns how many partitions of a topic have a leader.
func (m *metadata) led(topic string) (n int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topics[topic]
	if t == nil || t.code != sarama.ErrNoError {
		return 0
	}
	for _, p := range t.parts {
		if _, ok := m.brokers[p.leader]; ok {
			n++
		}
	}
	return n
}

// refresh asks for topics, and for all that others want by then, in one
// request.
func (m *metadata) refresh(ctx context.Context, topics ...string) error {
	m.mu.Lock()
	for _, t := range topics {
		m.wanted[t] = struct{}{}
	}
	m.mu.Unlock()

	select {
	case <-m.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { m.turn <- struct{}{} }()

	m.mu.Lock()
	names := make([]string, 0, len(m.wanted))
	for t := range m.wanted {
		names = append(names, t)
	}
	shared := !slices.ContainsFunc(topics, func(t string) bool { _, ok := m.wanted[t]; return ok })
	m.wanted = map[string]struct{}{}
	m.mu.Unlock()
	if shared { // another request asked for them meanwhile
		return nil
	}
	slices.Sort(names)
	err := m.ask(ctx, names)
	if err != nil {
		m.mu.Lock() // the wishes stand
		for _, t := range names {
			m.wanted[t] = struct{}{}
		}
		m.mu.Unlock()
	}
	return err
}

// ask sends one metadata request. The turn must be held.
func (m *metadata) ask(ctx context.Context, names []string) error {
	var answer *sarama.MetadataResponse
	err := m.anyBroker(ctx, func(b *sarama.Broker) (err error) {
		req := sarama.NewMetadataRequest(m.d.cfg.Version, names) // it creates no topics
		answer, err = b.GetMetadata(req)
		return err
	})
	if err == nil {
		m.learn(answer)
	}
	return err
}

func (m *metadata) learn(answer *sarama.MetadataResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(answer.Brokers) > 0 {
		m.brokers = make(map[int32]string, len(answer.Brokers))
		for _, b := range answer.Brokers {
			m.brokers[b.ID()] = b.Addr()
		}
	}
	m.controller = answer.ControllerID
	for _, t := range answer.Topics {
		m.topics[t.Name] = newTopicMeta(t)
	}
}

func newTopicMeta(t *sarama.TopicMetadata) *topicMeta {
	n := 0
	for _, p := range t.Partitions {
		n = max(n, int(p.ID)+1)
	}
	meta := &topicMeta{id: TopicID(t.Uuid), code: t.Err, parts: make([]partitionMeta, n)}
	for i := range meta.parts {
		meta.parts[i].leader = -1
	}
	for _, p := range t.Partitions {
		epoch := p.LeaderEpoch
		if p.Version < 7 {
			epoch = -1
		}
		meta.parts[p.ID] = partitionMeta{leader: p.Leader, epoch: epoch, replicas: int16(len(p.Replicas))}
	}
	return meta
}

func (m *metadata) coordinator(ctx context.Context, key coordinatorKey) (string, error) {
	m.mu.Lock()
	addr, ok := m.coordinators[key]
	m.mu.Unlock()
	if ok {
		return addr, nil
	}
	select {
	case <-m.turn:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { m.turn <- struct{}{} }()

	var answer *sarama.FindCoordinatorResponse
	err := m.anyBroker(ctx, func(b *sarama.Broker) (err error) {
		answer, err = b.FindCoordinator(&sarama.FindCoordinatorRequest{Version: 2, CoordinatorKey: key.key, CoordinatorType: key.kind})
		return err
	})
	if err != nil {
		return "", err
	}
	if answer.Err != sarama.ErrNoError {
		return "", kerror(answer.Err)
	}
	addr = answer.Coordinator.Addr()
	m.mu.Lock()
	m.coordinators[key] = addr
	m.mu.Unlock()
	return addr, nil
}

// anyBroker runs f with one broker after the other until it succeeds: the
// one that answered last, then the others that are known, then the seeds. A
// refused credential ends it. The turn must be held.
func (m *metadata) anyBroker(ctx context.Context, f func(*sarama.Broker) error) error {
	var errs []error
	for _, addr := range m.candidates() {
		err := m.conns.do(ctx, addr, f)
		if err == nil {
			m.mu.Lock()
			m.good = addr
			m.mu.Unlock()
			return nil
		}
		if !retriable(err) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (m *metadata) candidates() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var known []string
	for _, addr := range m.brokers {
		known = append(known, addr)
	}
	rand.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
	seeds := slices.Clone(m.d.seeds)
	rand.Shuffle(len(seeds), func(i, j int) { seeds[i], seeds[j] = seeds[j], seeds[i] })
	all := slices.Concat(known, seeds)
	if m.good != "" {
		all = slices.Insert(all, 0, m.good)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(addr string) bool {
		again := seen[addr]
		seen[addr] = true
		return again
	})
}
