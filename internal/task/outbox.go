package task

import (
	"slices"
	"sync"

	"github.com/rekastream/reka/kafka"
)

const (
	// outboxBytes is what is gathered for one output partition before it
	// leaves in the middle of a turn.
	outboxBytes = 256 << 10
	// flyingBytes bounds what a task has handed to the producer and is not
	// answered: two full batches, so that one is gathered while the other is
	// on its way. More would only be memory to fill and to collect.
	flyingBytes = 2 << 20
	// chunkMin and chunkMax bound the chunks that output bytes are copied to,
	// but for bytes that are larger themselves.
	chunkMin = 32 << 10
	chunkMax = 1 << 20
)

// outbox gathers the outputs of finished records, and of the record at hand,
// for one partition. Owned by the task.
type outbox struct {
	target kafka.TopicPartition
	slab   *slab // nil: empty
	bytes  int
}

// slab holds outputs on their way to one partition. The task owns it until it
// is sent, then the producer until all of it is acked; then it is used again,
// by any task. One of which a part was refused is not. With exactly once it is
// part of a sealed epoch instead, until that is committed.
type slab struct {
	target  kafka.TopicPartition
	records []kafka.Record
	origins []origin
	chunks  [][]byte // hold keys and values
	chunk   int      // the one that is being filled
	epoch   *epoch   // that waits for the records
	left    int      // records without an answer
	bytes   int      // of all records
	refused bool
	done    func(kafka.Run) // answer, bound once
}

// slabs are free ones. What a burst needed is collected when it is over.
var slabs sync.Pool

func newSlab() *slab {
	if s, ok := slabs.Get().(*slab); ok {
		return s
	}
	s := &slab{}
	s.done = s.answer
	return s
}

func (o *outbox) empty() bool { return o.slab == nil || len(o.slab.records) == 0 }

// add appends a record; its key and value are copied.
func (o *outbox) add(rec kafka.Record, from origin) {
	if o.slab == nil {
		o.slab = newSlab()
	}
	s := o.slab
	o.bytes += rec.Size()
	rec.Key, rec.Value = s.copied(rec.Key), s.copied(rec.Value)
	s.records = append(s.records, rec)
	s.origins = append(s.origins, from)
}

// retrace says that the newest record comes of another one than that at hand.
func (o *outbox) retrace(from origin) { o.slab.origins[len(o.slab.origins)-1] = from }

// drop takes the newest record back. Its bytes stay unused.
func (o *outbox) drop() {
	s := o.slab
	n := len(s.records) - 1
	o.bytes -= s.records[n].Size()
	s.records[n] = kafka.Record{}
	s.records, s.origins = s.records[:n], s.origins[:n]
}

// copied keeps b, null as null and empty as empty.
func (s *slab) copied(b []byte) []byte {
	if b == nil {
		return nil
	}
	for s.chunk < len(s.chunks) && len(b) > cap(s.chunks[s.chunk])-len(s.chunks[s.chunk]) {
		s.chunk++
	}
	if s.chunk == len(s.chunks) {
		size := 0
		if s.chunk > 0 {
			size = 2 * cap(s.chunks[s.chunk-1])
		}
		s.chunks = append(s.chunks, make([]byte, 0, max(min(size, chunkMax), chunkMin, len(b))))
	}
	s.chunks[s.chunk] = append(s.chunks[s.chunk], b...)
	c := s.chunks[s.chunk]
	return c[len(c)-len(b) : len(c) : len(c)]
}

// send hands what is gathered to the producer as outputs that e waits for.
func (o *outbox) send(p kafka.Producer, e *epoch) {
	s := o.slab
	s.target, s.epoch, s.left, s.bytes = o.target, e, len(s.records), o.bytes
	o.slab, o.bytes = nil, 0
	e.task.flying.Add(int64(s.bytes))
	e.pending.Add(int64(s.left))
	p.Produce(kafka.Outgoing{TopicPartition: s.target, Records: s.records, Done: s.done})
}

// answer is told, on a goroutine of the producer, what became of a run of the
// records. The runs of one slab come one after the other.
func (s *slab) answer(run kafka.Run) {
	e, n := s.epoch, run.To-run.From
	if run.Err != nil {
		s.refused = true
		e.refuse(&refusal{slab: s, from: run.From, to: run.To, err: run.Err})
	}
	if s.left -= n; s.left == 0 {
		e.task.landed(s.bytes)
		if !s.refused {
			s.free()
		}
	}
	if run.Err == nil {
		e.acked(n)
	}
}

// remove takes records out that will not be written.
func (s *slab) remove(from, to int) {
	s.records = slices.Delete(s.records, from, to)
	s.origins = slices.Delete(s.origins, from, to)
}

// free gives the slab back. A chunk that is larger than others is not kept.
func (s *slab) free() {
	clear(s.records)
	s.records, s.origins, s.epoch = s.records[:0], s.origins[:0], nil
	s.chunks = slices.DeleteFunc(s.chunks, func(c []byte) bool { return cap(c) > chunkMax })
	for i := range s.chunks {
		s.chunks[i] = s.chunks[i][:0]
	}
	s.chunk = 0
	slabs.Put(s)
}

// holdOutputs makes everything gathered part of an epoch.
func (t *Task) holdOutputs(e *epoch) {
	for _, boxes := range t.outboxes {
		for _, o := range boxes {
			if o != nil && !o.empty() {
				o.slab.target = o.target
				e.outputs = append(e.outputs, o.slab)
				o.slab, o.bytes = nil, 0
			}
		}
	}
}

// flooded reports whether too much is on its way. If so, msgRoom comes when
// half of it is answered.
func (t *Task) flooded() bool {
	if t.flying.Load() < flyingBytes {
		return false
	}
	t.stalled.Store(true)
	// What landed in between may have been the last to see to the message.
	return t.flying.Load() > flyingBytes/2 || !t.stalled.CompareAndSwap(true, false)
}

// landed takes answered outputs off. It is called on a goroutine of the
// producer.
func (t *Task) landed(bytes int) {
	if t.flying.Add(-int64(bytes)) <= flyingBytes/2 && t.stalled.CompareAndSwap(true, false) {
		t.box.Put(message{kind: msgRoom})
	}
}
