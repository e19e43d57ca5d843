package tester

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/window"
)

// Store reads a store of a group from its changelog: what an instance that
// starts with an empty disk would restore. It is for stores whose rows have
// the record's key: those of processor.Store, and of tables in package stream.
// The store's topic must exist when it is read.
func Store[T any](t *Tester, group, store string, c codec.Codec[T]) *TableTopic[T] {
	return &TableTopic[T]{t: t, table: reka.NewTable(reka.ChangelogTopic(group, store), c)}
}

// WindowTopic reads rows by key and window. Every method settles first.
type WindowTopic[T any] struct {
	rows  *TableTopic[T]
	w     window.Windows
	split func(w window.Windows, key []byte) (k []byte, win window.Window, ok bool)
}

// Windows returns a handle that reads the results of windows from their
// topic. A topic that does not exist is created, as by Input.
func Windows[T any](t *Tester, table reka.WindowTable[T]) *WindowTopic[T] {
	t.tb.Helper()
	return &WindowTopic[T]{rows: Table(t, reka.NewTable(table.Name(), table.Codec())), w: table.Windows(),
		split: func(w window.Windows, key []byte) ([]byte, window.Window, bool) {
			k, win, err := w.SplitTopicKey(key)
			return k, win, err == nil
		}}
}

// WindowStore reads a store by window of a group from its changelog: that of
// processor.WindowStore and SessionStore, or of an aggregation in package
// stream over tumbling or hopping windows. Hopping windows that are kept as
// panes have no rows until they are final.
func WindowStore[T any](t *Tester, group, store string, table reka.WindowTable[T]) *WindowTopic[T] {
	return &WindowTopic[T]{rows: Store(t, group, store, table.Codec()), w: table.Windows(), split: splitRow}
}

// First bytes of rows in stores by window; see packages stream and processor.
const (
	rowOpen  = 1
	rowKept  = 2
	rowTimed = 9
)

// splitRow reads the key of a row in a store by window. It reports false for
// rows that hold no result.
func splitRow(w window.Windows, b []byte) (key []byte, win window.Window, ok bool) {
	const head = 1 + 8
	switch {
	case len(b) < head:
		return nil, win, false
	case b[0] == rowOpen || b[0] == rowKept:
		return b[head:], w.At(int64(binary.BigEndian.Uint64(b[1:]))), w.Kind() != window.KindSession
	case b[0] != rowTimed:
		return nil, win, false
	}
	key, rest, err := window.SplitKey(nil, b[1:])
	if err != nil {
		return nil, win, false
	}
	at, rest, err := window.SplitTime(rest)
	if w.Kind() != window.KindSession {
		return key, w.At(at), err == nil
	}
	start, _, err := window.SplitTime(rest)
	return key, window.Window{Start: start, End: at}, err == nil
}

// Get returns the row of a key's window that starts at start, if there is one.
// Of sessions that start together it is the one that ends last.
func (wt *WindowTopic[T]) Get(key string, start time.Time) (v T, ok bool) {
	wt.rows.t.tb.Helper()
	for _, r := range wt.All() {
		if r.Key == key && r.Window.Start == start.UnixMilli() {
			v, ok = r.Value, true
		}
	}
	return v, ok
}

// All returns all rows, in order of the windows' starts, then of the keys,
// then of the windows' ends.
func (wt *WindowTopic[T]) All() []reka.WindowRow[T] {
	wt.rows.t.tb.Helper()
	wt.rows.fold()
	var out []reka.WindowRow[T]
	for k, r := range wt.rows.rows {
		key, win, ok := wt.split(wt.w, []byte(k))
		if !ok {
			continue
		}
		rec := decode[T](wt.rows.t, wt.rows.table, r)
		out = append(out, reka.WindowRow[T]{Key: string(key), Window: win, Value: rec.Value, Time: rec.Time})
	}
	slices.SortFunc(out, func(a, b reka.WindowRow[T]) int {
		return cmp.Or(cmp.Compare(a.Window.Start, b.Window.Start), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Window.End, b.Window.End))
	})
	return out
}
