package replica

import (
	"bytes"
	"iter"

	"github.com/rekastream/reka/internal/rows"
	"github.com/rekastream/reka/storage"
)

// Scan yields the newest rows of a range in order, uncommitted changes
// included: those of the moment at which the loop starts, whatever is set
// while it runs. Key and value are valid until the next step. An error is
// yielded last, with a zero Row. What it holds of the store it gives back when
// the loop ends.
//
// The first scan after a pause sorts the rows that are not in the store; later
// ones find them sorted.
func (t *Table) Scan(r storage.Range) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		v, err := t.freeze()
		if err != nil {
			yield(Row{}, err)
			return
		}
		defer t.thaw(v)
		v.scan(r, yield)
	}
}

// ScanOnce is Scan for one that is seldom repeated: the rows that are not in
// the store are not kept sorted after it, so that changes cost no more. No
// other scan may be under way.
func (t *Table) ScanOnce(r storage.Range) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if t.idx == nil {
			scanned := t.scanned
			defer func() { t.idx, t.scanned = nil, scanned }()
		}
		t.Scan(r)(yield)
	}
}

// frozen is a table at one moment: it may be read by one goroutine, any, while
// the table goes on. It is given back by thaw.
type frozen struct {
	idx  *index // nil: nothing that the store does not have
	rows borrowed
	snap storage.Snapshot
}

func (t *Table) freeze() (*frozen, error) {
	snap, err := t.store.Snapshot()
	if err != nil {
		return nil, err
	}
	v := &frozen{snap: snap}
	t.scanned = true
	if t.idx == nil && (t.rows.Changed() > 0 || len(t.layers) > 0 || t.Unflushed() > 0) {
		t.buildIndex()
	}
	if t.idx != nil {
		v.idx, v.rows = t.idx, t.idx.borrow()
	}
	return v, nil
}

func (t *Table) thaw(v *frozen) {
	if v.idx != nil {
		v.idx.giveBack(v.rows)
	}
	v.snap.Release()
}

// buildIndex sorts what the store may not have. Rows of older layers count as
// active ones, so they stay one flush longer than they must: harmless, since
// the index has the newest value in any case.
func (t *Table) buildIndex() {
	t.idx = newIndex()
	t.rows.Each(func(key []byte, e rows.Entry, clean bool) bool {
		if !clean {
			t.idx.set(key, e.Value, e.Time, t.next)
		}
		return true
	})
}

// scan merges the rows of both; what is not in the store yet hides what is.
func (v *frozen) scan(r storage.Range, yield func(Row, error) bool) {
	var c *indexCursor
	var it *indexItem
	if v.idx != nil {
		c = newIndexCursor(v.rows.root, r)
		it = c.next()
	}
	for row, err := range v.snap.Scan(r) {
		if err != nil {
			yield(Row{}, err)
			return
		}
		hidden := false
		for it != nil {
			order := bytes.Compare(it.key, row.Key)
			if r.Reverse {
				order = -order
			}
			if order > 0 {
				break
			}
			hidden = hidden || order == 0
			if !it.yield(yield) {
				return
			}
			it = c.next()
		}
		if hidden {
			continue
		}
		value, time := splitStored(row.Value)
		if !yield(Row{Key: row.Key, Value: value, Time: time}, nil) {
			return
		}
	}
	for it != nil {
		if !it.yield(yield) {
			return
		}
		it = c.next()
	}
}

func (it *indexItem) yield(yield func(Row, error) bool) bool {
	if it.value == nil {
		return true
	}
	return yield(Row{Key: it.key, Value: it.value, Time: it.time}, nil)
}
