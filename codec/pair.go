package codec

import (
	"fmt"
	"strings"
)

// Pair is a key of two parts.
type Pair[A, B any] struct {
	First  A
	Second B
}

// PairKeys is the Key of pairs. Pairs are in the order of their first parts,
// and those of one first part in the order of their second ones.
//
// The first part is written with 00 FF for each zero byte, and ended by 00 01;
// the second follows as it is. So no first part is the beginning of
// another one, whatever their lengths. Parts can be pairs themselves.
type PairKeys[A, B any] struct {
	first  Key[A]
	second Key[B]
}

// PairKey returns the Key of pairs whose parts are encoded by first and second.
func PairKey[A, B any](first Key[A], second Key[B]) PairKeys[A, B] {
	return PairKeys[A, B]{first, second}
}

const (
	escape  = "\x00\xff" // stands for a zero byte
	partEnd = "\x00\x01" // less than an escape, so that a part comes before its continuations
)

// Encode returns the encoding of k.
func (p PairKeys[A, B]) Encode(k Pair[A, B]) string {
	return p.Prefix(k.First) + p.second.Encode(k.Second)
}

// Prefix returns what the encodings of all pairs with this first part begin
// with, and no other ones.
func (p PairKeys[A, B]) Prefix(first A) string {
	return strings.ReplaceAll(p.first.Encode(first), "\x00", escape) + partEnd
}

// Decode returns the pair whose encoding s is, or an *Error.
func (p PairKeys[A, B]) Decode(s string) (Pair[A, B], error) {
	var none Pair[A, B]
	end, err := firstPart(s)
	if err != nil {
		return none, err
	}
	first, err := p.first.Decode(strings.ReplaceAll(s[:end], escape, "\x00"))
	if err != nil {
		return none, fmt.Errorf("first part of a pair: %w", err)
	}
	second, err := p.second.Decode(s[end+len(partEnd):])
	if err != nil {
		return none, fmt.Errorf("second part of a pair: %w", err)
	}
	return Pair[A, B]{first, second}, nil
}

// firstPart returns where the first part ends.
func firstPart(s string) (int, error) {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != 0 {
			continue
		}
		switch s[i : i+2] {
		case partEnd:
			return i, nil
		case escape:
			i++
		default:
			return 0, &Error{Codec: "pair key", Found: fmt.Sprintf("bytes 00 %02X", s[i+1]), Want: "00 FF or 00 01"}
		}
	}
	return 0, &Error{Codec: "pair key", Found: excerpt(s), Want: "an end of the first part"}
}
