package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// Errors of a Mirror.
var (
	// ErrNotReady: the local copy is not complete yet, or nobody runs it.
	ErrNotReady = errors.New("not ready")
	// ErrStopTimeout: not everything was written within the stop timeout.
	ErrStopTimeout = errors.New("not drained within the stop timeout")
	// ErrRunTwice: a Mirror runs once.
	ErrRunTwice = errors.New("was run before")
)

// MirrorConfig describes a Mirror. Client, Topic and Store are required.
type MirrorConfig struct {
	Client *kafka.Client
	Topic  string

	// Store is where the partitions live, each as a table named StoreName,
	// by default "mirror:" and the topic. A second mirror of that name on the
	// same store ends at once with storage.ErrBusy.
	Store     storage.Builder
	StoreName string

	// CacheBytes and FlushBytes are as in TableConfig, for all partitions
	// together. Defaults 64 MiB and 32 MiB.
	CacheBytes, FlushBytes int
	// FlushAge is as in TableConfig.
	FlushAge time.Duration

	// Accept is as in Config. It is called with a lock held that reads need.
	Accept func(*kafka.Record) bool

	// Anywhere: keys are not placed by what the client's partitioner says of
	// them, so that is not compared. Scan finds them; Get may not.
	Anywhere bool

	// OnRow, if set, is called on the owner's goroutine for each record that
	// has a key, after reads can see it. A nil Value is a delete; so is a
	// record that Accept refused, which comes as it is. The record must not
	// be kept. It must not block.
	OnRow func(rec *kafka.Record, restoring bool)

	// OnState, if set, is called on the owner's goroutine for each change of
	// the state, in order. It must not block.
	OnState func(MirrorState)

	// MissingTopic is how long a topic that does not exist is waited for
	// before Run returns kafka.ErrUnknownTopic. 0: without limit.
	MissingTopic time.Duration

	// LocalFirst answers reads from a local copy that was complete once,
	// before Kafka was reached in this run.
	LocalFirst bool

	// Probe is how often the brokers are asked for topic and log ends. That
	// gives the lag. If no answer comes for three times as long, the state is
	// connecting. Default 2 s.
	Probe time.Duration

	// StopTimeout bounds what Run does after its context ended. Default 30 s.
	StopTimeout time.Duration

	// Log defaults to the client's logger.
	Log *zap.Logger
}

func (c MirrorConfig) withDefaults() MirrorConfig {
	if c.StoreName == "" {
		c.StoreName = "mirror:" + c.Topic
	}
	if c.CacheBytes <= 0 {
		c.CacheBytes = 64 << 20
	}
	if c.FlushBytes <= 0 {
		c.FlushBytes = 32 << 20
	}
	if c.Probe <= 0 {
		c.Probe = 2 * time.Second
	}
	if c.StopTimeout <= 0 {
		c.StopTimeout = 30 * time.Second
	}
	return c
}

// MirrorState is where a Mirror stands.
type MirrorState int8

// States of a Mirror. From Connecting on they follow each other in any order
// but Idle, which is also the last.
const (
	MirrorIdle       MirrorState = iota // does not run
	MirrorConnecting                    // brokers or topic are not there
	MirrorRestoring                     // a partition is not complete yet
	MirrorReady
)

// String returns the state's name.
func (s MirrorState) String() string {
	switch s {
	case MirrorConnecting:
		return "connecting"
	case MirrorRestoring:
		return "restoring"
	case MirrorReady:
		return "ready"
	}
	return "not running"
}

