package stream

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/window"
)

// Versioned is an option of FromTable: the table keeps the values that its
// rows had in the last history of stream time. A stream that is joined with it
// sees the value as of the time of its record. A record that is older than the
// newest of its row is put in its place in the history and changes nothing
// behind the table; one from before the history is counted and dropped.
//
// The versions are in a store of the group's own (Named). History is a whole
// number of milliseconds.
func Versioned(history time.Duration) Option {
	return optionFunc(func(o *options) { o.history = &history })
}

// The store of a versioned table:
//
//	replaced ‖ time ‖ key     a version by its time, which replaced an older
//	                          one, or is a delete
//	version ‖ key ‖ time      1 and the value, or 0 for a delete
//
// The first one is a timeline. When such a version is older than the history,
// nobody asks for what it has replaced, and if it is a delete not for itself
// either.
const (
	versionReplaced = 1
	versionRow      = 2

	versionDelete = 0
	versionValue  = 1
)

// versions is the store of a versioned table.
type versions[T any] struct {
	st      *store
	codec   codec.Codec[T]
	clock   *clock
	history int64
}

// version is one of them.
type version[T any] struct {
	value    T
	isDelete bool
	time     int64
}

func versionsOf[T any](in Flow[T], o *options) Table[T] {
	n := in.b().node("versions", in.n)
	n.own(o.name)
	out := newTable(n, in.codec)
	history, err := wholeMillis(*o.history)
	if err != nil {
		n.b.failf(n, "Versioned: %w", err)
		return out
	}
	n.details = append(n.details, "history "+o.history.String())
	v := &versions[T]{codec: in.codec, clock: n.ownClock(), history: history}
	v.st = n.store("", versionReplaced)
	n.expiry = append(n.expiry, &task.Timed{Lines: []task.Line{{Prefix: versionReplaced, Lag: history + 1}}, Run: v.expire})
	nulls, late, idle := n.counter("records without a key"), n.counter("late"), n.counter("late by idle time")
	out.history = history
	out.get = v.newest
	out.asOf = v.asOf
	in.out.addFirst(func(x *exec, e event[T]) {
		switch {
		case e.key == nil:
			x.count(nulls)
		case e.time < x.now(v.clock)-history:
			x.count(late)
			if x.rec.Idled() {
				x.count(idle)
			}
		default:
			if ch, ok := v.put(x, &e); ok {
				out.out.emit(x, ch)
			}
		}
	})
	return out
}

// newest is the row as it is.
func (v *versions[T]) newest(x *exec, key []byte) (value T, time int64, ok bool) {
	last, ok := v.upTo(x, key, math.MaxInt64)
	return last.value, last.time, ok && !last.isDelete
}

// asOf is the row as it was. What it was before the history is unknown, unless
// it is that still: expiry takes its time, and must not decide.
func (v *versions[T]) asOf(x *exec, key []byte, at moment) (value T, ok bool) {
	if !at.waited && at.time < x.now(v.clock)-v.history {
		last, ok := v.upTo(x, key, math.MaxInt64)
		return last.value, ok && !last.isDelete && last.time <= at.time
	}
	was, ok := v.upTo(x, key, at.time)
	return was.value, ok && !was.isDelete
}

// put takes a version in. It returns the change that it makes, if it is the
// newest.
func (v *versions[T]) put(x *exec, e *event[T]) (ch change[T], ok bool) {
	last, known := v.upTo(x, e.key, math.MaxInt64)
	replaces, newest := known && last.time < e.time, !known || last.time <= e.time
	if !newest {
		_, replaces = v.upTo(x, e.key, e.time-1)
		if next, ok := v.from(x, e.key, e.time+1); ok {
			v.mark(x, e.key, next)
		}
	}
	if replaces || e.null {
		v.mark(x, e.key, e.time)
	}
	x.wireBuf = append(x.wireBuf[:0], versionDelete)
	if !e.null {
		x.wireBuf = append(append(x.wireBuf[:0], versionValue), encode(x, v.codec, e.value)...)
	}
	x.keyBuf = v.key(x.keyBuf[:0], e.key, e.time)
	x.rec.SetRow(v.st.index, task.Row{Key: x.keyBuf, Value: x.wireBuf, Time: e.time})
	ch = change[T]{key: e.key, new: e.value, hasNew: !e.null, time: e.time}
	if known && !last.isDelete {
		ch.old, ch.hasOld = last.value, true
	}
	return ch, newest && (ch.hasOld || ch.hasNew) && !x.failed()
}

