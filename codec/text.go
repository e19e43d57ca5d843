package codec

import "bytes"

// String encodes as the bytes of the string. They need not be UTF-8.
func String() Codec[string] { return stringCodec{} }

// Bytes encodes as the bytes themselves. Append copies them; a nil slice is an
// empty value, as nothing that a codec returns is a null. Decode returns a
// copy that belongs to the caller, never nil.
func Bytes() Codec[[]byte] { return bytesCodec{} }

type stringCodec struct{ plain }

func (stringCodec) Append(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }
func (stringCodec) Decode(b []byte) (string, error)             { return string(b), nil }

type bytesCodec struct{}

func (bytesCodec) Append(dst, v []byte) ([]byte, error) { return append(dst, v...), nil }

func (bytesCodec) Decode(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return []byte{}, nil
	}
	return bytes.Clone(b), nil
}
