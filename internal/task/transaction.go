package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rekastream/reka/kafka"
)

// transaction is one try to write and commit some epochs. The lane's
// goroutine drives it; the producer's goroutines report to it.
type transaction struct {
	lane    *Lane
	batch   []*epoch
	by      Identity                // in whose name the offsets were sent
	offsets []kafka.CommittedOffset // of the batch, in its order

	mu      sync.Mutex
	outputs map[*epoch][]*refusal // guarded by mu; refused for good
	rows    map[*epoch]error      // guarded by mu; changelog rows or offsets refused for good, or errors of verify
}

// run writes and commits. What it returns says how far it came: see
// kafka.Transactor.
func (t *transaction) run(ctx context.Context) error {
	tx := t.lane.env.Transactor
	if t.lane.txn.renew || tx.InDoubt() {
		if _, err := t.lane.renewEpoch(); err != nil {
			return err
		}
	}
	tx.Begin()
	for _, e := range t.batch {
		t.produce(e)
	}
	if err := t.commitOffsets(ctx); err != nil {
		return err
	}
	if err := t.verify(ctx); err != nil {
		return err
	}
	return tx.End(ctx, true)
}

// produce hands an epoch's outputs and rows over. They are answered before
// End returns.
func (t *transaction) produce(e *epoch) {
	for _, s := range e.outputs {
		t.lane.env.Transactor.Produce(kafka.Outgoing{TopicPartition: s.target, Records: s.records, Done: func(run kafka.Run) {
			if run.Err != nil && refusedForGood(run.Err) {
				t.mu.Lock()
				t.outputs[e] = append(t.outputs[e], &refusal{slab: s, from: run.From, to: run.To, err: run.Err})
				t.mu.Unlock()
			}
		}})
	}
	rows := e.changelog()
	for i := range rows {
		t.lane.env.Transactor.Produce(kafka.Outgoing{TopicPartition: rows[i].to, Records: rows[i].records, Done: func(run kafka.Run) {
			t.mu.Lock()
			defer t.mu.Unlock()
			switch {
			case run.Err == nil:
				rows[i].report(run)
			case refusedForGood(run.Err) && t.rows[e] == nil:
				t.rows[e] = rows[i].refused(run)
			}
		}})
	}
}

// refusedForGood reports whether the broker will never take these records.
func refusedForGood(err error) bool {
	return errors.Is(err, kafka.ErrTooLarge) || errors.Is(err, kafka.ErrUnknownTopic) ||
		errors.Is(err, kafka.ErrNotAuthorized) || errors.Is(err, kafka.ErrInvalidRecord)
}

// commitOffsets makes the offsets part of the transaction, in the generation
// adopted last. A task that this generation does not give to this member is
// dropped before it is adopted, so it is seen here.
func (t *transaction) commitOffsets(ctx context.Context) error {
	id := t.lane.Identity()
	t.by, t.offsets = id, t.offsets[:0]
	for _, e := range t.batch {
		if e.dropped() {
			return errDropped
		}
		t.offsets = append(t.offsets, e.positions...)
	}
	return t.lane.env.Transactor.Offsets(ctx, kafka.Committer{
		Group: t.lane.env.Group, MemberID: id.MemberID, InstanceID: id.InstanceID, Generation: id.Generation,
	}, t.offsets)
}

// refused reports whether some epochs cannot be written as they are. Those
// whose offsets will never be taken are noted first. The producer's part must
// be over.
func (t *transaction) refused() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := 0
	for _, e := range t.batch {
		if at+len(e.positions) > len(t.offsets) {
			break
		}
		if _, refused := answers(t.offsets[at : at+len(e.positions)]); refused != nil {
			t.rows[e] = refused
		}
		at += len(e.positions)
	}
	return len(t.outputs)+len(t.rows) > 0
}

// endAgain asks a few times for the same end, for as long as the broker may
// still have the transaction.
func (t *transaction) endAgain(ctx context.Context) (err error) {
	const tries, pause = 3, 100 * time.Millisecond
	clock := t.lane.env.Clock
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := clock.AfterFunc(t.lane.env.Timeout, cancel)
	defer timer.Stop()
	for range tries {
		if err = t.lane.env.Transactor.End(ctx, true); err == nil || errors.Is(err, kafka.ErrFenced) {
			return err // fenced: an answer to this end, not to the first
		}
		if clock.Sleep(ctx, pause) != nil {
			break
		}
	}
	return err
}
