package protocodec

import (
	"reflect"

	protov1 "github.com/golang/protobuf/proto" //nolint:staticcheck // deprecated, and what messages of the old generation implement
	"google.golang.org/protobuf/proto"

	"github.com/rekastream/reka/codec"
)

// Message is what a pointer to M must be: a generated message of either
// generation. Where the type of the message is given, the compiler finds P.
type Message[M any] interface {
	*M
	protov1.Message
}

// Option is an option of Proto.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	deterministic bool
}

// WithDeterministic says whether equal messages are to have equal encodings
// within one build of a program, which costs the sorting of maps. Default:
// true, because operations on tables compare encoded values to see whether a
// row has changed.
func WithDeterministic(yes bool) Option {
	return optionFunc(func(c *config) { c.deterministic = yes })
}

// Proto returns the codec of messages of type M, which hands out pointers to
// them: Proto[pb.User]() is a codec.Codec[*pb.User].
//
// A nil message has no encoding: the way to delete a row is to delete it. No
// bytes at all are the message without fields. Fields that M does not know
// are kept and written again. Messages that lack required fields are errors.
func Proto[M any, P Message[M]](opts ...Option) codec.Codec[P] {
	cfg := config{deterministic: true}
	for _, o := range opts {
		o.apply(&cfg)
	}
	return protoCodec[M, P]{
		name:    "protobuf " + reflect.TypeFor[M]().String(),
		marshal: proto.MarshalOptions{Deterministic: cfg.deterministic},
		// Lazy decoding would keep the bytes, which belong to the caller.
		unmarshal: proto.UnmarshalOptions{NoLazyDecoding: true},
	}
}

type protoCodec[M any, P Message[M]] struct {
	name      string
	marshal   proto.MarshalOptions
	unmarshal proto.UnmarshalOptions
}

func (c protoCodec[M, P]) Append(dst []byte, v P) ([]byte, error) {
	if (*M)(v) == nil {
		return dst, &codec.Error{Codec: c.name, Found: "nil", Want: "a message"}
	}
	b, err := c.marshal.MarshalAppend(dst, protov1.MessageV2(v))
	if err != nil {
		return dst, &codec.Error{Codec: c.name, Err: err}
	}
	return b, nil
}

func (c protoCodec[M, P]) Decode(b []byte) (P, error) {
	v := P(new(M))
	if err := c.unmarshal.Unmarshal(b, protov1.MessageV2(v)); err != nil {
		return nil, &codec.Error{Codec: c.name, Err: err}
	}
	return v, nil
}
