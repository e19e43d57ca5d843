package task

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

func TestSortedKeysHoldWhatASortedSliceHolds(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	var s sortedKeys
	var want []string
	for step := range 40_000 {
		key := fmt.Sprintf("%05d", r.Intn(6000))
		at, found := slices.BinarySearch(want, key)
		switch {
		case r.Intn(9) < 5:
			s.insert([]byte(key))
			if !found {
				want = slices.Insert(want, at, key)
			}
		case r.Intn(3) == 0 && len(want) > 0:
			s.remove([]byte(want[0]))
			want = want[1:]
		default:
			s.remove([]byte(key))
			if found {
				want = slices.Delete(want, at, at+1)
			}
		}
		if s.n != len(want) {
			t.Fatalf("step %d: %d keys, want %d", step, s.n, len(want))
		}
		if step%1000 == 999 {
			checkSorted(t, &s, want)
			if len(want) > 3000 {
				first := s.cut(2000)
				at, _ := slices.BinarySearch(want, string(first))
				if at < 2000 || at > 2000+chunkKeys {
					t.Fatalf("cut at %d", at)
				}
				want = want[:at]
				checkSorted(t, &s, want)
			}
		}
	}
}

func checkSorted(t *testing.T, s *sortedKeys, want []string) {
	t.Helper()
	i := 0
	for p := (place{}); s.at(p) != nil; p = s.after(p) {
		if string(s.at(p)) != want[i] {
			t.Fatalf("key %d is %s, want %s", i, s.at(p), want[i])
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("%d keys, want %d", i, len(want))
	}
	for n := 0; n < len(want); n += 37 {
		i := n
		s.from([]byte(want[n]), func(k []byte) bool {
			if !bytes.Equal(k, []byte(want[i])) {
				t.Fatalf("from %s: %s, want %s", want[n], k, want[i])
			}
			i++
			return i < n+5 && i < len(want)
		})
	}
}
