package task

import (
	"fmt"

	"github.com/rekastream/reka/kafka"
)

const (
	// outboxBytes is what is gathered for one output partition before it
	// leaves in the middle of a turn.
	outboxBytes = 256 << 10
	// arenaBytes is the size of the chunks that output bytes are copied to.
	arenaBytes = 64 << 10
)

// outbox gathers the outputs of finished records, and of the record at hand,
// for one partition. Owned by the task.
type outbox struct {
	target  kafka.TopicPartition
	records []kafka.Record
	origins []origin
	bytes   int
}

func (o *outbox) add(rec kafka.Record, from origin) {
	o.records = append(o.records, rec)
	o.origins = append(o.origins, from)
	o.bytes += rec.Size()
}

// drop takes the newest record back.
func (o *outbox) drop() {
	n := len(o.records) - 1
	o.bytes -= o.records[n].Size()
	o.records[n] = kafka.Record{}
	o.records, o.origins = o.records[:n], o.origins[:n]
}

// Emission is a record to be emitted. Key and Value are copied; header values
// are not, and must not change.
type Emission struct {
	Key, Value []byte // nil: null
	Headers    []kafka.Header
	Time       int64 // negative: the time of the record at hand
	Partition  int32 // -1: the client's partitioner, by key
}

// Emit stages an output to the topic with index target of Env.Outputs.
func (r *Record) Emit(target int, e Emission) {
	if !r.usable() {
		return
	}
	to := &r.task.env.Outputs[target]
	rec := kafka.Record{Headers: e.Headers, Timestamp: e.Time}
	if e.Time < 0 {
		rec.Timestamp = r.time
	}
	rec.Key, rec.Value = r.task.copied(e.Key), r.task.copied(e.Value)
	size := rec.Size()
	if to.MaxBytes > 0 && size > to.MaxBytes+recordSlack {
		r.Stick(&kafka.Error{TopicPartition: kafka.TopicPartition{Topic: to.Topic, Partition: -1}, Offset: -1, Key: e.Key,
			Err: fmt.Errorf("%w: %d bytes, the topic takes %d", kafka.ErrTooLarge, size, to.MaxBytes)})
		return
	}
	partition := e.Partition
	switch {
	case partition >= to.Partitions:
		r.Stick(&kafka.Error{TopicPartition: kafka.TopicPartition{Topic: to.Topic, Partition: partition}, Offset: -1, Key: e.Key,
			Err: fmt.Errorf("%w: the topic has %d partitions", kafka.ErrUnknownTopic, to.Partitions)})
		return
	case partition < 0 && e.Key != nil:
		partition = r.task.env.Place.Partition(rec.Key, to.Partitions)
	case partition < 0:
		r.task.turns++
		partition = int32(r.task.turns % uint32(to.Partitions)) //nolint:gosec // below the partition count
	}
	if !r.count(size) {
		return
	}
	box := r.task.outbox(target, partition)
	box.add(rec, r.origin())
	r.emitted = append(r.emitted, box)
}

// recordSlack is what Record.Size may overestimate.
const recordSlack = 32

func (r *Record) origin() origin {
	if r.in == nil {
		return origin{input: -1, offset: -1}
	}
	return origin{input: int32(r.in.rank), offset: r.source.Offset} //nolint:gosec // a handful of inputs
}

// copied keeps b for an output, null as null and empty as empty.
func (t *Task) copied(b []byte) []byte {
	if b == nil {
		return nil
	}
	if len(b) > cap(t.arena)-len(t.arena) {
		t.arena = make([]byte, 0, max(arenaBytes, len(b)))
	}
	n := len(t.arena)
	t.arena = append(t.arena, b...)
	return t.arena[n:len(t.arena):len(t.arena)]
}

func (t *Task) outbox(target int, partition int32) *outbox {
	boxes := t.outboxes[target]
	if boxes[partition] == nil {
		boxes[partition] = &outbox{target: kafka.TopicPartition{Topic: t.env.Outputs[target].Topic, Partition: partition}}
	}
	return boxes[partition]
}

// sendOutputs hands gathered outputs to the producer: those that are large,
// or all. Between records only.
func (t *Task) sendOutputs(all bool) {
	for _, boxes := range t.outboxes {
		for _, o := range boxes {
			if o != nil && len(o.records) > 0 && (all || o.bytes >= outboxBytes) {
				t.send(o, t.active.epoch)
			}
		}
	}
}

// sendAs hands everything gathered to the producer as outputs that epoch e
// waits for. Epochs commit in order, so those of later records among them are
// acked before their own epoch commits.
func (t *Task) sendAs(e *epoch) {
	for _, boxes := range t.outboxes {
		for _, o := range boxes {
			if o != nil && len(o.records) > 0 {
				t.send(o, e)
			}
		}
	}
}

func (t *Task) send(o *outbox, e *epoch) {
	target, records, origins := o.target, o.records, o.origins
	e.pending.Add(int64(len(records)))
	o.records = make([]kafka.Record, 0, min(len(records)*5/4+1, 8192))
	o.origins = make([]origin, 0, cap(o.records))
	o.bytes = 0
	t.env.Producer.Produce(kafka.Outgoing{TopicPartition: target, Records: records, Done: func(run kafka.Run) {
		if run.Err == nil {
			e.acked(run.To - run.From)
			return
		}
		t.refuse(e, &refusal{target, records[run.From:run.To], origins[run.From:run.To], run.Err})
	}})
}

// refuse is told, on a goroutine of the producer, that outputs were not
// written. The task decides what becomes of them and takes them off the
// epoch; a task that has ended cannot, and the epoch is lost.
func (t *Task) refuse(e *epoch, r *refusal) {
	if !t.box.Put(message{kind: msgRefused, epoch: e, refusal: r}) {
		e.lost.Store(true)
		e.acked(len(r.records))
	}
}
