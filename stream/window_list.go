package stream

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/rekastream/reka/processor"
)

// Rows that hold lists are made of numbers that are not negative, as varints,
// and of bytes with their length before them.

func appendNumber(dst []byte, n int64) []byte { return binary.AppendUvarint(dst, uint64(n)) }

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// reader reads a row. What is read behind a fault is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) number() int64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[size:]
	return int64(n)
}

// bytes returns a part of the row.
func (r *reader) bytes() []byte {
	n := r.number()
	if n < 0 || n > int64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

var errTorn = errors.New("a list that ends too soon")

// end reports whether all was well; else the record fails.
func (r *reader) end(x *exec, at place) bool {
	if r.bad {
		x.fail(processor.StoredValueError(at.topic, at.key, errTorn))
	}
	return !r.bad
}

// entryTime returns the time of an entry of a timeline.
func entryTime(key []byte) int64 { return int64(binary.BigEndian.Uint64(key[1:])) }

// again is the first of the entries that a run sets again. The run ends where
// one of the rest comes after it, so that results stay in order.
type again struct{ first []byte }

func (a *again) add(key []byte) {
	if a.first == nil || bytes.Compare(key, a.first) < 0 {
		a.first = bytes.Clone(key)
	}
}

func (a *again) before(key []byte) bool { return a.first != nil && bytes.Compare(a.first, key) < 0 }
