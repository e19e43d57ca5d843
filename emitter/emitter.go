package emitter

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
)

// Emitter writes records of one topic. It may be used from any number of
// goroutines.
type Emitter[T any] struct {
	codec codec.Codec[T]
	sink  *sink
}

// New returns an emitter for a stream or a table. It validates and does not
// dial; the first Emit does. Close it, or give it to reka.Run.
func New[T any](c *kafka.Client, t reka.Topic[T], opts ...Option) (*Emitter[T], error) {
	switch {
	case c == nil:
		return nil, errors.New("emitter: no client given")
	case t == nil || t.Name() == "":
		return nil, errors.New("emitter: no topic given")
	case t.Codec() == nil:
		return nil, fmt.Errorf("emitter: topic %s has no codec", t.Name())
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("emitter: topic %s: %w", t.Name(), err)
	}
	return &Emitter[T]{codec: t.Codec(), sink: newSink(c, t.Name(), cfg)}, nil
}

// Emit writes a record in the background. The value is encoded before Emit
// returns; what it points to may change afterwards. Emit blocks only while
// the buffer is full, until ctx ends. An error of Emit itself says that the
// record was not accepted: a codec's error, kafka.ErrTooLarge,
// kafka.ErrUnknownTopic for a topic that does not exist, kafka.ErrClosed,
// the context's. What happens later is told by the result.
func (e *Emitter[T]) Emit(ctx context.Context, key string, v T, o ...reka.EmitOption) (*Result, error) {
	s := scratches.Get().(*scratch)
	value, err := e.codec.Append(s.value[:0], v)
	if err != nil {
		scratches.Put(s)
		return nil, e.sink.fault([]byte(key), -1, fmt.Errorf("encode: %w", err))
	}
	if value == nil {
		value = s.value[:0]
	}
	s.value = value
	r, err := e.sink.accept(ctx, s, draft{key: key, value: value, say: reka.NewEmission(o)})
	s.giveBack()
	return r, err
}

// EmitSync is Emit and Wait: it returns when the record is acknowledged by
// all replicas in sync, or has failed. If ctx ends before that the record may
// still be written.
func (e *Emitter[T]) EmitSync(ctx context.Context, key string, v T, o ...reka.EmitOption) (Receipt, error) {
	r, err := e.Emit(ctx, key, v, o...)
	if err != nil {
		return Receipt{}, err
	}
	return r.Wait(ctx)
}

// Delete writes a record without a value, which deletes the key's row of a
// table. In everything else it is like Emit.
func (e *Emitter[T]) Delete(ctx context.Context, key string, o ...reka.EmitOption) (*Result, error) {
	s := scratches.Get().(*scratch)
	r, err := e.sink.accept(ctx, s, draft{key: key, say: reka.NewEmission(o)})
	s.giveBack()
	return r, err
}

// Flush waits until everything that was emitted before the call is
// acknowledged or has failed. It returns the error of the first record that
// failed since the Flush before, or the context's: so a program that looks at
// no result still learns of a loss.
func (e *Emitter[T]) Flush(ctx context.Context) error { return e.sink.flush(ctx) }

// Close refuses further records, flushes, and ends the emitter. When ctx
// ends first, what is left fails with kafka.ErrClosed and Close returns an
// *UndeliveredError; otherwise it returns what Flush would. It may be called
// more than once and while others emit; every call waits for the end.
func (e *Emitter[T]) Close(ctx context.Context) error { return e.sink.close(ctx) }

// Run waits until ctx ends and closes the emitter, within the stop timeout.
// It makes the emitter a reka.Runner, which is closed in its turn; an emitter
// does not need it to work. It returns nil if every record was acknowledged
// or had failed, else an error that is reka.ErrStopTimeout.
func (e *Emitter[T]) Run(ctx context.Context) error { return e.sink.run(ctx) }

// scratch is the room in which one call encodes.
type scratch struct{ key, value []byte }

// maxScratch is how much of it is worth keeping, in bytes.
const maxScratch = 1 << 20

var scratches = sync.Pool{New: func() any { return &scratch{value: make([]byte, 0, 256)} }}

func (s *scratch) giveBack() {
	if cap(s.key)+cap(s.value) <= maxScratch {
		scratches.Put(s)
	}
}
