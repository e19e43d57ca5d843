package task

import (
	"bytes"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// This file holds what a record knows of time, and what its handler counts.

// StreamTime returns the stream time of the task, this record included, in
// milliseconds. A task in which nothing waits for time raises it only when the
// record is finished.
func (r *Record) StreamTime() int64 {
	if r.in != nil {
		return max(r.task.streamTime, r.began)
	}
	return r.task.streamTime
}

// Clock returns what a clock shows (see Part.Holds), in milliseconds; -1
// before the first record.
func (r *Record) Clock(i int) int64 { return r.task.clocks[i] }

// Idled reports whether the stream time has been moved by the wall clock
// beyond what records said.
func (r *Record) Idled() bool { return r.task.streamTime > r.task.recordTime }

// Stand moves the record to a key and a time, so that what the handler does
// next is done at them: rows, and outputs without a time. The key is not
// copied.
func (r *Record) Stand(key []byte, time int64) { r.key, r.time = key, time }

// Count adds n to the counter with index i of Env.Counters if the record
// succeeds.
func (r *Record) Count(i int, n int64) {
	if r.usable() {
		r.counted = append(r.counted, counted{counter: i, n: n})
	}
}

// Note logs something that was counted, seldom enough not to flood the log:
// err is asked for what it says only then.
func (r *Record) Note(what string, err func() error) {
	if r.usable() && r.task.mayNote() {
		place := &kafka.Error{TopicPartition: r.Place(), Offset: r.source.Offset, Key: r.key, Err: err()}
		r.task.env.Log.Warn(what, zap.String("group", r.task.env.Graph.Group), zap.Int("so far", r.task.noted), zap.Error(place))
	}
}

// Keys appends to dst up to n keys of a store's timeline, from one on, as they
// were before this record, in order. They must not be changed.
func (r *Record) Keys(dst [][]byte, store int, from []byte, n int) [][]byte {
	if !r.usable() {
		return dst
	}
	st, key := r.task.stores[store], from
	l := st.line(from[0])
	if _, err := l.next(); err != nil {
		r.Stick(&StoreError{Store: st.name(), Err: err})
		return dst
	}
	want := len(dst) + n
	if l.horizon == nil {
		l.keys.from(key, func(k []byte) bool {
			dst = append(dst, k)
			return len(dst) < want
		})
		return dst
	}
	for row, err := range st.table.Scan(storage.Range{From: key, To: l.end}) {
		if err != nil {
			r.Stick(&StoreError{Store: st.name(), Err: err})
			return dst
		}
		if dst = append(dst, bytes.Clone(row.Key)); len(dst) == want {
			break
		}
	}
	return dst
}

// Crowded reports whether so much is staged that what can wait for another
// run should: see Timed.Run.
func (r *Record) Crowded() bool { return r.size > r.task.env.RecordBytes/4 }
