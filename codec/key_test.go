package codec_test

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/codec"
)

func TestKeysKeepTheirOrder(t *testing.T) {
	ascend(t, codec.StringKey(), "", "\x00", "a", "a\x00", "a\x00b", "ab", "b", "\xff")
	ascend(t, codec.Uint64Key(), 0, 1, 255, 256, math.MaxInt64, math.MaxUint64)
	ascend(t, codec.Int64Key(), math.MinInt64, -256, -1, 0, 1, 255, 256, math.MaxInt64)
	ascend(t, codec.Float64Key(), math.Inf(-1), -math.MaxFloat64, -1.5, -1, -math.SmallestNonzeroFloat64, 0,
		math.SmallestNonzeroFloat64, 1, 1.5, math.MaxFloat64, math.Inf(1))
	ascend(t, codec.TimeKey(), time.Time{}, time.Unix(-1, 0).UTC(), time.Unix(-1, 999_999_999).UTC(), time.Unix(0, 0).UTC(),
		time.Unix(0, 1).UTC(), time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC))
	ascend(t, codec.PairKey(codec.StringKey(), codec.Int64Key()),
		codec.Pair[string, int64]{"", -1}, codec.Pair[string, int64]{"", 5},
		codec.Pair[string, int64]{"\x00", -9}, codec.Pair[string, int64]{"\x00\x00", -9}, codec.Pair[string, int64]{"\x00\x01", -9},
		codec.Pair[string, int64]{"a", math.MinInt64}, codec.Pair[string, int64]{"a", math.MaxInt64},
		codec.Pair[string, int64]{"a\x00", -9}, codec.Pair[string, int64]{"a\x00\xff", -9}, codec.Pair[string, int64]{"a\x01", -9},
		codec.Pair[string, int64]{"ab", -9}, codec.Pair[string, int64]{"b", -9})
}

func ascend[K comparable](t *testing.T, key codec.Key[K], keys ...K) {
	t.Helper()
	for i, k := range keys {
		got, err := key.Decode(key.Encode(k))
		if err != nil || got != k {
			t.Errorf("%T: %v became %v, %v", key, k, got, err)
		}
		if i > 0 && key.Encode(keys[i-1]) >= key.Encode(k) {
			t.Errorf("%T: %v is not below %v", key, keys[i-1], k)
		}
	}
}

func TestKeyHasOneEncoding(t *testing.T) {
	f := codec.Float64Key()
	if f.Encode(math.Copysign(0, -1)) != f.Encode(0) {
		t.Error("two zeros")
	}
	if f.Encode(math.NaN()) != f.Encode(math.Float64frombits(0xfff8_0000_0000_0042)) {
		t.Error("two NaNs")
	}
	if f.Encode(math.NaN()) <= f.Encode(math.Inf(1)) {
		t.Error("NaN is not last")
	}
	berlin := time.FixedZone("CET", 3600)
	at := time.Unix(1_700_000_000, 5)
	if codec.TimeKey().Encode(at.In(berlin)) != codec.TimeKey().Encode(at.UTC()) {
		t.Error("one instant, two keys")
	}
}

func TestPrefixHoldsThePairsOfOneFirstPart(t *testing.T) {
	pairs := codec.PairKey(codec.BytesKey(), codec.BytesKey())
	rng := rand.New(rand.NewPCG(1, 1))
	word := func() []byte { // of few letters, so that words are beginnings of others
		b := make([]byte, rng.IntN(4))
		for i := range b {
			b[i] = []byte{0, 1, 0xfe, 0xff}[rng.IntN(4)]
		}
		return b
	}
	for range 20_000 {
		a, b := codec.Pair[[]byte, []byte]{First: word(), Second: word()}, codec.Pair[[]byte, []byte]{First: word(), Second: word()}
		same := string(a.First) == string(b.First)
		if got := strings.HasPrefix(pairs.Encode(b), pairs.Prefix(a.First)); got != same {
			t.Fatalf("%q has the prefix of %q: %v", b, a.First, got)
		}
		want := cmp.Or(cmp.Compare(string(a.First), string(b.First)), cmp.Compare(string(a.Second), string(b.Second)))
		if got := cmp.Compare(pairs.Encode(a), pairs.Encode(b)); got != want {
			t.Fatalf("%q against %q: %d, want %d", a, b, got, want)
		}
	}
}

