package badgerstore

import "sync"

// versions hands out the versions of writes and keeps those that are being
// read. Everything up to what is neither written nor read may be compacted.
//
// Invariant: no version at or below horizon() is still being written, and
// none below it is read, so Badger may forget versions that another one at or
// below it covers.
type versions struct {
	discard func(upTo uint64)

	mu      sync.Mutex
	last    uint64         // the last one handed out
	writing map[uint64]int // values are 1
	reading map[uint64]int // how many snapshots
}

func newVersions(last uint64, discard func(uint64)) *versions {
	v := &versions{discard: discard, last: last, writing: map[uint64]int{}, reading: map[uint64]int{}}
	discard(last)
	return v
}

// begin returns the version of a write to t. One at a time for each table.
func (v *versions) begin(t *table) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last++
	v.writing[v.last]++
	if t != nil {
		t.writing = v.last
	}
	return v.last
}

func (v *versions) end(t *table, version uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.writing, version)
	if t != nil {
		t.writing = 0
	}
	v.discard(v.horizon())
}

// pin returns the newest version at which the rows of t stand still, and
// keeps it readable until unpin.
func (v *versions) pin(t *table) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.last
	if t.writing != 0 {
		at = t.writing - 1
	}
	v.reading[at]++
	v.discard(v.horizon())
	return at
}

func (v *versions) unpin(at uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reading[at]--; v.reading[at] == 0 {
		delete(v.reading, at)
	}
	v.discard(v.horizon())
}

func (v *versions) horizon() uint64 {
	h := v.last
	for w := range v.writing {
		h = min(h, w-1)
	}
	for r := range v.reading {
		h = min(h, r)
	}
	return h
}
