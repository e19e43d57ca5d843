package rows

import "hash/maphash"

// seed keeps others from choosing keys that collide.
var seed = maphash.MakeSeed()

func hash(key []byte) uint64 { return maphash.Bytes(seed, key) }

const (
	parts    = 256
	tagBits  = 64 - refBits
	minSlots = 8
	slotSize = 8 // bytes
)

// index finds entries by the hash of their keys. It never looks at entries.
type index struct {
	parts [parts]part
	n     int // refs
	slots int // of all parts
}

// part is an open-addressing table with linear probing. The number of its
// slots is a power of two, and it is never full.
type part struct {
	slots []uint64 // tag, then ref; 0 is empty
	n     int
}

func (x *index) part(h uint64) *part { return &x.parts[h>>56] }

// tagOf returns the bits of the hash behind those that choose the part.
func tagOf(h uint64) uint64 { return h << 8 >> (64 - tagBits) }

func (x *index) insert(h uint64, r ref) {
	p := x.part(h)
	if (p.n+1)*16 > len(p.slots)*13 {
		x.resize(p, max(len(p.slots)*2, minSlots))
	}
	p.place(tagOf(h)<<refBits | uint64(r))
	p.n++
	x.n++
}

// replace makes the slot of old refer to r.
func (x *index) replace(h uint64, old, r ref) {
	p := x.part(h)
	p.slots[p.position(h, old)] = tagOf(h)<<refBits | uint64(r)
}

// remove empties the slot of r and moves what stands behind it up, so that no
// gap ends a probe early.
func (x *index) remove(h uint64, r ref) {
	p := x.part(h)
	mask := uint64(len(p.slots) - 1)
	gap := p.position(h, r)
	for i := (gap + 1) & mask; p.slots[i] != 0; i = (i + 1) & mask {
		home := p.slots[i] >> refBits & mask
		if (i-home)&mask >= (i-gap)&mask {
			p.slots[gap] = p.slots[i]
			gap = i
		}
	}
	p.slots[gap] = 0
	p.n--
	x.n--
	if len(p.slots) > minSlots && p.n*8 < len(p.slots) {
		x.resize(p, len(p.slots)/2)
	}
}

func (x *index) resize(p *part, slots int) {
	old := p.slots
	x.slots += slots - len(old)
	p.slots = make([]uint64, slots)
	for _, s := range old {
		if s != 0 {
			p.place(s)
		}
	}
}

// place puts a slot's content where a probe finds it.
func (p *part) place(s uint64) {
	mask := uint64(len(p.slots) - 1)
	i := s >> refBits & mask
	for p.slots[i] != 0 {
		i = (i + 1) & mask
	}
	p.slots[i] = s
}

// position returns the slot of r, which is there.
func (p *part) position(h uint64, r ref) uint64 {
	mask := uint64(len(p.slots) - 1)
	s := tagOf(h)<<refBits | uint64(r)
	i := tagOf(h) & mask
	for p.slots[i] != s {
		i = (i + 1) & mask
	}
	return i
}
