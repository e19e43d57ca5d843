package processor

import (
	"bytes"
	"fmt"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

// Sink is the handle of an output topic. Its methods are called from
// callbacks of graphs that declare it.
type Sink[T any] struct {
	topic reka.Topic[T]
	binding
}

// Output declares a topic that callbacks emit to.
func Output[T any](t reka.Topic[T]) *Sink[T] { return &Sink[T]{topic: t} }

func (s *Sink[T]) declare(d *declaration) error {
	if s == nil {
		return fmt.Errorf("output: nil handle")
	}
	if err := checkTopic(s.topic); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if err := d.once(s, "output "+s.topic.Name()); err != nil {
		return err
	}
	d.slots[s] = d.output(s.topic.Name())
	return nil
}

// Emit writes a record when the callback has succeeded. The value is encoded
// before Emit returns. An error (of the codec, a record that the topic does
// not take) sticks to the record being processed: see Context.Failed.
func (s *Sink[T]) Emit(ctx *Context, key string, v T, opts ...reka.EmitOption) {
	if slot, ok := s.slot(ctx, s, "output "+s.name()); ok {
		emit(ctx, emission[T]{slot: slot, topic: s.topic.Name(), codec: s.topic.Codec(), key: key}, &v, opts)
	}
}

// Delete writes a record without a value: a tombstone, if the topic is a
// table.
func (s *Sink[T]) Delete(ctx *Context, key string, opts ...reka.EmitOption) {
	if slot, ok := s.slot(ctx, s, "output "+s.name()); ok {
		emit(ctx, emission[T]{slot: slot, topic: s.topic.Name(), codec: s.topic.Codec(), key: key}, nil, opts)
	}
}

func (s *Sink[T]) name() string {
	if s.topic == nil {
		return ""
	}
	return s.topic.Name()
}

// emission is where and how a value is emitted.
type emission[T any] struct {
	slot  int
	topic string
	codec codec.Codec[T]
	key   string
}

// emit encodes v, nil for a null, and stages it.
func emit[T any](ctx *Context, to emission[T], v *T, opts []reka.EmitOption) {
	e := task.Emission{Time: -1, Partition: -1}
	ctx.keyBuf = append(ctx.keyBuf[:0], to.key...)
	e.Key = ctx.keyBuf
	if e.Key == nil {
		e.Key = []byte{}
	}
	if len(opts) > 0 && !applyEmit(ctx, &e, to.topic, opts) {
		return
	}
	if v != nil {
		b, err := to.codec.Append(ctx.valueBuf[:0], *v)
		if err != nil {
			ctx.rec.Stick(&kafka.Error{TopicPartition: kafka.TopicPartition{Topic: to.topic, Partition: -1}, Offset: -1,
				Key: []byte(to.key), Err: fmt.Errorf("encode: %w", err)})
			return
		}
		if b == nil {
			b = []byte{}
		}
		ctx.valueBuf, e.Value = b, b
	}
	ctx.rec.Emit(to.slot, e)
}

// applyEmit applies emit options. It reports false if they contradict.
func applyEmit(ctx *Context, e *task.Emission, topic string, opts []reka.EmitOption) bool {
	o := reka.NewEmission(opts)
	if !o.Time.IsZero() {
		e.Time = o.Time.UnixMilli()
		if e.Time < 0 {
			ctx.rec.Stick(fmt.Errorf("emit to %s: time %v lies before 1970", topic, o.Time))
			return false
		}
	}
	if o.NullKey {
		if len(e.Key) > 0 {
			ctx.rec.Stick(fmt.Errorf("emit to %s: a null key and key %s", topic, kafka.QuoteKey(e.Key)))
			return false
		}
		e.Key = nil
	}
	if e.Partition = o.Partition; e.Partition < -1 {
		ctx.rec.Stick(&kafka.Error{TopicPartition: kafka.TopicPartition{Topic: topic, Partition: e.Partition}, Offset: -1,
			Key: bytes.Clone(e.Key), Err: fmt.Errorf("emit: %w: partition %d", kafka.ErrUnknownTopic, e.Partition)})
		return false
	}
	for _, h := range o.Headers {
		e.Headers = append(e.Headers, kafka.Header{Key: h.Name, Value: h.Value})
	}
	return true
}
