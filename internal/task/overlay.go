package task

import (
	"bytes"
	"slices"

	"github.com/rekastream/reka/storage"
)

// ownRows returns the record's own changes of a store within a range, the
// last one of each key, in the order of the scan. A nil Value is a delete.
func (r *Record) ownRows(store int, rng storage.Range) []storage.Row {
	var own []storage.Row
	for i := range r.staged {
		s := &r.staged[i]
		key := r.bytes[s.key.from:s.key.to:s.key.to]
		if s.store != store || !rng.Contains(key) {
			continue
		}
		row := storage.Row{Key: key}
		if !s.isDelete {
			row.Value = r.bytes[s.value.from:s.value.to:s.value.to]
		}
		at := slices.IndexFunc(own, func(o storage.Row) bool { return bytes.Equal(o.Key, key) })
		if at >= 0 {
			own[at] = row
		} else {
			own = append(own, row)
		}
	}
	slices.SortFunc(own, func(a, b storage.Row) int {
		if rng.Reverse {
			a, b = b, a
		}
		return bytes.Compare(a.Key, b.Key)
	})
	return own
}

func goesBefore(a, b []byte, reverse bool) bool {
	if reverse {
		a, b = b, a
	}
	return bytes.Compare(a, b) < 0
}
