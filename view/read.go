package view

import (
	"iter"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/storage"
)

// readBuffer is what one Get works with.
type readBuffer struct{ key, value []byte }

// maxBuffer is what of a buffer is kept for the next Get.
const maxBuffer = 64 << 10

// Get returns the value of a key and whether there is one.
func (v *View[T]) Get(key string, o ...ReadOption) (T, bool, error) {
	row, ok, err := v.GetRow(key, o...)
	return row.Value, ok, err
}

// GetRow is Get with the row's time.
func (v *View[T]) GetRow(key string, o ...ReadOption) (reka.Row[T], bool, error) {
	b := v.buffers.Get().(*readBuffer)
	defer v.giveBack(b)
	at, ok, err := v.read(b, key, o)
	if !ok || err != nil {
		return reka.Row[T]{}, false, err
	}
	val, err := v.codec.Decode(b.value)
	if err != nil {
		return reka.Row[T]{}, false, v.undecodable(b.key, err)
	}
	return reka.Row[T]{Key: key, Value: val, Time: rowTime(at)}, true, nil
}

// Has reports whether there is a row of a key, without decoding it.
func (v *View[T]) Has(key string, o ...ReadOption) (bool, error) {
	b := v.buffers.Get().(*readBuffer)
	defer v.giveBack(b)
	_, ok, err := v.read(b, key, o)
	return ok, err
}

func (v *View[T]) read(b *readBuffer, key string, o []ReadOption) (at int64, ok bool, err error) {
	b.key = append(b.key[:0], key...)
	b.value, at, ok, err = v.mirror.Get(b.value[:0], b.key, fold(o).stale)
	return at, ok, err
}

func (v *View[T]) giveBack(b *readBuffer) {
	if cap(b.key)+cap(b.value) <= maxBuffer {
		v.buffers.Put(b)
	}
}

// Range yields the rows with from ≤ key < to, in byte order of the keys. An
// empty to is no bound. A row that cannot be decoded is yielded with its key,
// its time and the error, and the loop may go on; any other error is the last
// thing that is yielded.
func (v *View[T]) Range(from, to string, o ...ReadOption) iter.Seq2[reka.Row[T], error] {
	r := storage.Range{From: []byte(from)}
	if to != "" {
		r.To = []byte(to)
	}
	return v.scan(r, fold(o))
}

// Prefix yields the rows whose keys begin with p, as Range does.
func (v *View[T]) Prefix(p string, o ...ReadOption) iter.Seq2[reka.Row[T], error] {
	return v.scan(storage.Prefix([]byte(p)), fold(o))
}

// All yields all rows, as Range does.
func (v *View[T]) All(o ...ReadOption) iter.Seq2[reka.Row[T], error] {
	return v.scan(storage.Range{}, fold(o))
}

func (v *View[T]) scan(r storage.Range, o ReadOption) iter.Seq2[reka.Row[T], error] {
	r.Reverse = o.reverse
	return func(yield func(reka.Row[T], error) bool) {
		for raw, err := range v.mirror.Scan(r, o.stale) {
			var row reka.Row[T]
			if err == nil {
				row, err = v.decodeRow(raw)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

func (v *View[T]) decodeRow(raw replica.Row) (reka.Row[T], error) {
	row := reka.Row[T]{Key: string(raw.Key), Time: rowTime(raw.Time)}
	val, err := v.codec.Decode(raw.Value)
	if err != nil {
		return row, v.undecodable(raw.Key, err)
	}
	row.Value = val
	return row, nil
}

// rowTime is zero for a record without a timestamp.
func rowTime(ms int64) time.Time {
	if ms < 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