func TestPairsNest(t *testing.T) {
	inner := codec.PairKey(codec.StringKey(), codec.Uint64Key())
	key := codec.PairKey(inner, codec.StringKey())
	k := codec.Pair[codec.Pair[string, uint64], string]{First: codec.Pair[string, uint64]{First: "a\x00b", Second: 0}, Second: "\x00"}
	got, err := key.Decode(key.Encode(k))
	if err != nil || got != k {
		t.Errorf("%v became %v, %v", k, got, err)
	}
}

func TestKeyDecodeErrors(t *testing.T) {
	pairs := codec.PairKey(codec.Int64Key(), codec.TimeKey())
	badKey(t, codec.Int64Key(), "abc", "codec: int64 key: found 3 bytes, want 8 bytes")
	badKey(t, codec.Uint64Key(), "", "codec: uint64 key: found 0 bytes, want 8 bytes")
	badKey(t, codec.Float64Key(), "1", "codec: float64 key: found 1 byte, want 8 bytes")
	badKey(t, codec.Float64Key(), "\x7f\xff\xff\xff\xff\xff\xff\xff", "want the one encoding of zero or NaN")
	badKey(t, codec.TimeKey(), "12345678", "codec: time key: found 8 bytes, want 12 bytes")
	badKey(t, codec.TimeKey(), "12345678\xff\xff\xff\xff", "codec: time key: found 4294967295 nanoseconds, want less than a second")
	badKey(t, pairs, "no end", `codec: pair key: found "no end", want an end of the first part`)
	badKey(t, pairs, "a\x00", "want an end of the first part")
	badKey(t, pairs, "a\x00\x02", "codec: pair key: found bytes 00 02, want 00 FF or 00 01")
	badKey(t, pairs, "a\x00\x01", "first part of a pair: codec: int64 key: found 1 byte, want 8 bytes")
	badKey(t, pairs, "12345678\x00\x01", "second part of a pair: codec: time key: found 0 bytes, want 12 bytes")
}

func badKey[K any](t *testing.T, key codec.Key[K], s, want string) {
	t.Helper()
	_, err := key.Decode(s)
	var e *codec.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
		t.Errorf("%T decodes %q: %v, want %s", key, s, err, want)
	}
}

// FuzzKeys gives the same two strings to all keys. What is accepted is the one
// encoding of its key, and order is kept.
func FuzzKeys(f *testing.F) {
	f.Add("", "\x00")
	f.Add("12345678", "12345678\x00\x01")
	f.Add("123456781234", "\x00\xff\x00\x0112345678")
	f.Fuzz(func(t *testing.T, a, b string) {
		keyPair(t, codec.StringKey(), a, b, cmp.Compare[string])
		keyPair(t, codec.Uint64Key(), a, b, cmp.Compare[uint64])
		keyPair(t, codec.Int64Key(), a, b, cmp.Compare[int64])
		keyPair(t, codec.TimeKey(), a, b, time.Time.Compare)
		keyPair(t, codec.Float64Key(), a, b, func(x, y float64) int {
			return -cmp.Compare(-x, -y) // cmp has NaN first
		})
		keyPair(t, codec.PairKey(codec.StringKey(), codec.Int64Key()), a, b, func(x, y codec.Pair[string, int64]) int {
			return cmp.Or(cmp.Compare(x.First, y.First), cmp.Compare(x.Second, y.Second))
		})
	})
}

func keyPair[K any](t *testing.T, key codec.Key[K], a, b string, compare func(x, y K) int) {
	t.Helper()
	x, errX := key.Decode(a)
	y, errY := key.Decode(b)
	if errX == nil && key.Encode(x) != a {
		t.Fatalf("%T: %q decodes as %v, which is %q", key, a, x, key.Encode(x))
	}
	if errX == nil && errY == nil && compare(x, y) != cmp.Compare(a, b) {
		t.Fatalf("%T: %v against %v: %d, encoded %d", key, x, y, compare(x, y), cmp.Compare(a, b))
	}
}
