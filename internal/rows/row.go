package rows

import "encoding/binary"

// A row is the memory of a chunk from the start of one entry on:
//
//	 0  meta   flags, length of key, length of value, size in units
//	 8  time
//	16  mark   number in the list of changes, or version of the last change
//	20  key, value, spare room
//
// Lengths that the meta word cannot hold follow the mark, in entries with the
// big flag. Such an entry is alone in its chunk, which tells its size.
type row []byte

const (
	unit = 8 // bytes; entries start at multiples of it

	headerSize    = 20
	bigHeaderSize = headerSize + 16

	// maxSmall is the size in bytes up to which an entry needs no big flag.
	maxSmall = 128 << 10

	// alwaysInPlace is the size in bytes up to which an entry keeps its place
	// however short its value becomes.
	alwaysInPlace = 1 << 10
)

const (
	flagAbsent  = 1 << iota // no value
	flagChanged             // in the current version
	flagUsed                // since the last sweep
	flagDead                // not in the index any more
	flagBig

	lengthBits = 18
	lengthMask = 1<<lengthBits - 1
	keyShift   = 5
	valueShift = keyShift + lengthBits
	sizeShift  = valueShift + lengthBits
	sizeMask   = 1<<64 - 1<<sizeShift
)

func (e row) meta() uint64     { return binary.LittleEndian.Uint64(e) }
func (e row) setMeta(m uint64) { binary.LittleEndian.PutUint64(e, m) }

func (e row) time() int64     { return int64(binary.LittleEndian.Uint64(e[8:])) }
func (e row) setTime(t int64) { binary.LittleEndian.PutUint64(e[8:], uint64(t)) }

func (e row) mark() uint32     { return binary.LittleEndian.Uint32(e[16:]) }
func (e row) setMark(m uint32) { binary.LittleEndian.PutUint32(e[16:], m) }

// size is what the entry takes of its chunk, in bytes.
func (e row) size() int {
	m := e.meta()
	if m&flagBig != 0 {
		return len(e)
	}
	return int(m>>sizeShift) * unit
}

// bounds returns where the key starts, where the value starts, and where it
// ends.
func (e row) bounds() (key, value, end int) {
	m := e.meta()
	if m&flagBig != 0 {
		key = bigHeaderSize
		value = key + int(binary.LittleEndian.Uint64(e[headerSize:]))
		return key, value, value + int(binary.LittleEndian.Uint64(e[headerSize+8:]))
	}
	value = headerSize + int(m>>keyShift&lengthMask)
	return headerSize, value, value + int(m>>valueShift&lengthMask)
}

func (e row) key() []byte {
	key, value, _ := e.bounds()
	return e[key:value:value]
}

func (e row) hasKey(key []byte) bool {
	m := e.meta()
	if m&flagBig != 0 {
		return e.hasBigKey(key)
	}
	return int(m>>keyShift&lengthMask) == len(key) && string(e[headerSize:][:len(key)]) == string(key)
}

func (e row) hasBigKey(key []byte) bool { return string(e.key()) == string(key) }

func (e row) entry() Entry {
	if e.meta()&flagAbsent != 0 {
		return Entry{Time: e.time(), Absent: true}
	}
	_, value, end := e.bounds()
	return Entry{Value: e[value:end:end], Time: e.time()}
}

// setValue writes a value that fits, nil for absent.
func (e row) setValue(value []byte) {
	_, start, _ := e.bounds()
	copy(e[start:], value)
	m := e.meta() &^ flagAbsent
	if value == nil {
		m |= flagAbsent
	}
	if m&flagBig != 0 {
		binary.LittleEndian.PutUint64(e[headerSize+8:], uint64(len(value)))
	} else {
		m = m&^(lengthMask<<valueShift) | uint64(len(value))<<valueShift
	}
	e.setMeta(m)
}

// simple reports whether a row has a value and a new one of n bytes can be
// written over it, in the common case.
func (e row) simple(n int) bool {
	m := e.meta()
	return m&(flagBig|flagAbsent) == 0 &&
		headerSize+int(m>>keyShift&lengthMask)+n <= int(m>>sizeShift)*unit &&
		m>>sizeShift <= alwaysInPlace/unit
}

// accepts reports whether a value of n bytes belongs into this entry: it fits,
// and does not leave most of a large entry empty.
func (e row) accepts(n int) bool {
	_, start, _ := e.bounds()
	size := e.size()
	return start+n <= size && (size <= alwaysInPlace || start+n >= size/4)
}

// sizeFor returns the size of an entry, and whether it needs the big flag.
func sizeFor(key, value int) (size int, big bool) {
	if size = headerSize + key + value; size <= maxSmall {
		return roundUp(size), false
	}
	return roundUp(bigHeaderSize + key + value), true
}

func roundUp(n int) int { return (n + unit - 1) &^ (unit - 1) }

// initRow makes e, which is as long as the entry is to be, an entry for key.
// It has no value, version 0 and no time yet.
func initRow(e row, key []byte, big bool) {
	e.setMark(0)
	e.setTime(0)
	if big {
		e.setMeta(flagBig | flagAbsent)
		binary.LittleEndian.PutUint64(e[headerSize:], uint64(len(key)))
		binary.LittleEndian.PutUint64(e[headerSize+8:], 0)
		copy(e[bigHeaderSize:], key)
		return
	}
	e.setMeta(flagAbsent | uint64(len(key))<<keyShift | uint64(len(e)/unit)<<sizeShift)
	copy(e[headerSize:], key)
}
