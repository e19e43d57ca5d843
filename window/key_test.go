package window_test

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/rekastream/reka/window"
)

func TestTopicKeysAreThoseOfKafkaStreams(t *testing.T) {
	w := window.Window{Start: 0x0102030405060708, End: 0x1112131415161718}
	if got, want := hex.EncodeToString(window.AppendTimeKey([]byte("x"), []byte("ab"), w.Start)), "78"+"6162"+"0102030405060708"; got != want {
		t.Errorf("time key %s, want %s", got, want)
	}
	if got, want := hex.EncodeToString(window.AppendSessionKey([]byte("x"), []byte("ab"), w)), "78"+"6162"+"1112131415161718"+"0102030405060708"; got != want {
		t.Errorf("session key %s, want %s", got, want)
	}
	for _, x := range []struct {
		ws   window.Windows
		w    window.Window
		size int
	}{
		{window.Tumbling(10*ms, 0), window.Window{Start: 20, End: 30}, 8},
		{window.Hopping(10*ms, 5*ms, 0), window.Window{Start: 25, End: 35}, 8},
		{window.Sliding(10*ms, 0), window.Window{Start: 3, End: 13}, 8},
		{window.Session(10*ms, 0), window.Window{Start: 3, End: 77}, 16},
	} {
		for _, key := range []string{"", "a", "a\x00b"} {
			b := x.ws.AppendTopicKey(nil, []byte(key), x.w)
			if len(b) != len(key)+x.size || x.ws.TopicKeySize() != x.size {
				t.Errorf("%s: %d bytes", x.ws, len(b))
			}
			got, w, err := x.ws.SplitTopicKey(b)
			if string(got) != key || got == nil || w != x.w || err != nil {
				t.Errorf("%s: %q %v, %v", x.ws, got, w, err)
			}
		}
	}
}

func TestKeysThatAreNoneOfWindows(t *testing.T) {
	for name, err := range map[string]error{
		"short time key":             second(window.SplitTimeKey(make([]byte, 7))),
		"time key below 0":           second(window.SplitTimeKey(window.AppendTimeKey(nil, nil, -1))),
		"time key of windows":        second(window.Tumbling(ms, 0).SplitTopicKey([]byte("abc"))),
		"short session key":          second(window.SplitSessionKey(make([]byte, 15))),
		"session key below 0":        second(window.SplitSessionKey(window.AppendSessionKey(nil, nil, window.Window{Start: -1, End: 3}))),
		"session that ends too soon": second(window.SplitSessionKey(window.AppendSessionKey(nil, nil, window.Window{Start: 4, End: 3}))),
		"no end mark":                second(window.SplitKey(nil, []byte("abc"))),
		"half an end mark":           second(window.SplitKey(nil, []byte("abc\x00"))),
		"another mark":               second(window.SplitKey(nil, []byte("abc\x00\x02"))),
		"half a time":                second(window.SplitTime(make([]byte, 7))),
		"time below 0":               second(window.SplitTime(window.AppendTime(nil, -1))),
	} {
		if !errors.Is(err, window.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// second is the error of a function that splits.
func second[A, B any](_ A, _ B, err error) error { return err }

func TestStoreKeysOfOneKeyLieSideBySide(t *testing.T) {
	type row struct {
		key  string
		time int64
	}
	var rows []row
	for _, key := range []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01", "a", "a\x00", "a\x00\x01", "a\x01", "a\xff", "aa", "b", "\xff", "\xff\xff"} {
		for _, at := range []int64{0, 1, 255, 256, 1 << 40, forever} {
			rows = append(rows, row{key, at})
		}
	}
	encode := func(r row) []byte { return window.AppendTime(window.AppendKey(nil, []byte(r.key)), r.time) }
	want := slices.Clone(rows)
	slices.SortFunc(want, func(a, b row) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.time, b.time)) })
	slices.SortFunc(rows, func(a, b row) int { return bytes.Compare(encode(a), encode(b)) })
	if !slices.Equal(rows, want) {
		t.Errorf("in byte order: %+v", rows)
	}
	for _, r := range rows {
		key, rest, err := window.SplitKey(nil, encode(r))
		if string(key) != r.key || key == nil || err != nil {
			t.Errorf("%q: %q, %v", r.key, key, err)
		}
		if at, rest, err := window.SplitTime(rest); at != r.time || len(rest) != 0 || err != nil {
			t.Errorf("%q at %d: %d, %d bytes, %v", r.key, r.time, at, len(rest), err)
		}
	}
}

