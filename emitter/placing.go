package emitter

import (
	"time"

	"github.com/rekastream/reka/kafka"
)

// adopt makes a partition count known and places what waits for it. The
// partitioner runs outside the lock, so what came meanwhile takes another
// round; the buffer bounds their number.
func (s *sink) adopt(n int32) {
	var queue []*batch
	for {
		s.mu.Lock()
		if len(s.unplaced) == 0 {
			break
		}
		more := s.unplaced
		s.unplaced = nil
		s.mu.Unlock()
		for _, b := range more {
			s.placeAll(b, n)
		}
		queue = append(queue, more...)
	}
	cut := s.resize(n)
	var refused []refusedRecord
	for _, b := range queue {
		refused = s.distribute(b, refused)
	}
	s.urgent = s.urgent || len(queue) > 0
	s.mu.Unlock()
	for _, x := range refused {
		s.fail(x.batch, x.err)
	}
	for _, b := range cut {
		s.fail(b, kafka.ErrUnknownTopic)
	}
	s.registerPlaced()
}

// placeAll places the records of an unplaced batch among n partitions.
func (s *sink) placeAll(b *batch, n int32) {
	for i, r := range b.results {
		if key := b.records[i].Key; r.partition < 0 && key != nil {
			r.partition = s.place.Partition(key, n)
		}
	}
}

// resize returns what was to go to partitions that are gone. REQUIRES: mu.
func (s *sink) resize(n int32) (cut []*batch) {
	for int32(len(s.lanes)) > n {
		last := len(s.lanes) - 1
		cut = append(cut, s.lanes[last].unsent()...)
		s.lanes = s.lanes[:last]
	}
	for p := int32(len(s.lanes)); p < n; p++ {
		s.lanes = append(s.lanes, &lane{partition: p})
	}
	s.count.Store(n)
	return cut
}

// refusedRecord is an unplaced record that turned out not to be writable,
// alone in a batch.
type refusedRecord struct {
	batch *batch
	err   error
}

// distribute moves the records of an unplaced batch to their lanes. REQUIRES:
// mu.
func (s *sink) distribute(b *batch, refused []refusedRecord) []refusedRecord {
	for i, r := range b.results {
		rec := b.records[i]
		size := rec.Size()
		var err error
		switch {
		case r.partition >= int32(len(s.lanes)) || r.partition < inTurn:
			err = kafka.ErrUnknownTopic
		case s.limit > 0 && size > s.limit:
			err = kafka.ErrTooLarge
		}
		if err != nil {
			alone := newBatch(nil)
			alone.add(rec, r, size)
			refused = append(refused, refusedRecord{alone, err})
			continue
		}
		s.openLane(r, r.partition, size).add(rec, r, size)
	}
	// The records live on in other batches, and the bytes with them.
	b.chunk = nil
	b.recycle()
	return refused
}

// watchAge arms the timer that fails unplaced records which get too old.
func (s *sink) watchAge() {
	o := &s.owner
	if o.expiry != nil {
		return
	}
	s.mu.Lock()
	n := len(s.unplaced)
	var since time.Time
	if n > 0 {
		since = s.unplaced[0].since
	}
	s.mu.Unlock()
	if n == 0 {
		return
	}
	clock := s.driver.Clock()
	d := since.Add(s.cfg.deliveryTimeout).Sub(clock.Now())
	o.expiry = clock.AfterFunc(max(d, 0), func() { s.inbox.Put(event{kind: expired}) })
}

// expire fails unplaced records that are too old.
func (s *sink) expire() {
	s.owner.expiry = nil
	now := s.driver.Clock().Now()
	var old []*batch
	s.mu.Lock()
	for len(s.unplaced) > 0 && now.Sub(s.unplaced[0].since) >= s.cfg.deliveryTimeout {
		old = append(old, s.unplaced[0])
		s.unplaced = s.unplaced[1:]
	}
	none := len(s.unplaced) == 0
	s.mu.Unlock()
	for _, b := range old {
		s.fail(b, kafka.ErrDeliveryTimeout)
	}
	if none {
		s.registerPlaced()
	}
}
