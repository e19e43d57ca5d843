package processor

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/window"
)

// WindowRows is the handle of a store whose rows are of a key and a window. It
// keeps them for the windows' retention, in stream time: a row that has expired
// is not found any more, and is deleted, in the changelog too, a few at a time.
type WindowRows[T any] struct {
	timed[T]
}

// WindowStore declares a store of rows by key and window: tumbling, hopping or
// sliding ones; for sessions see SessionStore. Its changes go to
// reka.ChangelogTopic(group, name).
func WindowStore[T any](name string, w window.Windows, c codec.Codec[T]) *WindowRows[T] {
	return &WindowRows[T]{timed[T]{storeName: name, w: w, codec: c}}
}

// SessionRows is the handle of a store whose rows are sessions of a key. See
// WindowRows.
type SessionRows[T any] struct {
	timed[T]
}

// SessionStore declares a store of sessions. Its changes go to
// reka.ChangelogTopic(group, name).
func SessionStore[T any](name string, w window.Windows, c codec.Codec[T]) *SessionRows[T] {
	return &SessionRows[T]{timed[T]{storeName: name, w: w, session: true, codec: c}}
}

// timed is what both have in common. Rows have the keys
//
//	expiry ‖ time ‖ key ‖ rest     empty; the time is that by which the row expires
//	row ‖ key ‖ time ‖ rest        the value
//
// where keys are written so that they end (window.AppendKey). A window's time
// is its start, and there is no rest; that of a session is its last record's,
// and the rest is the first one's.
type timed[T any] struct {
	storeName string
	w         window.Windows
	session   bool
	codec     codec.Codec[T]
	binding
}

const (
	lineExpiry = 8
	rowTimed   = 9
)

// rowsOf says what the rows are, for descriptions.
func (s *timed[T]) rowsOf() string {
	if s.session {
		return "sessions"
	}
	return "windows"
}

func (s *timed[T]) what() string { return fmt.Sprintf("store %q", s.storeName) }

func (s *timed[T]) declareAs(d *declaration, handle any) error {
	switch {
	case s.storeName == "":
		return fmt.Errorf("store: no name")
	case s.storeName == tableStore || s.storeName == periodicStore:
		return fmt.Errorf("store: the name %q is taken", s.storeName)
	case s.codec == nil:
		return fmt.Errorf("store %q has no codec", s.storeName)
	}
	if err := s.w.Validate(); err != nil {
		return fmt.Errorf("store %q: %w", s.storeName, err)
	}
	if (s.w.Kind() == window.KindSession) != s.session {
		return fmt.Errorf("store %q: %v in a store of another kind (WindowStore, SessionStore)", s.storeName, s.w)
	}
	if err := d.once(handle, s.what()); err != nil {
		return err
	}
	slot := d.store(graph.Store{Name: s.storeName, Changelog: reka.ChangelogTopic(d.graph.Group, s.storeName), Timelines: []byte{lineExpiry}, Of: s.rowsOf(), Details: s.w.String()})
	d.slots[handle] = slot
	d.after = append(d.after, task.Step{Raise: -1, Run: &task.Timed{
		Name: s.storeName, Store: slot, Lazy: true, Chunk: 256,
		Lines: []task.Line{{Prefix: lineExpiry, Lag: s.w.ExpiryTime(s.windowAt(0, 0))}},
		Run: func(r *task.Record, due []task.Entry) error {
			var row []byte
			for i := range due {
				row = rowOfExpiry(row[:0], due[i].Key)
				r.Set(slot, due[i].Key, nil)
				r.Set(slot, row, nil)
			}
			return nil
		},
	}})
	return nil
}

// windowAt is the window whose row has a time and a rest.
func (s *timed[T]) windowAt(at, rest int64) window.Window {
	if s.session {
		return window.Window{Start: rest, End: at}
	}
	return s.w.At(at)
}

// rowOfExpiry turns expiry ‖ time ‖ key ‖ rest into row ‖ key ‖ time ‖ rest.
func rowOfExpiry(dst, expiry []byte) []byte {
	const head = 1 + 8
	key, rest, err := window.SplitKey(nil, expiry[head:])
	if err != nil {
		return append(dst, rowTimed) // nobody's
	}
	dst = window.AppendKey(append(dst, rowTimed), key)
	dst = append(dst, expiry[1:head]...)
	return append(dst, rest...)
}

// rowKey returns the key of a window's row.
func (s *timed[T]) rowKey(key []byte, w window.Window) []byte {
	b := window.AppendKey([]byte{rowTimed}, key)
	if s.session {
		return window.AppendTime(window.AppendTime(b, w.End), w.Start)
	}
	return window.AppendTime(b, w.Start)
}

