package tester

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/rekastream/reka/kafka"
)

// storedOffset is an offset as the coordinator keeps it.
type storedOffset struct {
	kafka.CommittedOffset
	seq   int64 // order of all commits of the world
	epoch int32 // of the producer, in a transaction
}

// errUnstable: a transaction has an offset pending.
var errUnstable = errors.New("unstable offset commit")

// store keeps an offset that is committed without a transaction. mu is held.
func (g *group) store(o kafka.CommittedOffset) {
	g.w.sequence++
	g.offsets[o.TopicPartition] = storedOffset{CommittedOffset: o, seq: g.w.sequence}
}

// txnCommit is a TxnOffsetCommit request. Unlike a commit of its own it
// passes while the group waits for its leader's plan. The errors of single
// partitions are written into offsets; the others stay pending. mu is held.
func (g *group) txnCommit(c *coordination, epoch int32, by kafka.Committer, offsets []kafka.CommittedOffset) error {
	if err := c.mayWrite(epoch, slices.Contains(c.groups, g.name)); err != nil {
		return err
	}
	if by.MemberID != "" || by.InstanceID != "" || by.Generation >= 0 {
		if _, err := g.check(by.MemberID, by.InstanceID); err != nil {
			return err
		}
		if by.Generation != g.generation {
			return kafka.ErrIllegalGeneration
		}
	}
	for i := range offsets {
		o := &offsets[i]
		if o.Err = g.judge(*o); o.Err != nil {
			continue
		}
		if g.undecided[c] == nil {
			g.undecided[c] = map[kafka.TopicPartition]storedOffset{}
		}
		g.w.sequence++
		g.undecided[c][o.TopicPartition] = storedOffset{*o, g.w.sequence, epoch}
	}
	return nil
}

// endTransaction is the marker: what is pending becomes the group's, unless
// something newer was committed meanwhile, or is forgotten. mu is held.
func (g *group) endTransaction(c *coordination, commit bool) {
	for tp, o := range g.undecided[c] {
		if commit && o.seq > g.offsets[tp].seq {
			g.offsets[tp] = o
		}
	}
	delete(g.undecided, c)
	g.settled()
}

// forget drops the offsets of a topic that is deleted. mu is held.
func (g *group) forget(topic string) {
	gone := func(tp kafka.TopicPartition, _ storedOffset) bool { return tp.Topic == topic }
	maps.DeleteFunc(g.offsets, gone)
	for _, pending := range g.undecided {
		maps.DeleteFunc(pending, gone)
	}
	g.settled()
}

// isUnstable reports whether an offset of one of the partitions is pending.
// mu is held.
func (g *group) isUnstable(tps []kafka.TopicPartition) bool {
	for _, pending := range g.undecided {
		for _, tp := range tps {
			if _, ok := pending[tp]; ok {
				return true
			}
		}
	}
	return false
}

// settled lets those ask again who wait for pending offsets. mu is held.
func (g *group) settled() {
	waiting := g.unstable
	g.unstable = nil
	for _, wt := range waiting {
		g.w.wakeWaiter(wt, nil)
	}
}

// awaitStable waits until asking again may help.
func (m *member) awaitStable(ctx context.Context, tps []kafka.TopicPartition) error {
	w := m.inc.w
	w.mu.Lock()
	if m.closed {
		w.mu.Unlock()
		return kafka.ErrClosed
	}
	g := w.group(m.cfg.Group)
	if err := m.inc.usable(ctx); err != nil || !g.isUnstable(tps) {
		w.mu.Unlock()
		return err
	}
	wt := &waiter{inc: m.inc, ctx: ctx, woken: make(chan error, 1)}
	g.unstable = append(g.unstable, wt)
	return w.park(wt)
}
