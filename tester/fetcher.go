package tester

import (
	"slices"
	"sync"

	"github.com/rekastream/reka/kafka"
)

// fetcher is a kafka.Fetcher. The pump delivers for it.
type fetcher struct {
	inc *incarnation
	cfg kafka.FetcherConfig

	// delivering is held while Deliver runs. It is taken before world.mu.
	delivering sync.Mutex

	// Guarded by world.mu.
	closed  bool
	follows map[kafka.TopicPartition]*follower
	total   int // bytes delivered and not released
}

// follower is one followed partition on one set of terms. All of it is
// guarded by world.mu.
type follower struct {
	f *fetcher
	kafka.Follow
	age      int64
	told     bool // the first answer was given
	marks    marks
	read     int32 // leader epoch of what was delivered last, -1: nothing
	bytes    int   // delivered and not released
	waiting  bool  // a delay runs
	decided  bool  // faults were asked about the next delivery
	replaced bool  // no longer followed on these terms
}

// marks are what was last told of a partition.
type marks struct{ end, stable, start int64 }

func (l *partitionLog) marks() marks { return marks{l.end, l.stable(), l.start} }

// limit is up to where the follower may read. mu is held.
func (n *follower) limit(l *partitionLog) int64 {
	if n.f.cfg.Isolation == kafka.ReadCommitted {
		return l.stable()
	}
	return l.end
}

// shows reports whether the follower sees an entry below its limit.
func (n *follower) shows(e *entry) bool {
	return !e.control && (n.f.cfg.Isolation == kafka.ReadUncommitted || !e.aborted())
}

// Follow implements kafka.Fetcher.
func (f *fetcher) Follow(terms kafka.Follow) {
	f.delivering.Lock()
	defer f.delivering.Unlock()
	w := f.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.closed || f.inc.dead || f.inc.closed {
		return
	}
	f.drop(terms.TopicPartition)
	n := &follower{f: f, Follow: terms, age: w.nextID(), read: -1}
	f.follows[terms.TopicPartition] = n
	i, _ := slices.BinarySearchFunc(w.follows, n, compareFollowers)
	w.follows = slices.Insert(w.follows, i, n)
	w.changed()
}

func compareFollowers(a, b *follower) int {
	if c := compare(a.TopicPartition, b.TopicPartition); c != 0 {
		return c
	}
	return int(a.age - b.age)
}

// drop ends the following of a partition. mu is held.
func (f *fetcher) drop(tp kafka.TopicPartition) {
	old := f.follows[tp]
	if old == nil {
		return
	}
	old.replaced = true
	delete(f.follows, tp)
	w := f.inc.w
	if i := slices.Index(w.follows, old); i >= 0 {
		w.follows = slices.Delete(w.follows, i, i+1)
	}
}

// Unfollow implements kafka.Fetcher.
func (f *fetcher) Unfollow(tps ...kafka.TopicPartition) {
	f.delivering.Lock()
	defer f.delivering.Unlock()
	f.inc.w.mu.Lock()
	defer f.inc.w.mu.Unlock()
	for _, tp := range tps {
		f.drop(tp)
	}
}

// Close implements kafka.Fetcher.
func (f *fetcher) Close() error {
	f.delivering.Lock()
	defer f.delivering.Unlock()
	w := f.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	f.closed = true
	for tp := range f.follows {
		f.drop(tp)
	}
	if i := slices.Index(f.inc.fetchers, f); i >= 0 {
		f.inc.fetchers = slices.Delete(f.inc.fetchers, i, i+1)
	}
	return nil
}

// nextDelivery returns the first follower for whom something is there. mu is
// held.
func (w *world) nextDelivery() *follower {
	for _, f := range w.follows {
		if f.due() {
			return f
		}
	}
	return nil
}

// due reports whether there is something to deliver. mu is held.
func (n *follower) due() bool {
	if n.f.inc.paused || n.waiting {
		return false
	}
	t, l := n.f.inc.w.log(n.TopicPartition)
	if l == nil || !n.TopicID.IsZero() && n.TopicID != t.id || n.Position < l.start || n.Position > l.end {
		return true // an error
	}
	if !n.told || n.marks.start != l.start {
		return true
	}
	if n.Position >= n.limit(l) {
		return n.marks != l.marks()
	}
	return n.bytes < n.f.cfg.PartitionBytes && n.f.total < n.f.cfg.TotalBytes
}

// deliver delivers what is there.
func (n *follower) deliver() {
	f, w := n.f, n.f.inc.w
	if !n.mayDeliver() {
		return
	}
	f.delivering.Lock()
	defer f.delivering.Unlock()
	w.mu.Lock()
	if n.replaced || f.inc.dead || !n.due() {
		w.mu.Unlock()
		return
	}
	n.decided = false
	b := n.take()
	w.mu.Unlock()
	n.Deliver(b)
}

