package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// saramaTransactor is the Transactor. Records go through a saramaProducer of
// its own that knows it is transactional (txnQueues); the requests to the
// coordinators are sent by the goroutine that drives the Transactor, but for
// AddPartitionsToTxn, which the producer asks for when it meets a partition.
//
// States of a transaction:
//
//	none ──Begin──▶ begun ──a partition or group was added──▶ open ──End answered──▶ none
//
// A transaction that is only begun exists nowhere but here, and ending it
// sends nothing.
//
// Invariants:
//
//   - No record of a partition is sent before the coordinator has confirmed
//     that the partition is part of the transaction.
//   - No end is sent while a request of the transaction is under way: an end
//     waits for the counter busy, which counts records and requests that add
//     partitions. An abort cuts what does not come back within abortGrace.
//   - A commit is not sent after anything failed.
//   - doubt is set whenever a request was written and not answered, or a
//     batch was given up that may have been written (its sequence is then
//     unknown). Only a new epoch takes it back, with which all sequences
//     start at zero.
//   - Once an end was written and not clearly refused, only the same end may
//     be sent again until it is answered or the epoch is renewed.
type saramaTransactor struct {
	d      *saramaDriver
	cfg    TransactorConfig
	p      *saramaProducer
	coord  *conns          // to the coordinator of the id
	groups *conns          // to coordinators of groups
	ctx    context.Context // ends with Close, as ErrClosed
	cancel context.CancelCauseFunc

	doubt atomic.Bool

	// Owned by the goroutine that drives.
	begun    bool
	id       int64 // producer id, -1: none was had yet
	epoch    int16
	valid    bool                // id and epoch are those of the last Init
	barred   error               // why nothing may be written
	enlisted map[string]struct{} // groups that are part of the transaction
	ending   ending

	// Guarded by mu.
	mu     sync.Mutex
	busy   int           // records without a Done, and requests that add partitions
	idle   chan struct{} // closed when busy gets zero; nil: nobody waits
	broken error         // why the transaction cannot be committed
	open   openness
	wanted map[TopicPartition]struct{} // to be added
	seat   producerSeat                // of requests that add partitions
	scope  txnScope
}

// openness is what the coordinator knows of the transaction.
type openness int8

const (
	closedTxn openness = iota
	maybeOpen          // something that opens it was not answered
	openTxn
)

// producerSeat is a producer id with its epoch.
type producerSeat struct {
	id    int64
	epoch int16
}

// txnScope bounds what a step may do: with soft every waiting ends, with hard
// the requests, too. The scope of a transaction, for what adds partitions,
// has both ends in its hands: soft ends when the transaction has failed.
type txnScope struct {
	soft, hard context.Context
	stop, cut  context.CancelFunc
}

func newTxnScope(ctx context.Context) (s txnScope) {
	s.hard, s.cut = context.WithCancel(ctx)
	s.soft, s.stop = context.WithCancel(s.hard)
	return s
}

const (
	defaultTxnTimeout = 60 * time.Second

	// abortGrace is how long an abort waits for answers to what was sent.
	abortGrace = time.Second
)

// NewTransactor returns a Transactor with connections of its own.
func (d *saramaDriver) NewTransactor(cfg TransactorConfig) (Transactor, error) {
	t, err := newSaramaTransactor(d, cfg)
	if err != nil {
		return nil, err
	}
	return t, d.adopt(t)
}

func newSaramaTransactor(d *saramaDriver, cfg TransactorConfig) (*saramaTransactor, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTxnTimeout)
	switch {
	case cfg.ID == "":
		return nil, errors.New("transactor: ID is empty")
	case cfg.Timeout < time.Millisecond:
		return nil, fmt.Errorf("transactor: Timeout %s: want at least 1 ms", cfg.Timeout)
	case !d.cfg.Version.IsAtLeast(sarama.V2_5_0_0):
		return nil, fmt.Errorf("transactor: %w: transactions need protocol version 2.5, configured is %s", ErrUnsupported, d.cfg.Version)
	}
	t := &saramaTransactor{
		d: d, cfg: cfg, coord: d.newConns("transaction"), groups: d.newConns("transaction offsets"),
		id: -1, epoch: -1, enlisted: map[string]struct{}{}, wanted: map[TopicPartition]struct{}{},
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.scope = newTxnScope(t.ctx)
	var err error
	t.p, err = newProducerOf(d, ProducerConfig{Compression: cfg.Compression, BatchBytes: cfg.BatchBytes}, newTxnQueues(t))
	return t, err
}

