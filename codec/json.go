package codec

import (
	"encoding/json"
	"reflect"
)

// JSON encodes as encoding/json does. Decode refuses anything but white space
// behind the value, and ignores fields that T does not have.
//
// Where T is a pointer, nil has no encoding and the text null is refused: the
// way to delete a row is to delete it.
func JSON[T any]() Codec[T] {
	t := reflect.TypeFor[T]()
	return jsonCodec[T]{
		name:    "JSON of " + t.String(),
		pointer: t.Kind() == reflect.Pointer,
		plain:   plainType(t),
	}
}

type jsonCodec[T any] struct {
	name    string
	pointer bool
	plain   bool
}

func (c jsonCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	if c.pointer && reflect.ValueOf(v).IsNil() {
		return dst, &Error{Codec: c.name, Found: "nil", Want: "a value"}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return dst, &Error{Codec: c.name, Err: err}
	}
	return append(dst, b...), nil
}

func (c jsonCodec[T]) Decode(b []byte) (T, error) {
	var v, none T
	if err := json.Unmarshal(b, &v); err != nil {
		return none, &Error{Codec: c.name, Found: excerpt(string(b)), Err: err}
	}
	if c.pointer && reflect.ValueOf(v).IsNil() {
		return none, &Error{Codec: c.name, Found: "null", Want: "a value"}
	}
	return v, nil
}

func (c jsonCodec[T]) Plain() bool { return c.plain }