// mayDeliver asks the faults about a delivery, once.
func (n *follower) mayDeliver() bool {
	f, w := n.f, n.f.inc.w
	if n.decided { // a delay is over; only the pump touches it
		return true
	}
	a := w.decide(Call{Op: OpFetch, Instance: f.inc.name, Topic: n.Topic, Partition: n.Partition})
	switch a.kind {
	case crashBefore, crashWithin:
		f.inc.kill()
		return false
	case crashAfter:
		n.decided = true
		n.deliver()
		f.inc.kill()
		return false
	case failBefore, failAfter:
		f.delivering.Lock()
		defer f.delivering.Unlock()
		w.mu.Lock()
		if n.replaced {
			w.mu.Unlock()
			return false
		}
		b := n.failed(a.err)
		w.mu.Unlock()
		n.Deliver(b)
		return false
	case delayed:
		w.mu.Lock()
		defer w.mu.Unlock()
		n.waiting, n.decided = true, true
		w.arm(f.inc, a.delay, false, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			n.waiting = false
			w.changed()
		})
		return false
	}
	return true
}

// take makes the next batch and moves the position. mu is held.
func (n *follower) take() *kafka.Batch {
	f := n.f
	t, l := f.inc.w.log(n.TopicPartition)
	switch {
	case l == nil:
		return n.failed(&kafka.Error{TopicPartition: n.TopicPartition, Offset: -1, Err: kafka.ErrUnknownTopic})
	case !n.TopicID.IsZero() && n.TopicID != t.id:
		return n.failed(&kafka.Error{TopicPartition: n.TopicPartition, Offset: -1, Err: kafka.ErrTopicChanged})
	case n.Position < l.start || n.Position > l.end:
		return n.failed(&kafka.OffsetOutOfRangeError{TopicPartition: n.TopicPartition, Position: n.Position,
			LogStart: l.start, HighWatermark: l.end})
	}
	if end, cut := n.cut(l); cut {
		return n.failed(&kafka.TruncatedError{End: end, OffsetOutOfRangeError: kafka.OffsetOutOfRangeError{
			TopicPartition: n.TopicPartition, Position: n.Position, LogStart: l.start, HighWatermark: l.end}})
	}
	n.told, n.marks = true, l.marks()
	b := kafka.Batch{TopicPartition: n.TopicPartition, LeaderEpoch: -1,
		HighWatermark: l.end, LastStable: l.stable(), LogStart: l.start}
	i, limit := l.from(n.Position), l.from(n.limit(l))
	room := min(f.cfg.PartitionBytes-n.bytes, f.cfg.TotalBytes-f.total)
	for ; i < limit && b.Bytes < room; i++ {
		e := &l.entries[i]
		if b.LeaderEpoch >= 0 && b.LeaderEpoch != e.epoch {
			break // another batch has the rest
		}
		n.Position, b.LeaderEpoch = e.Offset+1, e.epoch
		if n.shows(e) {
			b.Records = append(b.Records, e.Record)
			b.Bytes += e.Size()
		}
	}
	if i >= limit && room > 0 {
		n.Position = max(n.Position, n.limit(l)) // over what was compacted away
	}
	b.Position = n.Position
	if b.LeaderEpoch >= 0 {
		n.read = b.LeaderEpoch
	}
	n.bytes += b.Bytes
	f.total += b.Bytes
	size := b.Bytes
	return kafka.NewBatch(b, func() { n.release(size) })
}

// cut reports whether the next entry tells, by its leader epoch, that the log
// was cut off below the position, and where. mu is held.
func (n *follower) cut(l *partitionLog) (end int64, cut bool) {
	i := l.from(n.Position)
	if n.read < 0 || i >= l.from(n.limit(l)) || l.entries[i].epoch <= n.read {
		return 0, false
	}
	_, end = l.epochEnd(n.read)
	return end, end < n.Position
}

// failed makes the last batch of a partition. mu is held.
func (n *follower) failed(err error) *kafka.Batch {
	b := kafka.Batch{TopicPartition: n.TopicPartition, Position: n.Position, LeaderEpoch: -1, Err: err,
		HighWatermark: n.marks.end, LastStable: n.marks.stable, LogStart: n.marks.start}
	if _, l := n.f.inc.w.log(n.TopicPartition); l != nil {
		b.HighWatermark, b.LastStable, b.LogStart = l.end, l.stable(), l.start
	}
	n.f.drop(n.TopicPartition)
	return kafka.NewBatch(b, func() {})
}

func (n *follower) release(size int) {
	w := n.f.inc.w
	w.mu.Lock()
	defer w.mu.Unlock()
	n.bytes -= size
	n.f.total -= size
	w.changed()
}
