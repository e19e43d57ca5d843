package rows

import (
	"slices"
	"unsafe"
)

// Table holds the newest value of each key that its owner has set or looked
// up. It belongs to one goroutine and has no locks.
//
// What was set belongs to the current version. Seal ends the version and hands
// out its rows; Clean says that a version and all before it are in the store.
// Only clean rows can be evicted.
type Table struct {
	index   index
	arena   arena
	changes changes

	// last is the entry that was found or written last, 0 if unknown, so
	// that what is read and then set is looked up once.
	last ref

	budget, limit int // fixed after New, bytes

	version  uint32 // the current one
	cleaned  uint32 // the last one that is clean
	complete bool

	changedBytes int
	sealed       []sealed // not clean yet, by version
	sealedBytes  int      // of all in sealed

	patience int    // sweeps that may fail before the table rests
	aged     uint32 // number of the chunk that age looked at last

	touched uint64 // means nothing: it keeps loads of Prefetch in the program
}

type sealed struct {
	version uint32
	bytes   int
}

// Entry is what a table knows of a key.
type Entry struct {
	// Value aliases the table's memory: it may be read until the next call
	// of Set, Fill, Clean or Forget, and must not be changed. It is nil if,
	// and only if, the row is absent.
	Value []byte

	// Time is the row's time, or that of its deletion.
	Time int64

	// Absent says that the key is known to have no value.
	Absent bool
}

// New returns an empty table at version 1. Budget is in bytes and counts all
// memory of the table, overhead included. Rows that are not clean are kept
// even beyond it: the owner bounds them by ChangedBytes and UncleanBytes.
func New(budget int) *Table {
	t := &Table{budget: budget}
	t.Forget()
	return t
}

// Find returns what the table knows of key. Not ok means that it knows
// nothing: the store is to be asked, unless the table is complete, where it
// means that there is no such row.
func (t *Table) Find(key []byte) (e Entry, ok bool) {
	r, row := t.locate(key)
	if r == 0 {
		return Entry{}, false
	}
	t.last = r
	m := row.meta()
	if m&flagUsed == 0 {
		row.setMeta(m | flagUsed)
	}
	if m&(flagBig|flagAbsent) != 0 {
		return row.entry(), true
	}
	value := row[headerSize+len(key):][:m>>valueShift&lengthMask]
	return Entry{Value: slices.Clip(value), Time: row.time()}, true
}

// Prefetch has the processor load what Find will read for each of the keys. It
// changes nothing that can be observed. Called ahead of the records that need
// the keys, it lets the loads of all of them overlap, where each Find of a
// large table would wait for its own. With a small table it does nothing.
func (t *Table) Prefetch(keys [][]byte) {
	const (
		ahead = 16
		small = 1 << 20 // bytes; stays in the processor's caches
	)
	if t.arena.bytes < small {
		return
	}
	var hashes [ahead]uint64
	for len(keys) > 0 {
		n := min(len(keys), ahead)
		for i, key := range keys[:n] {
			h := hash(key)
			hashes[i] = h
			if slots := t.index.part(h).slots; len(slots) > 0 {
				t.touched ^= slots[tagOf(h)&uint64(len(slots)-1)]
			}
		}
		for _, h := range hashes[:n] {
			t.touch(h)
		}
		keys = keys[n:]
	}
}

func (t *Table) touch(h uint64) {
	slots := t.index.part(h).slots
	if len(slots) == 0 {
		return
	}
	mask := uint64(len(slots) - 1)
	tag := tagOf(h)
	for i := tag & mask; slots[i] != 0; i = (i + 1) & mask {
		if slots[i]>>refBits == tag {
			t.touched ^= t.arena.at(ref(slots[i] & refMask)).meta()
			return
		}
	}
}

// Set changes the row in the current version; a nil value deletes it, an empty
// one does not. Key and value are copied; they may alias what Find returned.
// A Set that follows a Find of the same key does not look it up again. It
// reports whether the table knew the row, and that it had a value.
func (t *Table) Set(key, value []byte, time int64) (had bool) {
	r, e := t.locate(key)
	switch {
	case r == 0:
		r, e = t.add(key, len(value))
		t.index.insert(hash(key), r)
	case value != nil && e.simple(len(value)):
		t.last = r
		t.update(r, e, value, time)
		return true
	default:
		had = e.meta()&flagAbsent == 0
		if !e.accepts(len(value)) {
			r, e = t.move(r, e, len(value))
		}
	}
	t.last = r
	t.change(r, e, value)
	e.setTime(time)
	if t.over() {
		t.reclaim()
	}
	return had
}

