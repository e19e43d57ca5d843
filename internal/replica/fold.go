package replica

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/rekastream/reka/storage"
)

// timeBytes is what precedes a value in the store: the time of its row in
// milliseconds, big-endian.
const timeBytes = 8

var foldSeed = maphash.MakeSeed()

// fold is the last value of every key of a run of changes, in the form in
// which the store takes them. One writer; what a flush has taken is not
// written any more.
type fold struct {
	data  []byte // key, and time and value, of each row
	rows  []foldRow
	slots []uint32 // open addressing: index+1 into rows, 0 is free
	seq   uint64   // of the last change in it
	vers  uint32   // version of the row cache that covers it
}

// foldRow places a row in the data; a val length of -1 is a delete. The value
// is not beside its key once it was replaced by a longer one.
type foldRow struct {
	key, val       int
	keyLen, valLen int32
	hash           uint32
}

const foldRowBytes = 40 // of a foldRow and its slot

// bytes is what the fold holds in memory.
func (f *fold) bytes() int { return len(f.data) + len(f.rows)*foldRowBytes }

func (f *fold) len() int { return len(f.rows) }

// reset empties the fold and keeps its memory.
func (f *fold) reset() *fold {
	f.data, f.rows = f.data[:0], f.rows[:0]
	clear(f.slots)
	return f
}

// set notes a change; a nil value is a delete.
func (f *fold) set(key, value []byte, time int64) {
	if 2*(len(f.rows)+1) > len(f.slots) {
		f.grow()
	}
	h := uint32(maphash.Bytes(foldSeed, key))
	slot, r := f.find(key, h)
	if r == nil {
		f.rows = append(f.rows, foldRow{key: len(f.data), keyLen: int32(len(key)), hash: h})
		f.data = append(f.data, key...)
		f.slots[slot] = uint32(len(f.rows))
		r = &f.rows[len(f.rows)-1]
		r.val, r.valLen = len(f.data), -1
	}
	f.setValue(r, value, time)
}

func (f *fold) setValue(r *foldRow, value []byte, time int64) {
	if value == nil {
		r.valLen = -1
		return
	}
	n := int32(timeBytes + len(value))
	if r.valLen >= n {
		binary.BigEndian.PutUint64(f.data[r.val:], uint64(time))
		copy(f.data[r.val+timeBytes:], value)
	} else {
		r.val = len(f.data)
		f.data = binary.BigEndian.AppendUint64(f.data, uint64(time))
		f.data = append(f.data, value...)
	}
	r.valLen = n
}

func (f *fold) value(r *foldRow) (value []byte, time int64) {
	if r.valLen < 0 {
		return nil, 0
	}
	return splitStored(f.data[r.val : r.val+int(r.valLen) : r.val+int(r.valLen)])
}

// each calls visit for all rows.
func (f *fold) each(visit func(key, value []byte, time int64)) {
	for i := range f.rows {
		r := &f.rows[i]
		v, t := f.value(r)
		visit(f.data[r.key:r.key+int(r.keyLen)], v, t)
	}
}

// stored returns row i as the store takes it.
func (f *fold) stored(i int) storage.Row {
	r := &f.rows[i]
	row := storage.Row{Key: f.data[r.key : r.key+int(r.keyLen)]}
	if r.valLen >= 0 {
		row.Value = f.data[r.val : r.val+int(r.valLen)]
	}
	return row
}

// find returns the row of a key, or nil and the slot where it belongs.
func (f *fold) find(key []byte, h uint32) (slot int, r *foldRow) {
	mask := len(f.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		n := f.slots[i]
		if n == 0 {
			return i, nil
		}
		r := &f.rows[n-1]
		if r.hash == h && string(f.data[r.key:r.key+int(r.keyLen)]) == string(key) {
			return i, r
		}
	}
}

func (f *fold) grow() {
	f.slots = make([]uint32, max(64, 2*len(f.slots)))
	mask := len(f.slots) - 1
	for n := range f.rows {
		i := int(f.rows[n].hash) & mask
		for f.slots[i] != 0 {
			i = (i + 1) & mask
		}
		f.slots[i] = uint32(n + 1)
	}
}

// splitStored parts what the store holds for a row. A row that is too short
// was not written by this package: it has no time.
func splitStored(b []byte) (value []byte, time int64) {
	if len(b) < timeBytes {
		return b, -1
	}
	return b[timeBytes:], int64(binary.BigEndian.Uint64(b))
}