func TestStoreKeysAreBuiltInGivenBuffers(t *testing.T) {
	buf, out := make([]byte, 0, 64), make([]byte, 0, 64)
	key := []byte("a\x00b\xff")
	if n := testing.AllocsPerRun(100, func() {
		b := window.AppendTime(window.AppendKey(buf, key), 7)
		if got, _, err := window.SplitKey(out, b); err != nil || !bytes.Equal(got, key) {
			t.Fatal(got, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got, _, _ := window.SplitKey([]byte("x"), window.AppendKey(nil, key)); string(got) != "xa\x00b\xff" {
		t.Errorf("not appended: %q", got)
	}
}

func FuzzStoreKey(f *testing.F) {
	f.Add([]byte(""), []byte("\x00"), int64(1), int64(2))
	f.Add([]byte("a"), []byte("a\x00\xff"), int64(0), int64(forever))
	f.Add([]byte("a\x00\x01"), []byte("a"), int64(5), int64(5))
	f.Fuzz(func(t *testing.T, k1, k2 []byte, t1, t2 int64) {
		t1, t2 = max(t1, 0), max(t2, 0)
		e1, e2 := window.AppendKey(nil, k1), window.AppendKey(nil, k2)
		want := cmp.Or(bytes.Compare(k1, k2), cmp.Compare(t1, t2))
		if got := bytes.Compare(window.AppendTime(e1, t1), window.AppendTime(e2, t2)); got != want {
			t.Errorf("order of (%q, %d) and (%q, %d): %d, want %d", k1, t1, k2, t2, got, want)
		}
		if !bytes.Equal(k1, k2) && (bytes.HasPrefix(e1, e2) || bytes.HasPrefix(e2, e1)) {
			t.Errorf("one of %q and %q begins with the other", e1, e2)
		}
		key, rest, err := window.SplitKey(nil, append(e1, k2...))
		if !bytes.Equal(key, k1) || !bytes.Equal(rest, k2) || err != nil {
			t.Errorf("%q: %q, rest %q, %v", k1, key, rest, err)
		}
		// Whatever is taken for a key is the encoding of one.
		if key, rest, err := window.SplitKey(nil, k2); err == nil && !bytes.Equal(append(window.AppendKey(nil, key), rest...), k2) {
			t.Errorf("%q was read as %q and %q", k2, key, rest)
		}
	})
}

func FuzzTopicKey(f *testing.F) {
	f.Add([]byte(""), int64(0), int64(0), []byte("12345678"))
	f.Add([]byte("a\x00"), int64(5), int64(forever), []byte("1234567812345678x"))
	f.Fuzz(func(t *testing.T, key []byte, start, end int64, other []byte) {
		start, end = max(start, 0), max(start, end, 0)
		got, at, err := window.SplitTimeKey(window.AppendTimeKey(nil, key, start))
		if !bytes.Equal(got, key) || at != start || err != nil {
			t.Errorf("time key: %q at %d, %v", got, at, err)
		}
		w := window.Window{Start: start, End: end}
		got, back, err := window.SplitSessionKey(window.AppendSessionKey(nil, key, w))
		if !bytes.Equal(got, key) || back != w || err != nil {
			t.Errorf("session key: %q %v, %v", got, back, err)
		}
		if got, at, err := window.SplitTimeKey(other); err == nil && !bytes.Equal(window.AppendTimeKey(nil, got, at), other) {
			t.Errorf("%q was read as %q at %d", other, got, at)
		}
		if got, w, err := window.SplitSessionKey(other); err == nil && !bytes.Equal(window.AppendSessionKey(nil, got, w), other) {
			t.Errorf("%q was read as %q in %v", other, got, w)
		}
	})
}