// Fill adds what the store answered for key. The row is clean. If the table
// knows the key already, Fill does nothing: what it knows is newer. Between
// the moment of which the store's answer tells and Fill, the owner must not
// have called Clean, or the answer could be older than a row that came and was
// evicted since.
func (t *Table) Fill(key, value []byte, time int64, absent bool) {
	if r, _ := t.locate(key); r != 0 {
		return
	}
	if absent {
		value = nil
	} else if value == nil {
		value = []byte{}
	}
	r, e := t.add(key, len(value))
	t.index.insert(hash(key), r)
	t.last = r
	t.assign(r, e, value)
	e.setTime(time)
	if t.over() {
		t.reclaim()
	}
}

// Changed returns how many keys have changed in the current version.
func (t *Table) Changed() int { return t.changes.n }

// ChangedBytes returns the size of the keys that have changed in the current
// version and of their last values.
func (t *Table) ChangedBytes() int { return t.changedBytes }

// UncleanBytes returns the size of the keys and values that cannot be evicted,
// counted once for each version in which a key has changed: those of the
// current version and of the sealed ones that are not clean yet.
func (t *Table) UncleanBytes() int { return t.changedBytes + t.sealedBytes }

// Seal ends the current version and returns its number. Visit is called once
// for each key that changed in it, in the order of first change, with its last
// value. Key and value may be read during the call only, and visit must not
// use the table. A version without changes ends likewise. Numbers start again
// after 4,294,967,295, so they have no order; 0 is never one.
func (t *Table) Seal(visit func(key, value []byte, time int64, deleted bool)) (version uint32) {
	for n := range t.changes.n {
		row := t.arena.at(t.changes.at(n))
		e := row.entry()
		visit(row.key(), e.Value, e.Time, e.Absent)
		row.setMeta(row.meta() &^ flagChanged)
		row.setMark(t.version)
	}
	if t.changedBytes > 0 {
		t.sealed = append(t.sealed, sealed{t.version, t.changedBytes})
		t.sealedBytes += t.changedBytes
	}
	t.changes.reset()
	t.changedBytes = 0
	version = t.version
	if t.version++; t.version == 0 {
		t.version = 1
	}
	if version%ageEvery == 0 {
		t.age()
	}
	return version
}

// Clean says that the store holds version and all before it. Rows that changed
// last in one of them may be evicted from now on. The current version cannot
// be clean.
func (t *Table) Clean(version uint32) {
	if after(version, t.version-1) {
		version = t.version - 1
	}
	if after(version, t.cleaned) {
		t.cleaned = version
	}
	n := 0
	for n < len(t.sealed) && !after(t.sealed[n].version, t.cleaned) {
		t.sealedBytes -= t.sealed[n].bytes
		n++
	}
	t.sealed = append(t.sealed[:0], t.sealed[n:]...)
	t.patience = max(t.patience, t.arena.count())
	if t.over() {
		t.reclaim()
	}
}

// Complete reports whether every row of the owner's table is here, so that a
// key that is not found does not exist. Eviction of a row ends it.
func (t *Table) Complete() bool { return t.complete }

// SetComplete says that every row of the owner's table is here: its store
// started empty, or all of it was filled in.
func (t *Table) SetComplete() { t.complete = true }

// Each calls visit for every key that the table knows, in no order, until it
// returns false. Clean tells whether the store holds the same. Key and entry
// may be read during the call only, and visit must not use the table.
func (t *Table) Each(visit func(key []byte, e Entry, clean bool) bool) {
	for n := t.arena.chunks[0].next; n != 0; n = t.arena.chunks[n].next {
		more := t.arena.each(n, func(_ ref, e row) bool {
			return e.meta()&flagDead != 0 || visit(e.key(), e.entry(), t.clean(e))
		})
		if !more {
			return
		}
	}
}

