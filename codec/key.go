package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Key turns keys of one type into strings and back. The strings compare, byte
// by byte, as the keys do, and each key has one encoding only. So a range of
// keys is a range of strings.
//
// Both methods may be called from any number of goroutines at once.
type Key[K any] interface {
	// Encode returns the encoding of k.
	Encode(k K) string

	// Decode returns the key whose encoding s is, or an *Error.
	Decode(s string) (K, error)
}

// StringKey is the string itself.
func StringKey() Key[string] { return stringKey{} }

// BytesKey is the bytes themselves. Decode returns a copy, never nil.
func BytesKey() Key[[]byte] { return bytesKey{} }

// Uint64Key is 8 bytes, big-endian.
func Uint64Key() Key[uint64] { return uint64Key{} }

// Int64Key is 8 bytes, big-endian, with the sign bit turned over so that
// negative keys come first. That makes it another encoding than that of
// Java's LongSerializer.
func Int64Key() Key[int64] { return int64Key{} }

// Float64Key is 8 bytes in numeric order. Both zeros are one key, and so are
// all NaNs, which come last.
func Float64Key() Key[float64] { return float64Key{} }

// TimeKey is 12 bytes: seconds since the epoch, as Int64Key has them, and
// nanoseconds, big-endian. It keeps the instant, not the location: Decode
// returns UTC.
func TimeKey() Key[time.Time] { return timeKey{} }

const signBit = 1 << 63

type stringKey struct{}

func (stringKey) Encode(k string) string          { return k }
func (stringKey) Decode(s string) (string, error) { return s, nil }

type bytesKey struct{}

func (bytesKey) Encode(k []byte) string          { return string(k) }
func (bytesKey) Decode(s string) ([]byte, error) { return []byte(s), nil }

type uint64Key struct{}

func (uint64Key) Encode(k uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], k)
	return string(b[:])
}

func (uint64Key) Decode(s string) (uint64, error) { return fixedKey("uint64 key", s) }

type int64Key struct{}

func (int64Key) Encode(k int64) string { return uint64Key{}.Encode(uint64(k) ^ signBit) }

func (int64Key) Decode(s string) (int64, error) {
	u, err := fixedKey("int64 key", s)
	if err != nil {
		return 0, err
	}
	return int64(u ^ signBit), nil
}

type float64Key struct{}

// Encode turns the sign bit of positive numbers over, and all bits of negative
// ones, whose magnitude grows towards the front.
func (float64Key) Encode(k float64) string {
	switch {
	case k == 0:
		k = 0 // not the negative one
	case math.IsNaN(k):
		k = math.NaN()
	}
	u := math.Float64bits(k)
	if u&signBit == 0 {
		u |= signBit
	} else {
		u = ^u
	}
	return uint64Key{}.Encode(u)
}

func (f float64Key) Decode(s string) (float64, error) {
	u, err := fixedKey("float64 key", s)
	if err != nil {
		return 0, err
	}
	if u&signBit != 0 {
		u &^= signBit
	} else {
		u = ^u
	}
	k := math.Float64frombits(u)
	if f.Encode(k) != s {
		return 0, &Error{Codec: "float64 key", Found: excerpt(s), Want: "the one encoding of zero or NaN"}
	}
	return k, nil
}

type timeKey struct{}

func (timeKey) Encode(k time.Time) string {
	var b [12]byte
	binary.BigEndian.PutUint64(b[:], uint64(k.Unix())^signBit)
	binary.BigEndian.PutUint32(b[8:], uint32(k.Nanosecond()))
	return string(b[:])
}

func (timeKey) Decode(s string) (time.Time, error) {
	if len(s) != 12 {
		return time.Time{}, &Error{Codec: "time key", Found: byteCount(len(s)), Want: "12 bytes"}
	}
	sec := int64(binary.BigEndian.Uint64([]byte(s[:8])) ^ signBit)
	nsec := binary.BigEndian.Uint32([]byte(s[8:]))
	if nsec >= 1e9 {
		return time.Time{}, &Error{Codec: "time key", Found: fmt.Sprintf("%d nanoseconds", nsec), Want: "less than a second"}
	}
	return time.Unix(sec, int64(nsec)).UTC(), nil
}

func fixedKey(name, s string) (uint64, error) {
	if len(s) != 8 {
		return 0, &Error{Codec: name, Found: byteCount(len(s)), Want: "8 bytes"}
	}
	return binary.BigEndian.Uint64([]byte(s)), nil
}
