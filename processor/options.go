package processor

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/storage"
)

// Option is an option of New.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	storage    storage.Builder
	log        *zap.Logger
	observer   Observer
	middleware []func(*Context, func(*Context) error) error

	commit    time.Duration
	session   time.Duration
	heartbeat time.Duration
	rebalance time.Duration
	stop      time.Duration
	idle      time.Duration

	guarantee   Guarantee
	transaction time.Duration

	dynamic  bool
	stay     bool
	lost     LostOffsets
	replicas int16

	tuning Tuning
}

func defaultConfig() config {
	return config{
		commit: 100 * time.Millisecond, session: 10 * time.Second, heartbeat: 500 * time.Millisecond,
		rebalance: time.Minute, stop: 30 * time.Second, transaction: time.Minute,
	}
}

// WithStorage sets where the group table, further stores, joined and looked
// up tables live: badgerstore.In(dir), or storage.Memory(). A graph that has
// any of them needs it.
func WithStorage(b storage.Builder) Option { return optionFunc(func(c *config) { c.storage = b }) }

// WithLogger sets the logger. Default: the client's.
func WithLogger(l *zap.Logger) Option { return optionFunc(func(c *config) { c.log = l }) }

// WithObserver tells o of assignments and states.
func WithObserver(o Observer) Option { return optionFunc(func(c *config) { c.observer = o }) }

// WithMiddleware adds a function that runs around every callback. It calls
// next, once, with the context that it got or one made of it by Context.With,
// and returns its error or another. The first one added is the outermost. The
// record succeeds if the outermost returns nil: one that swallows the error of
// next keeps what the callback did before it.
func WithMiddleware(m func(ctx *Context, next func(*Context) error) error) Option {
	return optionFunc(func(c *config) { c.middleware = append(c.middleware, m) })
}

// Guarantee says what a crash, or a lost partition, can do to results.
type Guarantee int8

// Guarantees. State is exact with the first two, whatever happens.
const (
	// ExactlyOnce commits state, outputs and positions in one transaction:
	// readers of outputs, if they read committed records only, see each
	// effect once. The default.
	ExactlyOnce Guarantee = iota
	// AtLeastOnce lets outputs leave as soon as their record is finished, so
	// some may appear again. State and positions still commit together.
	AtLeastOnce
	// WithoutTransactions needs nothing of the brokers but idempotent
	// producing: records may be processed again on state that has seen them.
	WithoutTransactions
)

// WithGuarantee sets what a crash can do to results. The first two need
// brokers of version 2.5 or later with a transaction log.
func WithGuarantee(g Guarantee) Option { return optionFunc(func(c *config) { c.guarantee = g }) }

// WithTransactionTimeout sets after how long the broker aborts a transaction
// whose writer is silent. The broker has an upper bound. Transactions are open
// only while results are written, never while a callback runs. Default 60 s.
func WithTransactionTimeout(d time.Duration) Option {
	return optionFunc(func(c *config) { c.transaction = d })
}

// WithCommitInterval sets how long finished records may wait for their
// commit. Default 100 ms.
func WithCommitInterval(d time.Duration) Option { return optionFunc(func(c *config) { c.commit = d }) }

// WithSessionTimeout sets after how long without a heartbeat the group gives
// this member's partitions to others. Default 10 s; the broker has bounds.
func WithSessionTimeout(d time.Duration) Option { return optionFunc(func(c *config) { c.session = d }) }

// WithHeartbeatInterval sets how often the member shows that it lives, and
// how fast it learns of a rebalance: for that long, at most, nobody takes over
// what a member that leaves had. Default 500 ms; at most a third of the session
// timeout.
func WithHeartbeatInterval(d time.Duration) Option {
	return optionFunc(func(c *config) { c.heartbeat = d })
}

// WithRebalanceTimeout sets how long a rebalance waits for this member; a
// callback that takes longer loses its task. Default 60 s.
func WithRebalanceTimeout(d time.Duration) Option {
	return optionFunc(func(c *config) { c.rebalance = d })
}

// WithStopTimeout bounds the draining after Run's context has ended. Leaving
// the group may take a second more. Default 30 s.
func WithStopTimeout(d time.Duration) Option { return optionFunc(func(c *config) { c.stop = d }) }

// WithIdleTime lets stream time follow the wall clock in a partition that has
// had no data for d: it moves to where it was when the last record came, plus
// the time since then, less d. It needs the brokers to say that nothing is
// left to be read, so one that cannot be reached stops it. Records that this
// makes late are counted apart. Default: off; time moves with data only.
func WithIdleTime(d time.Duration) Option { return optionFunc(func(c *config) { c.idle = d }) }

// WithDynamicMembership makes the member a new one at every start. Default:
// it keeps the identity of its state directory, so that a restart within the
// session timeout gets its partitions back without a rebalance.
func WithDynamicMembership() Option { return optionFunc(func(c *config) { c.dynamic = true }) }

// WithKeptMembership does not leave the group at the end of Run: the
// partitions stay with this member until the session times out, for a restart
// that is planned to be quicker.
func WithKeptMembership() Option { return optionFunc(func(c *config) { c.stay = true }) }