// Forget drops everything, unclean rows included. The table is not complete
// afterwards. Numbers of versions go on.
func (t *Table) Forget() {
	arena := newArena(t.budget)
	*t = Table{
		arena:   arena,
		budget:  t.budget,
		limit:   t.budget - 2*arena.largest, // a new chunk comes before an old one goes, and a spare one is kept
		version: max(t.version, 1),
		cleaned: t.cleaned,
	}
}

// Len returns the number of keys that the table knows, absent ones included.
func (t *Table) Len() int { return t.index.n }

// Bytes returns the memory that the table holds, overhead included.
func (t *Table) Bytes() int { return t.inUse() + cap(t.arena.spare) }

func (t *Table) inUse() int {
	return int(unsafe.Sizeof(*t)) + t.index.slots*slotSize + t.arena.bytes + t.arena.overhead() + t.changes.bytes()
}

// locate returns the live entry of key, or 0.
func (t *Table) locate(key []byte) (ref, row) {
	if t.last != 0 {
		if e := t.arena.at(t.last); e.hasKey(key) {
			return t.last, e
		}
	}
	h := hash(key)
	slots := t.index.part(h).slots
	if len(slots) == 0 {
		return 0, nil
	}
	mask := uint64(len(slots) - 1)
	tag := tagOf(h)
	for i := tag & mask; ; i = (i + 1) & mask {
		s := slots[i]
		if s == 0 {
			return 0, nil
		}
		if s>>refBits == tag {
			r := ref(s & refMask)
			if e := t.arena.at(r); e.hasKey(key) {
				return r, e
			}
		}
	}
}

// add appends an entry for key with room for n bytes, and no value yet.
func (t *Table) add(key []byte, n int) (ref, row) {
	size, big := sizeFor(len(key), n)
	r, e, grown := t.arena.alloc(size)
	if grown {
		t.patience = max(t.patience, patience)
	}
	initRow(e, key, big)
	t.arena.addAbsent(r, size)
	return r, e
}

// move puts an entry to the end of the log, with room for n bytes and some
// more if it had too little. The old entry's memory stays as it is for now:
// the new value may alias it.
func (t *Table) move(r ref, old row, n int) (ref, row) {
	_, start, _ := old.bounds()
	if start+n > old.size() {
		n += n / 4 // it grows, and will do so again
	}
	to, e := t.add(old.key(), n)
	t.index.replace(hash(old.key()), r, to)
	m := old.meta()
	e.setMark(old.mark())
	e.setMeta(e.meta() | m&(flagChanged|flagUsed))
	if m&flagChanged != 0 {
		t.changes.move(old.mark(), to)
		_, start, end := old.bounds()
		t.changedBytes -= end - start
	}
	t.arena.kill(r, old)
	return to, e
}

// update is Set for a row that is simple.
func (t *Table) update(r ref, e row, value []byte, time int64) {
	m := e.meta()
	key, old := int(m>>keyShift&lengthMask), int(m>>valueShift&lengthMask)
	copy(e[headerSize+key:], value)
	e.setTime(time)
	e.setMeta(m&^(lengthMask<<valueShift) | uint64(len(value))<<valueShift | flagChanged | flagUsed)
	if m&flagChanged != 0 {
		t.changedBytes += len(value) - old
		return
	}
	e.setMark(t.changes.add(r))
	t.changedBytes += key + len(value)
	if t.over() {
		t.reclaim()
	}
}

// change sets the value in the current version.
func (t *Table) change(r ref, e row, value []byte) {
	key, start, end := e.bounds()
	m := e.meta()
	if m&flagChanged == 0 {
		e.setMark(t.changes.add(r))
		e.setMeta(m | flagChanged | flagUsed)
		t.changedBytes += start - key + len(value)
	} else {
		t.changedBytes += len(value) - (end - start)
	}
	t.assign(r, e, value)
}

// assign sets the value and keeps count of absent entries.
func (t *Table) assign(r ref, e row, value []byte) {
	if was := e.meta()&flagAbsent != 0; was != (value == nil) {
		if was {
			t.arena.addAbsent(r, -e.size())
		} else {
			t.arena.addAbsent(r, e.size())
		}
	}
	e.setValue(value)
}
