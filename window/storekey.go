package window

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Keys of stores are an encoded key followed by times. An encoded key ends in
// a mark that compares below every byte that could go on, and no encoded key
// is the beginning of another one. So byte order is order of keys, then of
// times; all rows of a key lie side by side, and so do those of a key between
// two times; whatever bytes the keys are made of.
const (
	escape   = 0x00
	escaped0 = 0xff // behind escape: a 0x00 of the key
	endMark  = 0x01 // behind escape: the key's end
)

// AppendKey appends the encoding of key: each 0x00 as 0x00 0xFF, and at the
// end 0x00 0x01.
func AppendKey(dst, key []byte) []byte {
	for {
		i := bytes.IndexByte(key, escape)
		if i < 0 {
			return append(append(dst, key...), escape, endMark)
		}
		dst = append(append(dst, key[:i]...), escape, escaped0)
		key = key[i+1:]
	}
}

// SplitKey reads the encoded key that b begins with. It appends the key to dst,
// which may be nil; the result is not nil. rest is a part of b. An error is
// ErrKey.
func SplitKey(dst, b []byte) (key, rest []byte, err error) {
	if dst == nil {
		dst = []byte{}
	}
	for {
		i := bytes.IndexByte(b, escape)
		if i < 0 || i+1 == len(b) {
			return nil, nil, fmt.Errorf("%w: its end is missing", ErrKey)
		}
		dst = append(dst, b[:i]...)
		mark := b[i+1]
		b = b[i+2:]
		switch mark {
		case endMark:
			return dst, b, nil
		case escaped0:
			dst = append(dst, escape)
		default:
			return nil, nil, fmt.Errorf("%w: 0x%02x behind 0x00", ErrKey, mark)
		}
	}
}

// AppendTime appends a time that is not below 0, in 8 bytes, big-endian: in
// byte order later ones come later.
func AppendTime(dst []byte, ms int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(ms)) }

// SplitTime reads the time that b begins with. rest is a part of b. An error
// is ErrKey.
func SplitTime(b []byte) (ms int64, rest []byte, err error) {
	if len(b) < 8 {
		return 0, nil, fmt.Errorf("%w: %d bytes of a time", ErrKey, len(b))
	}
	if ms = timeAt(b, 0); ms < 0 {
		return 0, nil, fmt.Errorf("%w: time %d", ErrKey, ms)
	}
	return ms, b[8:], nil
}
