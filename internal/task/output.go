package task

import (
	"bytes"
	"fmt"

	"github.com/rekastream/reka/kafka"
)

// Emission is a record to be emitted. Key and Value are copied; header values
// are not, and must not change.
type Emission struct {
	Key, Value []byte // nil: null
	Headers    []kafka.Header
	Time       int64 // negative: the time of the record at hand
	Partition  int32 // -1: the client's partitioner, by key
	// PlaceBy is what the partitioner is shown instead of the key. Nil: the key.
	PlaceBy []byte
}

// Emit stages an output to the topic with index target of Env.Outputs.
func (r *Record) Emit(target int, e Emission) {
	if !r.usable() {
		return
	}
	to := &r.task.env.Outputs[target]
	rec := kafka.Record{Key: e.Key, Value: e.Value, Headers: e.Headers, Timestamp: e.Time}
	if e.Time < 0 {
		rec.Timestamp = r.time
	}
	size := rec.Size()
	if to.MaxBytes > 0 && size+batchBytes > to.MaxBytes {
		r.Stick(&kafka.Error{TopicPartition: kafka.TopicPartition{Topic: to.Topic, Partition: -1}, Offset: -1, Key: bytes.Clone(e.Key),
			Err: fmt.Errorf("%w: %d bytes, the topic takes %d", kafka.ErrTooLarge, size, to.MaxBytes)})
		return
	}
	partition := e.Partition
	switch {
	case partition >= to.Partitions:
		r.Stick(&kafka.Error{TopicPartition: kafka.TopicPartition{Topic: to.Topic, Partition: partition}, Offset: -1, Key: bytes.Clone(e.Key),
			Err: fmt.Errorf("%w: the topic has %d partitions", kafka.ErrUnknownTopic, to.Partitions)})
		return
	case partition < 0 && e.PlaceBy != nil:
		partition = r.task.env.Place.Partition(e.PlaceBy, to.Partitions)
	case partition < 0 && e.Key != nil:
		partition = r.task.env.Place.Partition(rec.Key, to.Partitions)
	case partition < 0:
		r.task.turns++
		partition = int32(r.task.turns % uint32(to.Partitions))
	}
	if !r.count(size) {
		return
	}
	box := r.task.outbox(target, partition)
	box.add(rec, r.origin())
	r.emitted = append(r.emitted, box)
}

// batchBytes is what a broker counts for a batch besides its records. Together
// with Record.Size, which rounds up, it sees to it that no record is refused
// that was taken here.
const batchBytes = 61

func (r *Record) origin() origin {
	if r.in == nil {
		return origin{input: -1, offset: -1}
	}
	return origin{input: int32(r.in.rank), offset: r.source.Offset}
}

// newOutboxes returns empty ones: by target, by partition.
func newOutboxes(env *Env) [][]*outbox {
	boxes := make([][]*outbox, len(env.Outputs))
	for i := range env.Outputs {
		boxes[i] = make([]*outbox, env.Outputs[i].Partitions)
	}
	return boxes
}

func (t *Task) outbox(target int, partition int32) *outbox {
	boxes := t.outboxes[target]
	if boxes[partition] == nil {
		boxes[partition] = &outbox{target: kafka.TopicPartition{Topic: t.env.Outputs[target].Topic, Partition: partition}}
	}
	return boxes[partition]
}

// sendOutputs hands gathered outputs to the producer: those that are large,
// or all. Between records only. With exactly once they wait for the seal.
func (t *Task) sendOutputs(all bool) {
	if t.env.HoldOutputs {
		return
	}
	may := false
	for _, boxes := range t.outboxes {
		for _, o := range boxes {
			if o != nil && !o.empty() && (all || o.bytes >= outboxBytes) {
				if may = may || t.mayWrite(); !may {
					return // they stay until the lease is renewed, or vanish with the task
				}
				o.send(t.env.Producer, t.active.epoch)
			}
		}
	}
}

// sendAs hands everything gathered to the producer as outputs that epoch e
// waits for.
func (t *Task) sendAs(e *epoch) {
	for _, boxes := range t.outboxes {
		for _, o := range boxes {
			if o != nil && !o.empty() {
				o.send(t.env.Producer, e)
			}
		}
	}
}

// refuse is told, on a goroutine of the producer, that outputs were not
// written. The task decides what becomes of them and takes them off the
// epoch; a task that has ended cannot, and the epoch is lost.
func (e *epoch) refuse(r *refusal) {
	if !e.task.box.Put(message{kind: msgRefused, epoch: e, refusals: []*refusal{r}}) {
		e.lost.Store(true)
		e.acked(r.to - r.from)
	}
}

// refuseAll is refuse for the outputs of a sealed epoch, which the task has
// again from now on.
func (e *epoch) refuseAll(refusals []*refusal) {
	e.task.box.Put(message{kind: msgRefused, epoch: e, refusals: refusals})
}