// LostOffsets says where to go on when a table has rows while the group has
// no committed offsets.
type LostOffsets int8

// What to do about lost offsets.
const (
	FailOnLostOffsets LostOffsets = iota // Run returns ErrOffsetsLost; the default
	RestartEarliest                      // from the start of the inputs: their records are applied again
	RestartLatest                        // from the end of the inputs: what came meanwhile is not processed
)

// WithLostOffsets sets what happens when the group's offsets are lost.
func WithLostOffsets(l LostOffsets) Option { return optionFunc(func(c *config) { c.lost = l }) }

// WithReplication sets the replication factor of the internal topics that
// are created. Default: the broker's.
func WithReplication(n int16) Option { return optionFunc(func(c *config) { c.replicas = n }) }

// Tuning holds what trades memory against speed. Zero fields have defaults.
type Tuning struct {
	// EpochBytes bounds what a task does between two commits: it commits
	// early beyond it, and waits beyond twice as much. Default 8 MiB.
	EpochBytes int

	// RecordBytes bounds what the callback of one record may change and
	// emit. Default 64 MiB.
	RecordBytes int

	// Unfinished bounds the records of a partition that are deferred
	// (Context.Defer), and those held back behind one of their key. Beyond
	// it the partition starts no more, and neither while they hold more than
	// EpochBytes. Default 1024.
	Unfinished int

	// CacheBytes bounds the rows in memory, for each store and partition.
	// Default 64 MiB.
	CacheBytes int

	// FlushBytes and FlushAge say when committed rows go to the store: when
	// there are more of them in a store and partition, or when they are that
	// old. Until then a restart replays them. Defaults 32 MiB and 30 s.
	FlushBytes int
	FlushAge   time.Duration

	// FetchBytes bounds what is read ahead, for each partition. Default
	// 2 MiB.
	FetchBytes int
}

// WithTuning changes the defaults of memory bounds.
func WithTuning(t Tuning) Option { return optionFunc(func(c *config) { c.tuning = t }) }

func (t Tuning) withDefaults() Tuning {
	for _, d := range []struct {
		field *int
		n     int
	}{
		{&t.EpochBytes, 8 << 20}, {&t.RecordBytes, 64 << 20}, {&t.CacheBytes, 64 << 20},
		{&t.FlushBytes, 32 << 20}, {&t.FetchBytes, 2 << 20}, {&t.Unfinished, 1024},
	} {
		if *d.field == 0 {
			*d.field = d.n
		}
	}
	if t.FlushAge == 0 {
		t.FlushAge = 30 * time.Second
	}
	return t
}

// validate fills defaults in and checks the options against each other.
func (c *config) validate(stateful bool) error {
	c.tuning = c.tuning.withDefaults()
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"WithCommitInterval", c.commit}, {"WithSessionTimeout", c.session}, {"WithHeartbeatInterval", c.heartbeat},
		{"WithRebalanceTimeout", c.rebalance}, {"WithStopTimeout", c.stop}, {"WithTransactionTimeout", c.transaction}, {"WithTuning: FlushAge", c.tuning.FlushAge},
	} {
		if d.d <= 0 {
			return fmt.Errorf("%s: %v, want more than 0", d.name, d.d)
		}
	}
	for _, n := range []struct {
		name string
		n    int
	}{
		{"WithTuning: EpochBytes", c.tuning.EpochBytes}, {"WithTuning: RecordBytes", c.tuning.RecordBytes},
		{"WithTuning: CacheBytes", c.tuning.CacheBytes}, {"WithTuning: FlushBytes", c.tuning.FlushBytes},
		{"WithTuning: FetchBytes", c.tuning.FetchBytes}, {"WithTuning: Unfinished", c.tuning.Unfinished},
	} {
		if n.n <= 0 {
			return fmt.Errorf("%s: %d, want more than 0", n.name, n.n)
		}
	}
	switch {
	case 3*c.heartbeat > c.session:
		return fmt.Errorf("WithHeartbeatInterval: %v is more than a third of the session timeout %v (WithSessionTimeout)", c.heartbeat, c.session)
	case c.rebalance < c.session:
		return fmt.Errorf("WithRebalanceTimeout: %v is less than the session timeout %v (WithSessionTimeout)", c.rebalance, c.session)
	case c.stay && c.dynamic:
		return errors.New("WithKeptMembership and WithDynamicMembership: a membership that the next start does not have cannot be kept for it")
	case c.idle < 0:
		return fmt.Errorf("WithIdleTime: %v", c.idle)
	case c.replicas < 0:
		return fmt.Errorf("WithReplication: %d", c.replicas)
	case c.guarantee < ExactlyOnce || c.guarantee > WithoutTransactions:
		return fmt.Errorf("WithGuarantee: %d", c.guarantee)
	case c.lost < FailOnLostOffsets || c.lost > RestartLatest:
		return fmt.Errorf("WithLostOffsets: %d", c.lost)
	case stateful && c.storage == nil:
		return errors.New("WithStorage is missing: the graph keeps tables (badgerstore.In(dir), or storage.Memory())")
	}
	for _, m := range c.middleware {
		if m == nil {
			return errors.New("WithMiddleware(nil)")
		}
	}
	return nil
}
