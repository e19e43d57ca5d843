package task

import "encoding/binary"

// stagedIndex finds rows that a record has staged, where they are many.
type stagedIndex struct {
	last map[string]int // by store and key; holds those of the first n
	n    int
	key  []byte
}

// indexFrom is how many rows are looked through one by one.
const indexFrom = 48

func (x *stagedIndex) reset() {
	if x.n > 0 {
		clear(x.last)
		x.n = 0
	}
}

func (x *stagedIndex) keyOf(store int, key []byte) []byte {
	x.key = append(binary.AppendUvarint(x.key[:0], uint64(store)), key...)
	return x.key
}

// lastStaged returns the index of the newest staged row of a key, -1 if there
// is none.
func (r *Record) lastStaged(store int, key []byte) int {
	if len(r.staged) < indexFrom {
		for i := len(r.staged) - 1; i >= 0; i-- {
			s := &r.staged[i]
			if s.store == store && string(r.bytes[s.key.from:s.key.to]) == string(key) {
				return i
			}
		}
		return -1
	}
	x := &r.index
	if x.last == nil {
		x.last = map[string]int{}
	}
	for ; x.n < len(r.staged); x.n++ {
		s := &r.staged[x.n]
		x.last[string(x.keyOf(s.store, r.bytes[s.key.from:s.key.to]))] = x.n
	}
	if i, ok := x.last[string(x.keyOf(store, key))]; ok {
		return i
	}
	return -1
}

// Savepoint is how far a record's effects were at a moment.
type Savepoint struct{ staged, bytes, emitted, counted, size int }

// Save returns a savepoint of what the handler has done so far.
func (r *Record) Save() Savepoint {
	return Savepoint{len(r.staged), len(r.bytes), len(r.emitted), len(r.counted), r.size}
}

// Forgive takes back what was done since a savepoint if it has failed, and the
// error policy lets it: then the rest of the run goes on without it. It is
// counted as skipped, and logged.
func (r *Record) Forgive(s Savepoint) {
	if r.err == nil || !r.task.forgives(r.err) {
		return
	}
	for i := len(r.emitted) - 1; i >= s.emitted; i-- {
		r.emitted[i].drop()
	}
	r.staged, r.bytes, r.emitted = r.staged[:s.staged], r.bytes[:s.bytes], r.emitted[:s.emitted]
	r.counted, r.size = r.counted[:s.counted], s.size
	r.index.reset()
	r.task.note("skipped a result that was due", r.err)
	r.task.count.skipped++
	r.err = nil
}
