package tester

import (
	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

// InputTopic puts records into a topic, as somebody outside would.
type InputTopic[T any] struct {
	t     *Tester
	topic reka.Topic[T]
}

// Input returns a handle that writes to a topic. A topic that does not exist
// is created: a table's compacted.
func Input[T any](t *Tester, topic reka.Topic[T]) *InputTopic[T] {
	t.tb.Helper()
	t.enter()
	t.ensure(specOf(topic))
	return &InputTopic[T]{t, topic}
}

// specOf describes a topic as a handle creates it.
func specOf[T any](topic reka.Topic[T]) kafka.TopicSpec {
	s := kafka.TopicSpec{Name: topic.Name()}
	if _, ok := topic.(reka.Table[T]); ok {
		s.Configs = kafka.ChangelogConfigs()
	}
	return s
}

// Send writes one record. It is in the log when Send returns; what follows
// from it happens with the next thing that settles. The time of the record is
// the clock's, its partition the partitioner's, unless options say otherwise.
func (in *InputTopic[T]) Send(key string, v T, opts ...reka.EmitOption) {
	in.t.tb.Helper()
	value, err := in.topic.Codec().Append([]byte{}, v)
	if err != nil {
		in.t.tb.Fatalf("tester: send to %s: encode the value of key %q: %v", in.topic.Name(), key, err)
	}
	in.send(key, value, opts)
}

// Delete writes a record without a value.
func (in *InputTopic[T]) Delete(key string, opts ...reka.EmitOption) {
	in.t.tb.Helper()
	in.send(key, nil, opts)
}

func (in *InputTopic[T]) send(key string, value []byte, opts []reka.EmitOption) {
	in.t.tb.Helper()
	e := reka.NewEmission(opts)
	r := kafka.Record{Key: []byte(key), Value: value, Timestamp: in.t.Now().UnixMilli()}
	if e.NullKey {
		r.Key = nil
	}
	if !e.Time.IsZero() {
		r.Timestamp = e.Time.UnixMilli()
	}
	for _, h := range e.Headers {
		r.Headers = append(r.Headers, kafka.Header{Key: h.Name, Value: h.Value})
	}
	p := e.Partition
	if p < 0 {
		p = in.t.place(in.topic.Name(), r.Key)
	}
	in.t.SendRaw(in.topic.Name(), p, r)
}

// place chooses a partition for a key; records without one go to the
// partitions in turn.
func (t *Tester) place(topic string, key []byte) int32 {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	n := int32(1)
	if tp := t.w.topics[topic]; tp != nil {
		n = int32(len(tp.logs))
	}
	if key == nil {
		t.turn++
		return t.turn % n
	}
	return t.w.defaults.partitioner.Partition(key, n)
}

// SendRaw writes records as they are, null keys and values included, to one
// partition, and returns the offset of the first. A negative timestamp stands
// for the clock's time.
func (t *Tester) SendRaw(topic string, partition int32, records ...kafka.Record) int64 {
	t.tb.Helper()
	t.enter()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	tp := kafka.TopicPartition{Topic: topic, Partition: partition}
	tt, l := t.w.log(tp)
	if l == nil {
		t.tb.Fatalf("tester: send to %s: %v", tp, kafka.ErrUnknownTopic)
	}
	return t.w.append(tt, l, records)
}
