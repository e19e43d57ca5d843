package stream

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/window"
)

// JoinTable joins each record with the table's row of its key, as it is at the
// record's turn; with a table that is Versioned, as it was at the record's
// time. Only records have results, under their time; changes of the table have
// none. A record without a row is dropped; one without a key or value is
// counted, too.
//
// The table and the stream need the same number of partitions. A stream whose
// keys were changed goes through a repartition topic first.
func JoinTable[L, R, V any](f Flow[L], t Table[R], fn func(key string, l L, r R) V, opts ...Option) Flow[V] {
	j := &streamTable[L, R, V]{}
	if fn != nil {
		j.fn = func(key string, l L, r *R) V { return fn(key, l, *r) }
	}
	return j.declare(f, t, "jointable", opts)
}

// LeftJoinTable is JoinTable with a result for every record that has a value;
// the row is nil if there is none, or the record has no key.
func LeftJoinTable[L, R, V any](f Flow[L], t Table[R], fn func(key string, l L, r *R) V, opts ...Option) Flow[V] {
	return (&streamTable[L, R, V]{fn: fn, left: true}).declare(f, t, "leftjointable", opts)
}

// WithTableWait is an option of JoinTable and LeftJoinTable: records wait for
// the table until stream time is d beyond theirs, so that what comes late to
// the table is seen. They wait in a store (Named), and leave in order of their
// times; what is as old when it comes does not wait. The table must be
// Versioned, by d at least. d is a whole number of milliseconds.
func WithTableWait(d time.Duration) Option { return optionFunc(func(o *options) { o.wait = &d }) }

// streamTable is a join of a stream and a table.
type streamTable[L, R, V any] struct {
	n    *node
	t    Table[R]
	out  Flow[V]
	fn   func(key string, l L, r *R) V
	left bool

	nulls   *counter
	waiting *waiting[L] // nil: none does
	clock   *clock      // of those that wait
}

func (j *streamTable[L, R, V]) declare(f Flow[L], t Table[R], op string, opts []Option) Flow[V] {
	o := fold(opts)
	through := options{partitions: o.partitions}
	if o.wait == nil {
		through.name = o.name
	}
	var in Flow[L]
	if j.left {
		in = f.placedWithNulls(through)
	} else {
		in = f.placed(through)
	}
	j.n, j.t = f.b().node(op, in.n, t.n), t
	j.out = newFlow(j.n, codecOf[V](j.n, &o, nil))
	j.nulls = j.n.counter("records without a key or value")
	if j.fn == nil {
		j.n.b.failf(j.n, "no function")
		return j.out
	}
	if o.wait != nil && !j.waits(in, &o) {
		return j.out
	}
	in.add(func(x *exec, e event[L]) {
		switch {
		case e.null || e.key == nil && !j.left:
			x.count(j.nulls)
		case e.key == nil:
			j.out.out.emit(x, event[V]{value: j.fn("", e.value, nil), time: e.time})
		case j.waiting != nil && e.time > x.now(j.clock)-j.waiting.wait:
			j.waiting.add(x, &e)
		default:
			j.join(x, e, false)
		}
	})
	return j.out
}

// join gives the result of a record.
func (j *streamTable[L, R, V]) join(x *exec, e event[L], waited bool) {
	var r R
	var ok bool
	if j.t.asOf != nil {
		r, ok = j.t.asOf(x, e.key, moment{e.time, waited})
	} else {
		r, _, ok = j.t.get(x, e.key)
	}
	if x.failed() || !ok && !j.left {
		return
	}
	j.out.out.emit(x, event[V]{key: e.key, value: j.fn(x.key(e.key), e.value, optional(&r, ok)), time: e.time})
}

// waits makes records wait for the table.
func (j *streamTable[L, R, V]) waits(in Flow[L], o *options) bool {
	n := j.n
	n.own(o.name)
	wait, err := wholeMillis(*o.wait)
	switch {
	case err != nil:
		n.b.failf(n, "WithTableWait: %w", err)
		return false
	case j.t.asOf == nil:
		n.b.failf(n, "WithTableWait: the table is not Versioned")
		return false
	case wait > j.t.history:
		n.b.failf(n, "WithTableWait(%v): the table's history is only %d ms", *o.wait, j.t.history)
		return false
	case !needCodec(n, in.codec):
		return false
	}
	n.details = append(n.details, "wait "+o.wait.String())
	j.clock = n.ownClock()
	j.waiting = &waiting[L]{rows: stored(n.store("", waitingLine), in.codec), wait: wait}
	n.released = append(n.released, &task.Timed{
		Lines: []task.Line{{Prefix: waitingLine, Lag: wait}},
		Run:   func(r *task.Record, due []task.Entry) error { return j.waiting.release(execOf(r), due, j.join) },
	})
	n.holds(wait)
	return true
}

// waitingLine begins the rows of records that wait:
//
//	line ‖ time ‖ number      its key with the length before it, its value
//
// The number is the record's among those of its time, as they came.
const waitingLine = 1

// waiting are records that wait for a table.
type waiting[T any] struct {
	rows *rows[T]
	wait int64
}

// add takes a record in.
func (w *waiting[T]) add(x *exec, e *event[T]) {
	value := encode(x, w.rows.codec, e.value)
	if value == nil {
		return
	}
	x.wireBuf = append(binary.AppendUvarint(x.wireBuf[:0], uint64(len(e.key))), e.key...)
	x.wireBuf = append(x.wireBuf, value...)
	x.keyBuf = window.AppendTime(append(x.keyBuf[:0], waitingLine), e.time)
	x.endBuf = window.AppendTime(append(x.endBuf[:0], waitingLine), e.time+1)
	number := uint64(0)
	for row, err := range x.rec.Scan(w.rows.st.index, storage.Range{From: x.keyBuf, To: x.endBuf, Reverse: true}) {
		if err != nil {
			return // it has stuck
		}
		number = binary.BigEndian.Uint64(row.Key[9:]) + 1
		break
	}
	x.keyBuf = binary.BigEndian.AppendUint64(x.keyBuf, number)
	x.rec.SetRow(w.rows.st.index, task.Row{Key: x.keyBuf, Value: x.wireBuf, Time: e.time})
}

var errWaiting = errors.New("not a record that waits")

// release hands over those whose time has come.
func (w *waiting[T]) release(x *exec, due []task.Entry, to func(x *exec, e event[T], waited bool)) error {
	for i := range due {
		if i > 0 && x.rec.Crowded() {
			break
		}
		raw := due[i].Value
		n, size := binary.Uvarint(raw)
		if size <= 0 || n > uint64(len(raw)-size) {
			return errWaiting
		}
		e := event[T]{key: raw[size : size+int(n)], time: due[i].Time}
		var ok bool
		if e.value, ok = decodeStored(x, w.rows.codec, raw[size+int(n):], place{w.rows.st.spec.Changelog, e.key}); !ok {
			return nil // it has stuck
		}
		x.rec.Stand(e.key, e.time)
		release(x, func(x *exec, e event[T]) { to(x, e, true) }, e)
		x.rec.SetRow(w.rows.st.index, task.Row{Key: due[i].Key})
	}
	return nil
}
