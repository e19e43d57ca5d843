package rows

import "math/bits"

// A ref says where an entry stands: the number of its chunk, then the offset
// in it in units. 0 is no entry.
type ref uint64

const (
	offsetBits = 15 // in units: 256 KiB
	refBits    = 36 // leaves 2,097,152 chunks
	refMask    = 1<<refBits - 1

	minChunk = 4 << 10
	maxChunk = unit << offsetBits

	chunkSize = 48 // bytes of a chunk struct
)

// arena is the log of entries: chunks in a list from the oldest to the newest.
type arena struct {
	chunks  []chunk  // by number; number 0 is the end of the list on both sides
	unused  []uint32 // numbers that were given back
	head    uint32   // where small entries are appended, 0 for none
	spare   []byte   // one buffer of the largest size, kept for the next chunk
	bytes   int      // capacity of the chunks in the list
	waste   waste    // sums over all chunks
	largest int      // fixed: size of the largest shared chunk
}

type chunk struct {
	buf        []byte // its length is what is used of it
	waste      waste
	prev, next uint32
}

// waste says how many bytes of entries are of no use, or may be.
type waste struct {
	dead   int
	absent int // live entries without a value
}

func newArena(budget int) arena {
	largest := minChunk
	for largest < maxChunk && largest*2 <= budget/32 {
		largest *= 2
	}
	return arena{chunks: make([]chunk, 1), largest: largest}
}

// at returns the entry at r.
func (a *arena) at(r ref) row {
	return row(a.chunks[r>>offsetBits].buf[r&(1<<offsetBits-1)*unit:])
}

// alloc returns the place of a new entry of the given size. The memory of
// other entries stays as it is. Grown says that it took another chunk.
func (a *arena) alloc(size int) (r ref, e row, grown bool) {
	c := &a.chunks[a.head]
	if room := cap(c.buf) - len(c.buf); size > room || size > a.largest/8 {
		next := a.nextSize()
		if size > next/8 {
			alone := a.push(make([]byte, size))
			return ref(alone) << offsetBits, row(a.chunks[alone].buf), true
		}
		a.head = a.push(a.buffer(next)[:0])
		c = &a.chunks[a.head]
		grown = true
	}
	start := len(c.buf)
	c.buf = c.buf[:start+size]
	return ref(a.head)<<offsetBits | ref(start/unit), row(c.buf[start:]), grown
}

// kill marks a live entry as dead. Its memory stays as it is until the next
// call of alloc.
func (a *arena) kill(r ref, e row) {
	m, size := e.meta(), e.size()
	if m&flagAbsent != 0 {
		a.addAbsent(r, -size)
	}
	e.setMeta(m | flagDead)
	c := &a.chunks[r>>offsetBits]
	c.waste.dead += size
	a.waste.dead += size
	if number := uint32(r >> offsetBits); c.waste.dead == len(c.buf) && number != a.head {
		a.free(number)
	}
}

// addAbsent counts n more bytes of absent entries in the chunk of r.
func (a *arena) addAbsent(r ref, n int) {
	a.chunks[r>>offsetBits].waste.absent += n
	a.waste.absent += n
}

// free takes the chunk out of the list.
func (a *arena) free(number uint32) {
	c := &a.chunks[number]
	a.unlink(number)
	a.bytes -= cap(c.buf)
	a.waste.dead -= c.waste.dead
	a.waste.absent -= c.waste.absent
	if cap(c.buf) == a.largest {
		a.spare = c.buf
	}
	*c = chunk{}
	a.unused = append(a.unused, number)
}

// rotate makes the chunk the newest.
func (a *arena) rotate(number uint32) {
	a.unlink(number)
	a.link(number)
}

// oldest returns the chunk that was not swept for the longest time, 0 if only
// the head is left.
func (a *arena) oldest() uint32 {
	first := a.chunks[0].next
	if first == a.head {
		return a.chunks[first].next
	}
	return first
}

// each calls visit for every entry of the chunk.
func (a *arena) each(number uint32, visit func(r ref, e row) bool) bool {
	buf := a.chunks[number].buf
	for start := 0; start < len(buf); {
		e := row(buf[start:])
		r := ref(number)<<offsetBits | ref(start/unit)
		start += e.size() // first: visit may move the entry, not change its size
		if !visit(r, e) {
			return false
		}
	}
	return true
}

// nextSize returns how large the next shared chunk is to be: chunks grow with
// the arena, so that a small table is small.
func (a *arena) nextSize() int {
	size := 1 << bits.Len(uint(a.bytes/16))
	return min(max(size, minChunk), a.largest)
}

func (a *arena) buffer(size int) []byte {
	if buf := a.spare; size == a.largest && buf != nil {
		a.spare = nil
		return buf
	}
	return make([]byte, size)
}

// push adds a chunk as the newest.
func (a *arena) push(buf []byte) uint32 {
	var number uint32
	if n := len(a.unused); n > 0 {
		number = a.unused[n-1]
		a.unused = a.unused[:n-1]
	} else {
		number = uint32(len(a.chunks))
		a.chunks = append(a.chunks, chunk{})
	}
	a.chunks[number].buf = buf
	a.link(number)
	a.bytes += cap(buf)
	return number
}

func (a *arena) link(number uint32) {
	last := a.chunks[0].prev
	a.chunks[number].prev, a.chunks[number].next = last, 0
	a.chunks[last].next = number
	a.chunks[0].prev = number
}

func (a *arena) unlink(number uint32) {
	c := &a.chunks[number]
	a.chunks[c.prev].next = c.next
	a.chunks[c.next].prev = c.prev
}

// count returns the number of chunks.
func (a *arena) count() int { return len(a.chunks) - 1 - len(a.unused) }

// overhead returns the bytes of the arena beside its chunks.
func (a *arena) overhead() int { return cap(a.chunks)*chunkSize + cap(a.unused)*4 }
