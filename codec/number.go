package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Int64 encodes as 8 bytes, big-endian two's complement, as Java's
// LongSerializer does.
func Int64() Codec[int64] { return int8bytes[int64]{} }

// Uint64 encodes as 8 bytes, big-endian.
func Uint64() Codec[uint64] { return int8bytes[uint64]{} }

// Int32 encodes as 4 bytes, big-endian two's complement, as Java's
// IntegerSerializer does.
func Int32() Codec[int32] { return int4bytes[int32]{} }

// Uint32 encodes as 4 bytes, big-endian.
func Uint32() Codec[uint32] { return int4bytes[uint32]{} }

// Float64 encodes as the 8 bytes of IEEE 754, big-endian, as Java's
// DoubleSerializer does.
func Float64() Codec[float64] { return float64Codec{} }

// Float32 encodes as the 4 bytes of IEEE 754, big-endian, as Java's
// FloatSerializer does.
func Float32() Codec[float32] { return float32Codec{} }

// Bool encodes as one byte, 0 or 1, as Java's BooleanSerializer does. Any
// other byte is an error.
func Bool() Codec[bool] { return boolCodec{} }

// Int64Text encodes as decimal text, as Goka's Int64 does.
func Int64Text() Codec[int64] { return int64Text{} }

type int8bytes[T int64 | uint64] struct{ plain }

func (int8bytes[T]) Append(dst []byte, v T) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
}

func (int8bytes[T]) Decode(b []byte) (T, error) {
	if len(b) != 8 {
		return 0, wrongLength[T](len(b), 8)
	}
	return T(binary.BigEndian.Uint64(b)), nil
}

type int4bytes[T int32 | uint32] struct{ plain }

func (int4bytes[T]) Append(dst []byte, v T) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
}

func (int4bytes[T]) Decode(b []byte) (T, error) {
	if len(b) != 4 {
		return 0, wrongLength[T](len(b), 4)
	}
	return T(binary.BigEndian.Uint32(b)), nil
}

type float64Codec struct{ plain }

func (float64Codec) Append(dst []byte, v float64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), nil
}

func (float64Codec) Decode(b []byte) (float64, error) {
	if len(b) != 8 {
		return 0, wrongLength[float64](len(b), 8)
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
}

type float32Codec struct{ plain }

func (float32Codec) Append(dst []byte, v float32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, math.Float32bits(v)), nil
}

func (float32Codec) Decode(b []byte) (float32, error) {
	if len(b) != 4 {
		return 0, wrongLength[float32](len(b), 4)
	}
	return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
}

type boolCodec struct{ plain }

func (boolCodec) Append(dst []byte, v bool) ([]byte, error) {
	if v {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (boolCodec) Decode(b []byte) (bool, error) {
	if len(b) != 1 {
		return false, wrongLength[bool](len(b), 1)
	}
	if b[0] > 1 {
		return false, &Error{Codec: "bool", Found: fmt.Sprintf("byte %d", b[0]), Want: "0 or 1"}
	}
	return b[0] == 1, nil
}

type int64Text struct{ plain }

func (int64Text) Append(dst []byte, v int64) ([]byte, error) {
	return strconv.AppendInt(dst, v, 10), nil
}

func (int64Text) Decode(b []byte) (int64, error) {
	v, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0, &Error{Codec: "int64 text", Found: excerpt(string(b)), Want: "a decimal number of 64 bits"}
	}
	return v, nil
}
