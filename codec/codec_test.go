package codec_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/codec"
)

type click struct {
	Page string `json:"page"`
	N    int    `json:"n,omitempty"`
}

func TestEncodingsAreTheOnesOfJava(t *testing.T) {
	encodes(t, codec.Int64(), 1, "\x00\x00\x00\x00\x00\x00\x00\x01")
	encodes(t, codec.Int64(), -2, "\xff\xff\xff\xff\xff\xff\xff\xfe")
	encodes(t, codec.Int64(), math.MinInt64, "\x80\x00\x00\x00\x00\x00\x00\x00")
	encodes(t, codec.Int32(), -2, "\xff\xff\xff\xfe")
	encodes(t, codec.Uint64(), math.MaxUint64, "\xff\xff\xff\xff\xff\xff\xff\xff")
	encodes(t, codec.Uint32(), 258, "\x00\x00\x01\x02")
	encodes(t, codec.Float64(), 1.5, "\x3f\xf8\x00\x00\x00\x00\x00\x00")
	encodes(t, codec.Float32(), -1.5, "\xbf\xc0\x00\x00")
	encodes(t, codec.Bool(), true, "\x01")
	encodes(t, codec.Bool(), false, "\x00")
	encodes(t, codec.String(), "grüße", "gr\xc3\xbc\xc3\x9fe")
}

func TestEncodingsOfTextAndJSON(t *testing.T) {
	encodes(t, codec.Int64Text(), -42, "-42")
	encodes(t, codec.Int64Text(), math.MinInt64, "-9223372036854775808")
	encodes(t, codec.String(), "", "")
	encodes(t, codec.String(), "\xff not UTF-8", "\xff not UTF-8")
	encodes(t, codec.JSON[click](), click{Page: "home"}, `{"page":"home"}`)
	encodes(t, codec.JSON[int](), 7, "7")
	encodes(t, codec.JSON[float64](), 0.5, "0.5")
}

func encodes[T comparable](t *testing.T, c codec.Codec[T], v T, want string) {
	t.Helper()
	b, err := c.Append([]byte("before "), v)
	if err != nil || string(b) != "before "+want {
		t.Errorf("%T of %v: %q, %v, want %q", c, v, b, err, want)
		return
	}
	got, err := c.Decode([]byte(want))
	if err != nil || got != v {
		t.Errorf("%T decodes %q as %v, %v, want %v", c, want, got, err, v)
	}
}

func TestDecodeErrorsSayWhatWasFoundAndWanted(t *testing.T) {
	fails(t, codec.Int64(), "1234567", "codec: int64: found 7 bytes, want 8 bytes")
	fails(t, codec.Int64(), "", "codec: int64: found 0 bytes, want 8 bytes")
	fails(t, codec.Uint64(), "123456789", "codec: uint64: found 9 bytes, want 8 bytes")
	fails(t, codec.Int32(), "1", "codec: int32: found 1 byte, want 4 bytes")
	fails(t, codec.Uint32(), "12345", "codec: uint32: found 5 bytes, want 4 bytes")
	fails(t, codec.Float64(), "1.5", "codec: float64: found 3 bytes, want 8 bytes")
	fails(t, codec.Float32(), "", "codec: float32: found 0 bytes, want 4 bytes")
	fails(t, codec.Bool(), "true", "codec: bool: found 4 bytes, want 1 byte")
	fails(t, codec.Bool(), "\x02", "codec: bool: found byte 2, want 0 or 1")
	fails(t, codec.Int64Text(), "12a", `codec: int64 text: found "12a", want a decimal number of 64 bits`)
	fails(t, codec.Int64Text(), "9223372036854775808", `codec: int64 text: found "9223372036854775808", want a decimal number of 64 bits`)
	fails(t, codec.JSON[click](), `{"page":7}`, `codec: JSON of codec_test.click: found "{\"page\":7}": json: cannot unmarshal number`)
	fails(t, codec.JSON[click](), `{"page":"home"} x`, `invalid character 'x' after top-level value`)
	fails(t, codec.JSON[click](), `{}{}`, `invalid character '{' after top-level value`)
	fails(t, codec.JSON[click](), "", "unexpected end of JSON input")
	fails(t, codec.JSON[*click](), "null", "codec: JSON of *codec_test.click: found null, want a value")
	fails(t, codec.JSON[[]int](), strings.Repeat("z", 1000), `zz"… (1000 bytes)`)
}

func fails[T any](t *testing.T, c codec.Codec[T], b, want string) {
	t.Helper()
	_, err := c.Decode([]byte(b))
	var e *codec.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
		t.Errorf("%T decodes %q: %v, want %s", c, b, err, want)
	}
}

func TestUnencodableValuesAreErrors(t *testing.T) {
	_, err := codec.JSON[float64]().Append(nil, math.NaN())
	if want := "codec: JSON of float64: json: unsupported value: NaN"; err == nil || err.Error() != want {
		t.Errorf("NaN: %v, want %s", err, want)
	}
	_, err = codec.JSON[*click]().Append(nil, nil)
	if want := "codec: JSON of *codec_test.click: found nil, want a value"; err == nil || err.Error() != want {
		t.Errorf("nil: %v, want %s", err, want)
	}
	if !errors.Is(&codec.Error{Err: err}, err) {
		t.Error("the cause is lost")
	}
}