func (t *saramaTransactor) Begin() {
	t.barred = t.unready()
	t.begun = true
	if t.barred != nil {
		t.breakOff(t.barred)
		return
	}
	t.settled()
	t.mu.Lock()
	t.scope.cut()
	t.broken, t.scope, t.seat = nil, newTxnScope(t.ctx), producerSeat{t.id, t.epoch}
	clear(t.wanted)
	t.mu.Unlock()
	t.p.begin(t.seat)
}

// unready says why no transaction can begin. What is left of the one before
// would become part of it.
func (t *saramaTransactor) unready() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.valid:
		return fmt.Errorf("%w: it is not initialised", ErrFenced)
	case t.begun && (t.busy > 0 || t.open != closedTxn):
		return fmt.Errorf("%w: the one before was not ended", ErrAbortable)
	case t.doubt.Load():
		return fmt.Errorf("%w: a request was not answered, and it was not initialised since", ErrFenced)
	}
	return nil
}

// settled forgets the last transaction.
func (t *saramaTransactor) settled() {
	clear(t.enlisted)
	t.ending = ending{}
	t.mu.Lock()
	t.open = closedTxn
	t.mu.Unlock()
}

func (t *saramaTransactor) Produce(o Outgoing) {
	if err := t.refused(); err != nil {
		o.Done(Run{To: len(o.Records), Base: -1, Err: &Error{TopicPartition: o.TopicPartition, Offset: -1, Err: err}})
		return
	}
	if n := len(o.Records); n > 0 {
		t.hold(n)
		done := o.Done
		o.Done = func(r Run) {
			if r.Err != nil {
				t.breakOff(r.Err)
			}
			done(r)
			t.finish(r.To - r.From)
		}
	}
	t.p.Produce(o)
}

// refused says why nothing can be added to the transaction.
func (t *saramaTransactor) refused() error {
	switch {
	case t.ctx.Err() != nil:
		return ErrClosed
	case !t.begun:
		return fmt.Errorf("%w: no transaction was begun", ErrAbortable)
	}
	return t.barred
}

func (t *saramaTransactor) InDoubt() bool { return t.doubt.Load() }

func (t *saramaTransactor) Close() error {
	t.cancel(ErrClosed)
	t.coord.close()
	t.groups.close()
	err := t.p.Close()
	t.d.release(t)
	return err
}

// breakOff notes why the transaction cannot be committed. That it is fenced
// outranks what was noted before.
func (t *saramaTransactor) breakOff(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil || errors.Is(err, ErrFenced) && !errors.Is(t.broken, ErrFenced) {
		t.broken = err
	}
}

func (t *saramaTransactor) brokenBy() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

func (t *saramaTransactor) hold(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy += n
}

func (t *saramaTransactor) finish(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy -= n; t.busy == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// flush waits until nothing is under way.
func (t *saramaTransactor) flush(ctx context.Context) error {
	t.mu.Lock()
	if t.busy == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// abandon fails what is queued, and waits for what was sent. What is not
// answered soon is cut off.
func (t *saramaTransactor) abandon(ctx context.Context) error {
	t.p.abandon(fmt.Errorf("%w: it was given up", ErrAbortable))
	cut := t.d.clock.AfterFunc(abortGrace, t.cut)
	defer cut.Stop()
	err := t.flush(ctx)
	if err != nil {
		t.cut() // whoever comes next need not wait for the same
	}
	return err
}

// cut ends the connections of requests that are under way.
func (t *saramaTransactor) cut() {
	t.mu.Lock()
	busy := t.busy > 0
	t.mu.Unlock()
	if busy {
		t.p.cutSent()
		t.scopeOf().cut()
	}
}
