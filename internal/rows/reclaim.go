package rows

// mercy says which clean entries a sweep keeps.
type mercy int

const (
	keepAll  mercy = iota // drop nothing that says something
	keepUsed              // drop what was not read or set since the last sweep
	keepNone
)

const (
	// A sweep that would yield less than this part of a chunk does not pay.
	worthwhile = 8

	// patience is how many fruitless sweeps a new chunk allows. The last one
	// evicts rows in use, too.
	patience = 4
)

// over reports whether there is something to reclaim and hope to succeed: the
// table is over its limit, or most of it says nothing.
func (t *Table) over() bool {
	return t.patience > 0 && (t.inUse() > t.limit || t.littered())
}

// littered reports whether more than half of a table that is not small is
// garbage. That is so where rows come and go, as those of windows do: without
// this they would fill the budget before they are swept.
func (t *Table) littered() bool {
	const small = 1 << 20
	return t.arena.bytes > small && t.garbage(t.arena.waste) > t.arena.bytes/2
}

// reclaim sweeps one chunk, or two if the first, chosen for its garbage, held
// less than it promised.
func (t *Table) reclaim() {
	t.patience--
	if t.sweep(t.wasteful(), keepAll) {
		t.patience++
		return
	}
	if t.inUse() <= t.limit {
		return // the garbage is not clean yet
	}
	m := keepUsed
	if t.patience == 0 {
		m = keepNone
	}
	if t.sweep(t.arena.oldest(), m) {
		t.patience++
	}
}

// wasteful returns the chunk with the most garbage if there is much of it in
// all, else 0.
func (t *Table) wasteful() uint32 {
	if t.garbage(t.arena.waste) < t.arena.bytes/worthwhile {
		return 0
	}
	var most int
	var found uint32
	for n := t.arena.chunks[0].next; n != 0; n = t.arena.chunks[n].next {
		if g := t.garbage(t.arena.chunks[n].waste); g > most && n != t.arena.head {
			most, found = g, n
		}
	}
	return found
}

// garbage returns how much of w says nothing. In a complete table that
// includes absent entries.
func (t *Table) garbage(w waste) int {
	if t.complete {
		return w.dead + w.absent
	}
	return w.dead
}

// sweep frees the chunk: entries are evicted or move to the end of the log. If
// that would yield too little, the chunk becomes the newest as it is, and
// sweep reports false.
func (t *Table) sweep(number uint32, m mercy) bool {
	if number == 0 {
		return false
	}
	t.last = 0
	var gain int
	t.arena.each(number, func(_ ref, e row) bool {
		if e.meta()&flagDead != 0 || t.evictable(e, m) {
			gain += e.size()
		}
		return true
	})
	if gain*worthwhile < len(t.arena.chunks[number].buf) {
		t.spare(number)
		return false
	}
	t.arena.each(number, func(r ref, e row) bool {
		switch {
		case e.meta()&flagDead != 0:
		case t.evictable(e, m):
			t.complete = t.complete && e.meta()&flagAbsent != 0
			t.index.remove(hash(e.key()), r)
		default:
			t.relocate(r, e)
		}
		return true
	})
	t.arena.free(number)
	return true
}

// evictable reports whether a live entry may be dropped.
func (t *Table) evictable(e row, m mercy) bool {
	meta := e.meta()
	if !t.clean(e) {
		return false
	}
	if t.complete && meta&flagAbsent != 0 {
		return true
	}
	return m == keepNone || m == keepUsed && meta&flagUsed == 0
}

// relocate moves an entry of a chunk that is being swept to the end of the
// log, without the room that it does not need. Big entries never come here:
// a chunk with a single entry is freed or spared as a whole.
func (t *Table) relocate(r ref, e row) {
	_, _, end := e.bounds()
	to, moved, _ := t.arena.alloc(roundUp(end))
	copy(moved, e[:end])
	m := e.meta() &^ (flagUsed | sizeMask)
	moved.setMeta(m | uint64(len(moved)/unit)<<sizeShift)
	if m&flagAbsent != 0 {
		t.arena.addAbsent(to, len(moved))
	}
	if m&flagChanged != 0 {
		t.changes.move(e.mark(), to)
	}
	t.index.replace(hash(e.key()), r, to)
}

// spare puts the chunk to the back of the queue. Its entries have had their
// second chance.
func (t *Table) spare(number uint32) {
	t.arena.rotate(number)
	t.arena.each(number, func(_ ref, e row) bool {
		if m := e.meta(); m&flagUsed != 0 {
			e.setMeta(m &^ flagUsed)
		}
		return true
	})
}