// Mirror is a local copy of all partitions of a table topic.
//
// One goroutine owns what follows the log (mirrorRun); the rows of a partition
// are guarded by its lock, which the owner holds for a few hundred records at
// a time and readers for one look into memory. Reads of the store go on
// outside of it.
type Mirror struct {
	// Fixed after NewMirror.
	cfg   MirrorConfig
	clock kafka.Clock
	log   *zap.Logger
	box   *work.Mailbox[func()] // what the owner is to do next

	// Written by the owner, read by all.
	parts     atomic.Pointer[[]*mirrorPart] // nil: nothing is open
	readable  atomic.Bool                   // reads are answered
	misplaced atomic.Bool                   // a key may be in another partition than the client's partitioner says
	closing   atomic.Bool                   // scans are to end

	mu      sync.Mutex
	started bool
	state   MirrorState
	changed chan struct{} // closed and replaced when the state changes or reads become possible; no capacity
	ended   bool
	err     error // Run's
	scans   int   // loops that hold snapshots
}

// mirrorPart is one partition.
type mirrorPart struct {
	id int32

	mu     sync.Mutex
	rep    *Replica // guarded by mu
	usable bool     // guarded by mu: the rows are complete, as of some moment

	// Owned by the owner.
	queue     []*kafka.Batch // delivered, not applied
	term      uint64         // counts followings; what was delivered under an older one is dropped
	following bool
	flushing  bool
}

// NewMirror validates. It does not dial and opens nothing.
func NewMirror(cfg MirrorConfig) (*Mirror, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("no client")
	case cfg.Topic == "":
		return nil, errors.New("no topic")
	case cfg.Store == nil:
		return nil, errors.New("no storage")
	}
	d := cfg.Client.Driver()
	if cfg.Log == nil {
		cfg.Log = cfg.Client.Logger()
	}
	m := &Mirror{
		cfg:     cfg.withDefaults(),
		clock:   d.Clock(),
		log:     cfg.Log.With(zap.String("topic", cfg.Topic)),
		box:     work.NewMailbox[func()](d.Work()),
		changed: make(chan struct{}),
	}
	return m, nil
}

// Run follows the topic until ctx ends; then it writes what is not durable
// yet, gives the store back and returns nil, or ErrStopTimeout. Trouble of the
// network is retried for ever; what waiting does not change is returned. The
// calling goroutine is the owner, and must be one that counts as running (see
// package work).
func (m *Mirror) Run(ctx context.Context) error {
	m.mu.Lock()
	again := m.started
	m.started = true
	m.mu.Unlock()
	if again {
		return fmt.Errorf("table %s: %w", m.cfg.Topic, ErrRunTwice)
	}
	err := newMirrorRun(m).run(ctx)
	m.end(err)
	return err
}

// State returns where the mirror stands.
func (m *Mirror) State() MirrorState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Ready reports whether reads are answered: the copy was complete once in this
// run, or is a local one that may be read first.
func (m *Mirror) Ready() bool { return m.readable.Load() }

// WaitReady waits until Ready. It returns Run's error if that ended (ErrNotReady
// if it ended without one), or that of ctx.
func (m *Mirror) WaitReady(ctx context.Context) error {
	for {
		m.mu.Lock()
		changed, ended, err := m.changed, m.ended, m.err
		m.mu.Unlock()
		switch {
		case ended && err != nil:
			return err
		case ended:
			return m.notReady()
		case m.Ready():
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// PartitionStats is a snapshot of one partition.
type PartitionStats struct {
	Partition int32
	Progress
	Table TableStats
}

// Stats returns a snapshot of each partition, none before the store is open.
func (m *Mirror) Stats() []PartitionStats {
	parts := m.parts.Load()
	if parts == nil {
		return nil
	}
	all := make([]PartitionStats, 0, len(*parts))
	for _, p := range *parts {
		p.mu.Lock()
		all = append(all, PartitionStats{p.id, p.rep.Progress(), p.rep.t.Stats()})
		p.mu.Unlock()
	}
	return all
}

func (m *Mirror) notReady() error {
	return fmt.Errorf("table %s is %s: %w", m.cfg.Topic, m.State(), ErrNotReady)
}

// wake tells those who wait that something changed. mu is held.
func (m *Mirror) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Mirror) end(err error) {
	m.readable.Store(false)
	m.parts.Store(nil)
	m.mu.Lock()
	m.ended, m.err = true, err
	m.wake()
	m.mu.Unlock()
}