func (s *timed[T]) expiryKey(key []byte, w window.Window) []byte {
	if s.session {
		return window.AppendTime(window.AppendKey(window.AppendTime([]byte{lineExpiry}, w.End), key), w.Start)
	}
	return window.AppendKey(window.AppendTime([]byte{lineExpiry}, w.Start), key)
}

func (s *timed[T]) get(ctx *Context, slot int, key string, w window.Window) (v T, ok bool) {
	if w.Start < 0 || s.w.Expired(w, ctx.rec.StreamTime()) {
		return v, false
	}
	return getRow(ctx, slot, s.rowKey(ctx.keyBytes(key), w), rowCodec[T]{s.storeName, s.codec})
}

// set reports whether the window's row may still be kept.
func (s *timed[T]) set(ctx *Context, slot int, key string, w window.Window, v *T) bool {
	if w.Start < 0 || w.End < w.Start {
		ctx.rec.Stick(fmt.Errorf("%s: no window from %d to %d", s.what(), w.Start, w.End))
		return false
	}
	if s.w.Expired(w, ctx.rec.StreamTime()) {
		return false
	}
	row, expiry := s.rowKey(ctx.keyBytes(key), w), s.expiryKey(ctx.keyBytes(key), w)
	_, was := ctx.rec.Get(slot, row)
	switch {
	case v != nil:
		setRow(ctx, slot, row, rowCodec[T]{s.storeName, s.codec}, *v)
		if !was {
			ctx.rec.Set(slot, expiry, []byte{})
		}
	case was:
		ctx.rec.Set(slot, row, nil)
		ctx.rec.Set(slot, expiry, nil)
	}
	return true
}

// found is a row that a scan has found.
type found[T any] struct {
	key string
	win window.Window
	v   T
}

// scanKey yields the rows of a key whose times lie in a range.
func (s *timed[T]) scanKey(ctx *Context, slot int, key string, in between) iter.Seq[found[T]] {
	return func(yield func(found[T]) bool) {
		prefix := window.AppendKey([]byte{rowTimed}, []byte(key))
		rng := storage.Range{From: window.AppendTime(slices.Clip(prefix), in.from), Reverse: in.reverse}
		if in.to < maxTime {
			rng.To = window.AppendTime(slices.Clip(prefix), in.to+1)
		} else {
			rng.To = storage.Prefix(prefix).To
		}
		for row, err := range ctx.rec.Scan(slot, rng) {
			if err != nil {
				return
			}
			at, rest, err := window.SplitTime(row.Key[len(prefix):])
			if err != nil {
				continue
			}
			first, _, _ := window.SplitTime(rest) // a window's row has none
			if !s.yield(ctx, yield, found[T]{key: key, win: s.windowAt(at, first)}, row.Value) {
				return
			}
		}
	}
}

// scanTime yields the rows of all keys whose times lie in a range.
func (s *timed[T]) scanTime(ctx *Context, slot int, in between) iter.Seq[found[T]] {
	return func(yield func(found[T]) bool) {
		rng := storage.Range{From: window.AppendTime([]byte{lineExpiry}, in.from), To: []byte{lineExpiry + 1}, Reverse: in.reverse}
		if in.to < maxTime {
			rng.To = window.AppendTime([]byte{lineExpiry}, in.to+1)
		}
		for row, err := range ctx.rec.Scan(slot, rng) {
			if err != nil {
				return
			}
			at, rest, err := window.SplitTime(row.Key[1:])
			if err != nil {
				continue
			}
			key, rest, err := window.SplitKey(nil, rest)
			if err != nil {
				continue
			}
			first, _, _ := window.SplitTime(rest)
			value, ok := ctx.rec.Get(slot, rowOfExpiry(nil, row.Key))
			if ok && !s.yield(ctx, yield, found[T]{key: string(key), win: s.windowAt(at, first)}, value) {
				return
			}
		}
	}
}

// yield hands on a row that is visible.
func (s *timed[T]) yield(ctx *Context, yield func(found[T]) bool, f found[T], raw []byte) bool {
	if s.w.Expired(f.win, ctx.rec.StreamTime()) {
		return true
	}
	var ok bool
	if f.v, ok = decodeRow(ctx, raw, []byte(f.key), rowCodec[T]{s.storeName, s.codec}); !ok {
		return false
	}
	return yield(f)
}

// between is a range of times in milliseconds, both included.
type between struct {
	from, to int64
	reverse  bool
}

const maxTime = 1<<63 - 1

// betweenTimes is a range with both ends in it; a zero time is no bound.
func betweenTimes(from, to time.Time, reverse bool) between {
	in := between{to: maxTime, reverse: reverse}
	if !from.IsZero() {
		in.from = max(0, from.UnixMilli())
	}
	if !to.IsZero() {
		in.to = to.UnixMilli()
	}
	return in
}