func TestDecodeKeepsNothingOfItsArgument(t *testing.T) {
	b := []byte("bytes")
	got, err := codec.Bytes().Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	text, err := codec.String().Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	if string(got) != "bytes" || text != "bytes" {
		t.Errorf("changed to %q and %q", got, text)
	}
}

func TestEmptyBytesAreNotNil(t *testing.T) {
	for _, v := range [][]byte{nil, {}} {
		b, err := codec.Bytes().Append(nil, v)
		if err != nil || len(b) != 0 {
			t.Errorf("%v encodes as %q, %v", v, b, err)
		}
		if got, err := codec.Bytes().Decode(b); got == nil || len(got) != 0 || err != nil {
			t.Errorf("decoded %v, %v", got, err)
		}
	}
}

func TestPlainValues(t *testing.T) {
	type nested struct {
		At    time.Time
		Parts [2]struct{ X, Y float64 }
	}
	plain := map[string]bool{
		"int64":              codec.IsPlain(codec.Int64()),
		"uint32":             codec.IsPlain(codec.Uint32()),
		"float64":            codec.IsPlain(codec.Float64()),
		"float32":            codec.IsPlain(codec.Float32()),
		"bool":               codec.IsPlain(codec.Bool()),
		"string":             codec.IsPlain(codec.String()),
		"int64 text":         codec.IsPlain(codec.Int64Text()),
		"JSON of click":      codec.IsPlain(codec.JSON[click]()),
		"JSON of a nest":     codec.IsPlain(codec.JSON[nested]()),
		"not: bytes":         !codec.IsPlain(codec.Bytes()),
		"not: JSON of slice": !codec.IsPlain(codec.JSON[struct{ A []int }]()),
		"not: JSON of *T":    !codec.IsPlain(codec.JSON[*click]()),
		"not: JSON of map":   !codec.IsPlain(codec.JSON[map[string]int]()),
		"not: JSON of any":   !codec.IsPlain(codec.JSON[any]()),
	}
	for name, ok := range plain {
		if !ok {
			t.Error(name)
		}
	}
}

func TestNumbersAllocateNothing(t *testing.T) {
	allocatesNothing(t, codec.Int64(), -7)
	allocatesNothing(t, codec.Uint64(), 7)
	allocatesNothing(t, codec.Int32(), -7)
	allocatesNothing(t, codec.Uint32(), 7)
	allocatesNothing(t, codec.Float64(), 7.5)
	allocatesNothing(t, codec.Float32(), 7.5)
	allocatesNothing(t, codec.Bool(), true)
	allocatesNothing(t, codec.Int64Text(), -7_000_000_000)
}

func allocatesNothing[T comparable](t *testing.T, c codec.Codec[T], v T) {
	t.Helper()
	buf := make([]byte, 0, 64)
	n := testing.AllocsPerRun(100, func() {
		b, _ := c.Append(buf, v)
		if got, _ := c.Decode(b); got != v {
			t.Errorf("%v became %v", v, got)
		}
	})
	if n != 0 {
		t.Errorf("%T: %v allocations", c, n)
	}
}

func TestAppendOfTextAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 64)
	value := []byte("value")
	n := testing.AllocsPerRun(100, func() {
		b, _ := codec.String().Append(buf, "value")
		_, _ = codec.Bytes().Append(b, value)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzDecode gives the same bytes to all decoders. What one of them accepts
// must come back from its encoding.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "\x00", "\x01", "7", "-42", "+1", "null", `{"page":"x"}`, "1234", "12345678", "\x7f\xf8\x00\x00\x00\x00\x00\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		roundTrips(t, codec.String(), b, true)
		roundTrips(t, codec.Bytes(), b, true)
		roundTrips(t, codec.Int64(), b, true)
		roundTrips(t, codec.Uint64(), b, true)
		roundTrips(t, codec.Int32(), b, true)
		roundTrips(t, codec.Uint32(), b, true)
		roundTrips(t, codec.Float64(), b, true)
		roundTrips(t, codec.Float32(), b, false) // Go does not keep the bits of signalling NaNs
		roundTrips(t, codec.Bool(), b, true)
		roundTrips(t, codec.Int64Text(), b, false)
		roundTrips(t, codec.JSON[click](), b, false)
		roundTrips(t, codec.JSON[*click](), b, false)
		roundTrips(t, codec.JSON[map[string]any](), b, false)
		roundTrips(t, codec.JSON[[]string](), b, false)
	})
}

// roundTrips decodes b. Exact says that the codec has one encoding for each
// value; with others, the encoding of what was decoded must be stable.
func roundTrips[T any](t *testing.T, c codec.Codec[T], b []byte, exact bool) {
	t.Helper()
	before := bytes.Clone(b)
	v, err := c.Decode(b)
	if !bytes.Equal(b, before) {
		t.Fatalf("%T changed its argument", c)
	}
	if err != nil {
		var e *codec.Error
		if !errors.As(err, &e) {
			t.Fatalf("%T: error %T", c, err)
		}
		return
	}
	first, err := c.Append(nil, v)
	if err != nil {
		t.Fatalf("%T decodes %q but does not encode it: %v", c, b, err)
	}
	if exact && !bytes.Equal(first, b) {
		t.Fatalf("%T: %q became %q", c, b, first)
	}
	again, err := c.Decode(first)
	if err != nil {
		t.Fatalf("%T does not decode its own %q: %v", c, first, err)
	}
	if second, _ := c.Append(nil, again); !bytes.Equal(first, second) {
		t.Fatalf("%T: %q became %q", c, first, second)
	}
}
