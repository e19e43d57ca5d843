package stream

// bucket is a stretch of time of one key, see slidingOp.
type bucket struct {
	start   int64
	entry   int64 // in the timeline: start of the next window to close, or before; noEntry: none
	number  int64 // of the record that came last
	records []slidingRecord
	windows []slidingWindow // by start

	known   bool // there is a row
	changed bool
	due     bool // the entry has come due
}

// slidingRecord is a record of a bucket. Records are numbered as they come:
// two that can be in one window lie in buckets side by side.
type slidingRecord struct {
	time, number int64
	raw          []byte
}

// slidingWindow is a window that starts in a bucket.
type slidingWindow struct {
	start int64
	state slidingState
	time  int64  // the highest of its records
	raw   []byte // the aggregate's encoding
}

type slidingState int64

const (
	slidingEmpty slidingState = iota // waits for its first record
	slidingOpen
	slidingDone // the final result has been emitted
)

// bucket reads a bucket. Its bytes are valid until a row is set.
func (s *slidingOp[T, A]) bucket(x *exec, key []byte, start int64) (*bucket, bool) {
	b := &bucket{start: start, entry: noEntry}
	x.keyBuf = windowRow(x.keyBuf[:0], lineKept, start, key)
	raw, ok := x.rec.Get(s.st.index, x.keyBuf)
	if !ok {
		return b, !x.failed()
	}
	r := reader{b: append([]byte{}, raw...)}
	b.known = true
	if entry := r.number(); entry > 0 {
		b.entry = start + entry - 1
	}
	b.number = r.number()
	for n := r.number(); n > 0 && !r.bad; n-- {
		b.records = append(b.records, slidingRecord{start + r.number(), r.number(), r.bytes()})
	}
	for len(r.b) > 0 {
		w := slidingWindow{start: start + r.number(), state: slidingState(r.number())}
		if w.state != slidingEmpty {
			w.time, w.raw = w.start+r.number(), r.bytes()
		}
		b.windows = append(b.windows, w)
	}
	return b, r.end(x, place{s.st.spec.Changelog, key})
}

// set writes a bucket, and sees to its entry in the timeline: it moves if it
// would be too late, or if it has come due.
func (s *slidingOp[T, A]) set(x *exec, key []byte, b *bucket) {
	was := b.entry
	b.entry = s.next(b)
	buf := appendNumber(x.listBuf[:0], b.entry-b.start+1)
	if b.entry == noEntry {
		buf = appendNumber(x.listBuf[:0], 0)
	}
	buf = appendNumber(buf, b.number)
	buf = appendNumber(buf, int64(len(b.records)))
	for i := range b.records {
		r := &b.records[i]
		buf = appendNumber(appendNumber(buf, r.time-b.start), r.number)
		buf = appendBytes(buf, r.raw)
	}
	for i := range b.windows {
		w := &b.windows[i]
		buf = appendNumber(appendNumber(buf, w.start-b.start), int64(w.state))
		if w.state != slidingEmpty {
			buf = appendBytes(appendNumber(buf, w.time-w.start), w.raw)
		}
	}
	x.listBuf = buf
	x.keyBuf = windowRow(x.keyBuf[:0], lineKept, b.start, key)
	x.rec.Set(s.st.index, x.keyBuf, buf)
	if was == b.entry {
		return
	}
	if was != noEntry {
		x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, was, key)
		x.rec.Set(s.st.index, x.keyBuf, nil)
	}
	if b.entry != noEntry {
		x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, b.entry, key)
		x.rec.Set(s.st.index, x.keyBuf, []byte{})
	}
}

// next returns where the bucket's entry belongs.
func (s *slidingOp[T, A]) next(b *bucket) int64 {
	if !s.finals {
		return noEntry
	}
	for i := range b.windows {
		if w := &b.windows[i]; w.state == slidingOpen {
			if !b.due && b.entry != noEntry {
				return min(b.entry, w.start)
			}
			return w.start
		}
	}
	if b.due {
		return noEntry
	}
	return b.entry
}
