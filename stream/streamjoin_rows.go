package stream

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/window"
)

// Rows of a join of streams have the keys
//
//	bucket ‖ start ‖ side ‖ key ‖ chunk   records of a key from start on, for as long as
//	                                      partners can be apart, in order of arrival
//	right ‖ time ‖ key ‖ number           a right record that has no partner yet
//	left ‖ time ‖ key ‖ number            a left one
//
// A record's partners lie in at most two buckets, which are found by one read
// each; an index of times is needed only for records whose result is due when
// nothing comes. A bucket goes when all its records are closed. It is cut into
// chunks so that a record more does not rewrite all of a frequent key's.
//
// The value of chunk 0 begins with the number of the last chunk. The rest are
// records: time since start, length of the value, value.
const (
	lineBucket = 1
	lineRight  = 2
	lineLeft   = 3

	sideRight = 0
	sideLeft  = 1

	chunkBytes = 4096
)

var errJoinRow = errors.New("not a row of a join")

// fate is what becomes of a record before partners are looked for.
type fate int8

const (
	joins   fate = iota
	dropped      // cannot join anything, and is counted
	belated      // its window is closed, and it has no key to find a partner by
	single       // has no key, but a result of its own
)

func (s *joinSide[T]) fate(e *event[T], now int64) fate {
	switch {
	case e.null || e.key == nil && !s.nulls:
		return dropped
	case e.key != nil:
		return joins
	case s.closed(e.time, now):
		return belated
	}
	return single
}

// closed reports whether the window of a record at a time is closed.
func (s *joinSide[T]) closed(time, now int64) bool { return now >= time+s.closes }

// takeLeft is one record of the left side: its matches, then its place among
// those that wait. takeRight is its mirror image.
func (p *streamJoin[L, R, V]) takeLeft(x *exec, e event[L]) {
	now := p.now(x)
	switch p.left.fate(&e, now) {
	case dropped:
		x.count(p.missing)
		return
	case belated:
		tooLate(x, p, p.left, e)
		return
	case single:
		p.emitLeft(x, e)
		return
	}
	partners := p.right.find(x, e.key, span{e.time - p.left.back, e.time + p.left.ahead, now})
	if len(partners) > 0 {
		p.pairLeft(x, e, partners)
	}
	switch {
	case !p.left.closed(e.time, now):
		p.left.store(x, &e, len(partners) == 0)
	case len(partners) == 0:
		tooLate(x, p, p.left, e)
	}
}

func (p *streamJoin[L, R, V]) pairLeft(x *exec, e event[L], partners []kept[R]) {
	for i := range partners {
		if p.right.nulls {
			p.right.settled(x, e.key, &partners[i])
		}
		p.emit(x, e.key, &e.value, &partners[i].value, max(e.time, partners[i].time))
	}
}

func (p *streamJoin[L, R, V]) emitLeft(x *exec, e event[L]) { p.emit(x, e.key, &e.value, nil, e.time) }

func (p *streamJoin[L, R, V]) takeRight(x *exec, e event[R]) {
	now := p.now(x)
	switch p.right.fate(&e, now) {
	case dropped:
		x.count(p.missing)
		return
	case belated:
		tooLate(x, p, p.right, e)
		return
	case single:
		p.emitRight(x, e)
		return
	}
	partners := p.left.find(x, e.key, span{e.time - p.right.back, e.time + p.right.ahead, now})
	if len(partners) > 0 {
		p.pairRight(x, e, partners)
	}
	switch {
	case !p.right.closed(e.time, now):
		p.right.store(x, &e, len(partners) == 0)
	case len(partners) == 0:
		tooLate(x, p, p.right, e)
	}
}

func (p *streamJoin[L, R, V]) pairRight(x *exec, e event[R], partners []kept[L]) {
	for i := range partners {
		if p.left.nulls {
			p.left.settled(x, e.key, &partners[i])
		}
		p.emit(x, e.key, &partners[i].value, &e.value, max(e.time, partners[i].time))
	}
}

func (p *streamJoin[L, R, V]) emitRight(x *exec, e event[R]) { p.emit(x, e.key, nil, &e.value, e.time) }

// tooLate accounts for a record that came too late.
func tooLate[T any, L, R, V any](x *exec, p *streamJoin[L, R, V], s *joinSide[T], e event[T]) {
	if x.failed() {
		return
	}
	p.tooLate(x, e.key, e.time, s.late == nil)
	if s.late != nil {
		s.late(x, &e)
	}
}

// span is a range of times, both included, as seen at a stream time.
type span struct{ from, to, now int64 }

// kept is a record of a join.
type kept[T any] struct {
	time   int64
	number uint64 // chunk and place in it: the order of arrival at one time
	value  T
}

// find returns the open records of a key in a range, by time, then by arrival.
func (s *joinSide[T]) find(x *exec, key []byte, in span) (out []kept[T]) {
	in.from = max(0, in.from, in.now-s.closes+1)
	if in.to < in.from {
		return nil
	}
	for start := in.from - in.from%s.bucket; start <= in.to; start += s.bucket {
		last := uint32(0)
		for chunk := uint32(0); chunk <= last; chunk++ {
			raw, ok := x.rec.Get(s.st.index, s.row(x, start, key, chunk))
			if !ok {
				break
			}
			if chunk == 0 {
				n, size := binary.Uvarint(raw)
				if size <= 0 {
					s.broken(x, key)
					return nil
				}
				last, raw = uint32(n), raw[size:]
			}
			out = s.scan(x, key, raw, bucketPart{start, chunk, in}, out)
		}
	}
	slices.SortFunc(out, func(a, b kept[T]) int {
		switch {
		case a.time != b.time:
			return int(max(-1, min(1, a.time-b.time)))
		case a.number < b.number:
			return -1
		}
		return 1
	})
	return out
}

