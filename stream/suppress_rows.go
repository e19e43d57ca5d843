package stream

import (
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/task"
)

// heldRows are changes that wait for time, or for room. Each is known by an
// id: the row's key, with its window if it has one.
//
//	open ‖ first ‖ id   in order of the time of the first change held back
//	list ‖ id           that time, the row before the first change, and the newest
//	total               how many rows are held back, and their bytes, if bounded
type heldRows[T any] struct {
	bound
	codec codec.Codec[T]
	out   func(x *exec, id []byte, ch change[T])
}

func newHeldRows[T any](n *node, c codec.Codec[T], by Suppression) *heldRows[T] {
	h := &heldRows[T]{bound: bound{Suppression: by, n: n, st: n.store("", lineOpen)}, codec: c}
	if by.kind == untilElapsed {
		h.lag, h.clock = by.wait.Milliseconds(), n.ownClock()
		n.holds(h.lag)
		n.released = append(n.released, &task.Timed{Lines: []task.Line{{Prefix: lineOpen, Lag: h.lag}}, Run: h.due})
	}
	return h
}

// held is a row of kind list.
type held struct {
	first, time    int64
	hasOld, hasNew bool
	old, new       []byte
}

const (
	heldOld = 1 << iota
	heldNew
)

// read reads a row of kind list. Its bytes are valid until the next call on
// the record.
func (h *heldRows[T]) read(x *exec, id []byte) (r held, size int, ok bool) {
	x.keyBuf = append(append(x.keyBuf[:0], rowList), id...)
	raw, ok := x.rec.Get(h.st.index, x.keyBuf)
	if !ok {
		return r, 0, false
	}
	rd := reader{b: raw}
	r.first, r.time = rd.number(), rd.number()
	flags := rd.number()
	r.hasOld, r.hasNew = flags&heldOld != 0, flags&heldNew != 0
	if r.hasOld {
		r.old = rd.bytes()
	}
	r.new = rd.b
	return r, len(x.keyBuf) + len(raw), rd.end(x, place{h.st.spec.Changelog, id})
}

// before returns the row that went on last, if a change of it is held back.
func (h *heldRows[T]) before(x *exec, id []byte) (v T, ok, isHeld bool) {
	r, _, isHeld := h.read(x, id)
	if !isHeld || !r.hasOld {
		return v, false, isHeld
	}
	v, ok = decodeStored(x, h.codec, r.old, place{h.st.spec.Changelog, id})
	return v, ok, true
}

// put holds a change back, in place of the one before it.
func (h *heldRows[T]) put(x *exec, id []byte, ch *change[T]) {
	was, size, known := h.read(x, id)
	if x.failed() {
		return
	}
	r := held{first: ch.time, time: ch.time, hasOld: ch.hasOld, hasNew: ch.hasNew}
	var flags int64
	if known {
		r.first, r.hasOld = was.first, was.hasOld
	}
	if r.hasOld {
		flags |= heldOld
	}
	if r.hasNew {
		flags |= heldNew
	}
	b := appendNumber(appendNumber(appendNumber(x.listBuf[:0], r.first), r.time), flags)
	switch {
	case !r.hasOld:
	case known:
		b = appendBytes(b, was.old)
	default:
		if r.old = encode(x, h.codec, ch.old); r.old == nil {
			return
		}
		b = appendBytes(b, r.old)
	}
	if r.hasNew {
		raw := encode(x, h.codec, ch.new)
		if raw == nil {
			return
		}
		b = append(b, raw...)
	}
	x.listBuf = b
	x.keyBuf = append(append(x.keyBuf[:0], rowList), id...)
	x.rec.SetRow(h.st.index, task.Row{Key: x.keyBuf, Value: b, Time: ch.time})
	more := total{bytes: int64(len(x.keyBuf) + len(b) - size)}
	if !known {
		more.records = 1
		x.keyBuf = windowRow(x.keyBuf[:0], lineOpen, r.first, id)
		x.rec.SetRow(h.st.index, task.Row{Key: x.keyBuf, Value: []byte{}, Time: ch.time})
	}
	if h.count(x, more) {
		h.makeRoom(x, h.letGo)
	}
}

// letGo lets go of what has an entry.
func (h *heldRows[T]) letGo(x *exec, entry []byte) {
	if len(entry) < rowHead {
		return
	}
	id := entry[rowHead:]
	r, size, ok := h.read(x, id)
	if x.failed() {
		return
	}
	ch := change[T]{time: r.time}
	at := place{h.st.spec.Changelog, id}
	if r.hasOld {
		if ch.old, ch.hasOld = decodeStored(x, h.codec, r.old, at); !ch.hasOld {
			return
		}
	}
	if r.hasNew {
		if ch.new, ch.hasNew = decodeStored(x, h.codec, r.new, at); !ch.hasNew {
			return
		}
	}
	x.rec.Set(h.st.index, entry, nil)
	if !ok {
		return // nobody's
	}
	x.keyBuf = append(append(x.keyBuf[:0], rowList), id...)
	x.rec.Set(h.st.index, x.keyBuf, nil)
	h.count(x, total{-1, int64(-size)})
	switch {
	case !ch.hasOld && !ch.hasNew:
	case x.rec.Input() < 0: // time has made it due, not a record
		release(x, func(x *exec, ch change[T]) { h.out(x, id, ch) }, ch)
	default:
		h.out(x, id, ch)
	}
}

// due lets go of what has waited long enough.
func (h *heldRows[T]) due(r *task.Record, due []task.Entry) error {
	x := execOf(r)
	for i := range due {
		if i > 0 && r.Crowded() {
			break
		}
		h.letGo(x, due[i].Key)
	}
	return nil
}
