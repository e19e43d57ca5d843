package replica

import "iter"

// Layer is what changed between two seals: immutable, readable from any
// goroutine for as long as it is referenced.
type Layer struct {
	data    []byte // keys and values, back to back
	rows    []layerRow
	seq     uint64 // of the table: one a seal
	version uint32 // of the row cache
}

// layerRow places a row in the data; a length of -1 is a delete.
type layerRow struct {
	at       int
	key, val int32
	time     int64
}

func newLayer(rows, bytes int) *Layer {
	return &Layer{data: make([]byte, 0, bytes), rows: make([]layerRow, 0, rows)}
}

// Len is the number of rows.
func (l *Layer) Len() int { return len(l.rows) }

// Bytes is what the rows take, keys and values.
func (l *Layer) Bytes() int { return len(l.data) }

// Row returns row i. Its bytes belong to the layer and are never changed. A
// nil Value is a delete.
func (l *Layer) Row(i int) Row {
	r := &l.rows[i]
	end := r.at + int(r.key)
	row := Row{Key: l.data[r.at:end:end], Time: r.time}
	if r.val >= 0 {
		row.Value = l.data[end : end+int(r.val) : end+int(r.val)]
	}
	return row
}

// All yields the rows.
func (l *Layer) All() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for i := range l.rows {
			if !yield(l.Row(i)) {
				return
			}
		}
	}
}

func (l *Layer) add(key, value []byte, time int64, deleted bool) {
	r := layerRow{at: len(l.data), key: int32(len(key)), val: -1, time: time}
	l.data = append(l.data, key...)
	if !deleted {
		r.val = int32(len(value))
		l.data = append(l.data, value...)
	}
	l.rows = append(l.rows, r)
}