// bucketPart is a chunk, and what is looked for in it.
type bucketPart struct {
	start int64
	chunk uint32
	in    span
}

// scan appends the records of a chunk that lie in a range.
func (s *joinSide[T]) scan(x *exec, key, raw []byte, part bucketPart, out []kept[T]) []kept[T] {
	list := reader{b: raw}
	for i := uint64(0); len(list.b) > 0; i++ {
		since, value := list.number(), list.bytes()
		if list.bad {
			s.broken(x, key)
			return nil
		}
		time := part.start + since
		if time < part.in.from || time > part.in.to {
			continue
		}
		v, err := s.codec.Decode(value)
		if err != nil {
			x.fail(processor.StoredValueError(s.st.spec.Changelog, key, err))
			return nil
		}
		out = append(out, kept[T]{time: time, number: uint64(part.chunk)<<32 | i, value: v})
	}
	return out
}

func (s *joinSide[T]) broken(x *exec, key []byte) {
	x.fail(&kafka.Error{TopicPartition: kafka.TopicPartition{Topic: s.st.spec.Changelog, Partition: -1}, Offset: -1, Key: slices.Clone(key), Err: errJoinRow})
}

// row returns the key of a chunk in scratch memory.
func (s *joinSide[T]) row(x *exec, start int64, key []byte, chunk uint32) []byte {
	x.keyBuf = append(window.AppendTime(append(x.keyBuf[:0], lineBucket), start), s.side)
	x.keyBuf = binary.BigEndian.AppendUint32(append(x.keyBuf, key...), chunk)
	return x.keyBuf
}

// waiting returns the key of the row of a record that has no partner yet.
func (s *joinSide[T]) waiting(x *exec, key []byte, r *kept[T]) []byte {
	x.keyBuf = window.AppendTime(append(x.keyBuf[:0], s.line), r.time)
	x.keyBuf = binary.BigEndian.AppendUint64(window.AppendKey(x.keyBuf, key), r.number)
	return x.keyBuf
}

// settled takes a record that has found its partner off those that wait.
func (s *joinSide[T]) settled(x *exec, key []byte, r *kept[T]) {
	row := s.waiting(x, key, r)
	if _, ok := x.rec.Get(s.st.index, row); ok {
		x.rec.Set(s.st.index, row, nil)
	}
}

// store keeps a record; alone says that it has no partner.
func (s *joinSide[T]) store(x *exec, e *event[T], alone bool) {
	value, err := s.codec.Append(nil, e.value)
	if err != nil {
		x.fail(&processor.EncodeError{Err: err})
		return
	}
	start := e.time - e.time%s.bucket
	r := kept[T]{time: e.time}
	first, ok := x.rec.Get(s.st.index, s.row(x, start, e.key, 0))
	last, head := uint64(0), 0
	if ok {
		last, head = binary.Uvarint(first)
	}
	x.valueBuf = append(x.valueBuf[:0], first...)
	buf := x.valueBuf
	if !ok {
		buf = append(buf, 0)
	}
	switch {
	case last > 0:
		raw, _ := x.rec.Get(s.st.index, s.row(x, start, e.key, uint32(last)))
		buf = append(buf[:0], raw...)
		head = 0
	case !ok:
		head = 1
	}
	if len(buf) > head && len(buf)+len(value) >= chunkBytes { // a chunk more
		if last == 0 {
			grown := binary.AppendUvarint(nil, 1)
			x.rec.Set(s.st.index, s.row(x, start, e.key, 0), append(grown, buf[head:]...))
		} else {
			first, _ = x.rec.Get(s.st.index, s.row(x, start, e.key, 0))
			_, n := binary.Uvarint(first)
			grown := binary.AppendUvarint(nil, last+1)
			x.rec.Set(s.st.index, s.row(x, start, e.key, 0), append(grown, first[n:]...))
		}
		last, buf, head = last+1, buf[:0], 0
	}
	if alone && s.nulls {
		r.number = last<<32 | uint64(recordsIn(buf[head:]))
	}
	buf = appendBytes(appendNumber(buf, e.time-start), value)
	x.valueBuf = buf
	x.rec.SetRow(s.st.index, task.Row{Key: s.row(x, start, e.key, uint32(last)), Value: buf, Time: e.time})
	if alone && s.nulls {
		x.rec.SetRow(s.st.index, task.Row{Key: s.waiting(x, e.key, &r), Value: value, Time: e.time})
	}
}

// recordsIn counts the records of a chunk.
func recordsIn(raw []byte) (n int) {
	for list := (reader{b: raw}); len(list.b) > 0; n++ {
		list.number()
		if list.bytes(); list.bad {
			return n
		}
	}
	return n
}

// release gives records whose windows have closed their results without a
// partner.
func (p *streamJoin[L, R, V]) release(r *task.Record, due []task.Entry) error {
	x := execOf(r)
	for i := range due {
		e := &due[i]
		if i > 0 && r.Crowded() {
			break
		}
		key, _, err := window.SplitKey(nil, e.Key[1+8:])
		if err != nil {
			return errJoinRow
		}
		r.Set(p.st.index, e.Key, nil)
		if e.Line == 0 {
			v, err := p.right.codec.Decode(e.Value)
			if err != nil {
				return processor.StoredValueError(p.st.spec.Changelog, key, err)
			}
			release(x, p.emitRight, event[R]{key: key, value: v, time: e.Time})
		} else {
			v, err := p.left.codec.Decode(e.Value)
			if err != nil {
				return processor.StoredValueError(p.st.spec.Changelog, key, err)
			}
			release(x, p.emitLeft, event[L]{key: key, value: v, time: e.Time})
		}
	}
	return nil
}