// mark has what the version at a time replaces expire.
func (v *versions[T]) mark(x *exec, key []byte, time int64) {
	x.keyBuf = append(window.AppendTime(append(x.keyBuf[:0], versionReplaced), time), key...)
	x.rec.SetRow(v.st.index, task.Row{Key: x.keyBuf, Value: []byte{}, Time: time})
}

// key appends the row key of a version.
func (*versions[T]) key(dst, key []byte, time int64) []byte {
	return window.AppendTime(window.AppendKey(append(dst, versionRow), key), time)
}

// upTo returns the last version of a key at a time or before.
func (v *versions[T]) upTo(x *exec, key []byte, time int64) (out version[T], ok bool) {
	if time < 0 {
		return out, false
	}
	x.keyBuf = window.AppendKey(append(x.keyBuf[:0], versionRow), key)
	x.endBuf = append(window.AppendTime(append(x.endBuf[:0], x.keyBuf...), time), 0)
	for row, err := range x.rec.Scan(v.st.index, storage.Range{From: x.keyBuf, To: x.endBuf, Reverse: true}) {
		if err != nil || len(row.Value) == 0 {
			return out, false // an error has stuck
		}
		out.time = int64(binary.BigEndian.Uint64(row.Key[len(row.Key)-8:]))
		if out.isDelete = row.Value[0] == versionDelete; out.isDelete {
			return out, true
		}
		out.value, ok = decodeStored(x, v.codec, row.Value[1:], place{v.st.spec.Changelog, key})
		return out, ok
	}
	return out, false
}

// from returns the time of the first version of a key at a time or after.
func (v *versions[T]) from(x *exec, key []byte, time int64) (first int64, ok bool) {
	x.keyBuf = v.key(x.keyBuf[:0], key, time)
	x.endBuf = v.key(x.endBuf[:0], key, math.MaxInt64)
	for row, err := range x.rec.Scan(v.st.index, storage.Range{From: x.keyBuf, To: x.endBuf}) {
		if err != nil {
			return 0, false
		}
		return int64(binary.BigEndian.Uint64(row.Key[len(row.Key)-8:])), true
	}
	return 0, false
}

// expire deletes what versions older than the history have replaced.
func (v *versions[T]) expire(rec *task.Record, due []task.Entry) error {
	x := execOf(rec)
	for i := range due {
		key := due[i].Key[9:]
		x.keyBuf = window.AppendKey(append(x.keyBuf[:0], versionRow), key)
		x.endBuf = append(window.AppendTime(append(x.endBuf[:0], x.keyBuf...), due[i].Time), 0)
		var old [][]byte
		for row, err := range rec.Scan(v.st.index, storage.Range{From: x.keyBuf, To: x.endBuf}) {
			if err != nil {
				return err
			}
			itself := len(row.Key) == len(x.endBuf)-1 && string(row.Key) == string(x.endBuf[:len(x.endBuf)-1])
			if !itself || len(row.Value) > 0 && row.Value[0] == versionDelete {
				old = append(old, append([]byte(nil), row.Key...))
			}
		}
		for _, k := range old {
			rec.SetRow(v.st.index, task.Row{Key: k})
		}
		rec.SetRow(v.st.index, task.Row{Key: due[i].Key})
	}
	return nil
}
