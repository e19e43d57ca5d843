package task

import (
	"bytes"
	"slices"
)

// sortedKeys are keys in byte order, in chunks of bounded length, none of them
// empty. The zero value has none.
type sortedKeys struct {
	chunks [][][]byte
	n      int
}

// chunkKeys is how many keys a chunk has at most.
const chunkKeys = 256

// first returns the first key; there must be one.
func (s *sortedKeys) first() []byte { return s.chunks[0][0] }

// chunk returns the index of the chunk in which key belongs.
func (s *sortedKeys) chunk(key []byte) int {
	last := len(s.chunks) - 1
	if last < 0 || bytes.Compare(key, s.chunks[last][0]) >= 0 {
		return last // the usual place of what is new
	}
	i, found := slices.BinarySearchFunc(s.chunks, key, func(c [][]byte, k []byte) int { return bytes.Compare(c[0], k) })
	if found || i == 0 {
		return i
	}
	return i - 1
}

// insert adds a copy of key unless it is there.
func (s *sortedKeys) insert(key []byte) {
	c := s.chunk(key)
	if c < 0 {
		s.chunks = append(s.chunks, append(make([][]byte, 0, chunkKeys), bytes.Clone(key)))
		s.n++
		return
	}
	chunk := s.chunks[c]
	i, found := len(chunk), false
	if bytes.Compare(key, chunk[i-1]) <= 0 {
		i, found = slices.BinarySearchFunc(chunk, key, bytes.Compare)
	}
	if found {
		return
	}
	s.n++
	if len(chunk) < chunkKeys {
		s.chunks[c] = slices.Insert(chunk, i, bytes.Clone(key))
		return
	}
	// A full chunk is cut in two, but at its end, where keys mostly come.
	at := chunkKeys / 2
	if i == chunkKeys {
		at = chunkKeys
	}
	right := append(make([][]byte, 0, chunkKeys), chunk[at:]...)
	clear(chunk[at:])
	s.chunks[c] = chunk[:at]
	if i <= at && at < chunkKeys {
		s.chunks[c] = slices.Insert(s.chunks[c], i, bytes.Clone(key))
	} else {
		right = slices.Insert(right, i-at, bytes.Clone(key))
	}
	s.chunks = slices.Insert(s.chunks, c+1, right)
}

// remove takes key out if it is there.
func (s *sortedKeys) remove(key []byte) {
	c := s.chunk(key)
	if c < 0 {
		return
	}
	chunk := s.chunks[c]
	i, found := 0, bytes.Equal(chunk[0], key)
	if !found {
		i, found = slices.BinarySearchFunc(chunk, key, bytes.Compare)
	}
	if !found {
		return
	}
	s.n--
	switch {
	case len(chunk) == 1 && c == 0:
		s.chunks[0] = nil
		s.chunks = s.chunks[1:]
	case len(chunk) == 1:
		s.chunks = slices.Delete(s.chunks, c, c+1)
	case i == 0:
		chunk[0] = nil
		s.chunks[c] = chunk[1:]
	default:
		s.chunks[c] = slices.Delete(chunk, i, i+1)
	}
}

// cut drops all keys from the n-th on, whole chunks, and returns the first that
// it dropped.
func (s *sortedKeys) cut(n int) []byte {
	kept := 0
	for c, chunk := range s.chunks {
		if kept >= n && c > 0 {
			first := chunk[0]
			clear(s.chunks[c:])
			s.chunks, s.n = s.chunks[:c], kept
			return first
		}
		kept += len(chunk)
	}
	return nil
}

// from yields the keys from key on, in order.
func (s *sortedKeys) from(key []byte, yield func([]byte) bool) {
	c := max(0, s.chunk(key))
	for ; c < len(s.chunks); c++ {
		chunk := s.chunks[c]
		i := 0
		if bytes.Compare(chunk[0], key) < 0 {
			i, _ = slices.BinarySearchFunc(chunk, key, bytes.Compare)
		}
		for ; i < len(chunk); i++ {
			if !yield(chunk[i]) {
				return
			}
		}
	}
}

// place is a position among sorted keys; the zero value is the first one.
type place struct{ chunk, key int }

// at returns the key at a place, nil behind the last.
func (s *sortedKeys) at(p place) []byte {
	if p.chunk >= len(s.chunks) {
		return nil
	}
	return s.chunks[p.chunk][p.key]
}

// after returns the place behind p.
func (s *sortedKeys) after(p place) place {
	if p.key++; p.key >= len(s.chunks[p.chunk]) {
		return place{chunk: p.chunk + 1}
	}
	return p
}
