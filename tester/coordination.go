package tester

import (
	"errors"
	"slices"
	"time"

	"github.com/rekastream/reka/kafka"
)

// defaultTransaction is after how long the brokers abort a transaction.
const defaultTransaction = time.Minute

// coordination is the coordinator's side of one transactional id, as a broker
// keeps it. All of it is guarded by world.mu.
//
// An id is new or complete, or has an ongoing transaction, or one that was
// decided and has markers left to be written. A decision is final at once;
// what it decided becomes visible marker by marker. Until the last one is
// written the id answers errConcurrent to whatever would begin something new.
//
// A fenced epoch is remembered as long as nobody has got the newer one: its
// owner can then still renew it. That is what real brokers do when
// InitProducerID meets an ongoing transaction, or a transaction times out.
type coordination struct {
	w       *world
	id      string
	number  int64 // the producer's id
	epoch   int32 // of the producer, -1 at first
	former  int32 // may be renewed beside epoch, -1: none
	state   txnState
	timeout time.Duration

	// Of the transaction.
	timer      *timer
	partitions []kafka.TopicPartition
	groups     []string
	spans      map[*partitionLog]*span
	markers    int      // left to be written
	waiting    []func() // called with mu held when none is left
}

type txnState string

const (
	txnEmpty          txnState = "Empty"
	txnOngoing        txnState = "Ongoing"
	txnPrepareCommit  txnState = "PrepareCommit"
	txnPrepareAbort   txnState = "PrepareAbort"
	txnCompleteCommit txnState = "CompleteCommit"
	txnCompleteAbort  txnState = "CompleteAbort"
)

// The answers of a coordinator and of partition leaders that have no place
// among kafka's errors.
var (
	errConcurrent = errors.New("concurrent transactions")
	errTxnState   = errors.New("invalid transaction state")
	errSequence   = errors.New("out of order sequence number")
)

// coordination returns that of a transactional id. mu is held.
func (w *world) coordination(id string) *coordination {
	c := w.txns[id]
	if c == nil {
		c = &coordination{w: w, id: id, number: int64(len(w.txns)), epoch: -1, former: -1, state: txnEmpty}
		w.txns[id] = c
	}
	return c
}

// ended reports whether the transaction is decided and markers are left.
func (c *coordination) ended() bool {
	return c.state == txnPrepareCommit || c.state == txnPrepareAbort
}

// init is an InitProducerID request; epoch -1 takes the id over. It answers
// with the new epoch.
func (c *coordination) init(epoch int32, timeout time.Duration) (int32, error) {
	if c.state == txnOngoing { // whoever asks
		c.bump()
		return -1, errConcurrent
	}
	if c.ended() {
		return -1, errConcurrent
	}
	switch {
	case epoch < 0:
		c.former = -1
	case epoch == c.epoch:
		c.former = epoch
	case epoch == c.former:
		return c.epoch, nil
	default:
		return -1, kafka.ErrFenced
	}
	c.epoch++
	c.timeout, c.state = timeout, txnEmpty
	return c.epoch, nil
}

// bump aborts the ongoing transaction and fences its writer.
func (c *coordination) bump() {
	c.former = c.epoch
	c.epoch++
	c.decide(false)
}

// begin is what AddPartitionsToTxn and AddOffsetsToTxn have in common: the
// first one of them starts the transaction.
func (c *coordination) begin(epoch int32) error {
	switch {
	case epoch != c.epoch:
		return kafka.ErrFenced
	case c.ended():
		return errConcurrent
	case c.state == txnOngoing:
		return nil
	}
	c.state = txnOngoing
	c.partitions, c.groups, c.spans = nil, nil, map[*partitionLog]*span{}
	c.timer = c.w.arm(nil, c.timeout, false, func() {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		if c.state == txnOngoing {
			c.bump()
		}
	})
	return nil
}

// addPartition is an AddPartitionsToTxn request.
func (c *coordination) addPartition(epoch int32, tp kafka.TopicPartition) error {
	if _, l := c.w.log(tp); l == nil {
		return &kafka.Error{TopicPartition: tp, Offset: -1, Err: kafka.ErrUnknownTopic}
	}
	if err := c.begin(epoch); err != nil {
		return err
	}
	if !slices.Contains(c.partitions, tp) {
		c.partitions = append(c.partitions, tp)
	}
	return nil
}

// addGroup is an AddOffsetsToTxn request.
func (c *coordination) addGroup(epoch int32, group string) error {
	if err := c.begin(epoch); err != nil {
		return err
	}
	if !slices.Contains(c.groups, group) {
		c.groups = append(c.groups, group)
	}
	return nil
}

// mayWrite is what a partition's leader and a group's coordinator ask before
// they take something in: whether just that transaction is ongoing and they
// are part of it.
func (c *coordination) mayWrite(epoch int32, part bool) error {
	switch {
	case epoch != c.epoch:
		return kafka.ErrFenced
	case c.state != txnOngoing || !part:
		return errTxnState
	}
	return nil
}

// end is an EndTxn request.
func (c *coordination) end(epoch int32, commit bool) error {
	prepare, complete := txnPrepareAbort, txnCompleteAbort
	if commit {
		prepare, complete = txnPrepareCommit, txnCompleteCommit
	}
	switch {
	case epoch != c.epoch:
		return kafka.ErrFenced
	case c.state == txnOngoing:
		c.decide(commit)
		return nil
	case c.state == prepare:
		return errConcurrent
	case c.state == complete:
		return nil
	}
	return errTxnState
}

// decide ends the ongoing transaction. Its markers are written later.
func (c *coordination) decide(commit bool) {
	c.w.clock.stop(c.timer)
	c.state = txnPrepareAbort
	if commit {
		c.state = txnPrepareCommit
	}
	slices.SortFunc(c.partitions, compare)
	slices.Sort(c.groups)
	for _, tp := range c.partitions {
		c.w.markers = append(c.w.markers, &marker{c: c, commit: commit, TopicPartition: tp})
	}
	for _, g := range c.groups {
		c.w.markers = append(c.w.markers, &marker{c: c, commit: commit, TopicPartition: kafka.TopicPartition{Partition: -1}, group: g})
	}
	c.markers = len(c.partitions) + len(c.groups)
	c.w.changed()
}

// marked is called when a marker is written, or has nowhere to go.
func (c *coordination) marked(commit bool) {
	if c.markers--; c.markers > 0 {
		return
	}
	c.state = txnCompleteAbort
	if commit {
		c.state = txnCompleteCommit
	}
	waiting := c.waiting
	c.waiting = nil
	for _, f := range waiting {
		f()
	}
}
