package processor

import (
	"iter"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/window"
)

func (s *WindowRows[T]) declare(d *declaration) error { return s.declareAs(d, s) }

// Get returns the row of a key's window that starts at start, changes of this
// callback included, and whether there is one.
func (s *WindowRows[T]) Get(ctx *Context, key string, start time.Time) (v T, ok bool) {
	slot, ok := s.slot(ctx, s, s.what())
	if !ok {
		return v, false
	}
	return s.get(ctx, slot, key, s.w.At(start.UnixMilli()))
}

// Set changes the row of a key's window that starts at start. It reports
// whether it did: the row of a window that has expired is not set.
func (s *WindowRows[T]) Set(ctx *Context, key string, start time.Time, v T) bool {
	slot, ok := s.slot(ctx, s, s.what())
	return ok && s.set(ctx, slot, key, s.w.At(start.UnixMilli()), &v)
}

// Delete removes the row of a key's window that starts at start.
func (s *WindowRows[T]) Delete(ctx *Context, key string, start time.Time) {
	if slot, ok := s.slot(ctx, s, s.what()); ok {
		s.set(ctx, slot, key, s.w.At(start.UnixMilli()), nil)
	}
}

// Fetch yields the rows of a key whose windows start between two times, both
// included, in order of time. A zero time is no bound. The store must not be
// changed from within the loop. On a failure the loop ends and the record
// fails: see Context.Failed.
func (s *WindowRows[T]) Fetch(ctx *Context, key string, from, to time.Time) iter.Seq2[time.Time, T] {
	return s.fetch(ctx, key, betweenTimes(from, to, false))
}

// FetchReverse is Fetch from the last row to the first.
func (s *WindowRows[T]) FetchReverse(ctx *Context, key string, from, to time.Time) iter.Seq2[time.Time, T] {
	return s.fetch(ctx, key, betweenTimes(from, to, true))
}

func (s *WindowRows[T]) fetch(ctx *Context, key string, in between) iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) {
		slot, ok := s.slot(ctx, s, s.what())
		if !ok {
			return
		}
		for f := range s.scanKey(ctx, slot, key, in) {
			if !yield(time.UnixMilli(f.win.Start), f.v) {
				return
			}
		}
	}
}

// FetchAll yields the rows of all keys whose windows start between two times,
// in order of time, then of keys. See Fetch.
func (s *WindowRows[T]) FetchAll(ctx *Context, from, to time.Time) iter.Seq[reka.WindowRow[T]] {
	return s.fetchAll(ctx, betweenTimes(from, to, false))
}

// FetchAllReverse is FetchAll from the last row to the first.
func (s *WindowRows[T]) FetchAllReverse(ctx *Context, from, to time.Time) iter.Seq[reka.WindowRow[T]] {
	return s.fetchAll(ctx, betweenTimes(from, to, true))
}

func (s *WindowRows[T]) fetchAll(ctx *Context, in between) iter.Seq[reka.WindowRow[T]] {
	return func(yield func(reka.WindowRow[T]) bool) {
		slot, ok := s.slot(ctx, s, s.what())
		if !ok {
			return
		}
		for f := range s.scanTime(ctx, slot, in) {
			if !yield(reka.WindowRow[T]{Key: f.key, Window: f.win, Value: f.v}) {
				return
			}
		}
	}
}

func (s *SessionRows[T]) declare(d *declaration) error { return s.declareAs(d, s) }

// Get returns the row of a key's session, changes of this callback included,
// and whether there is one.
func (s *SessionRows[T]) Get(ctx *Context, key string, w window.Window) (v T, ok bool) {
	slot, ok := s.slot(ctx, s, s.what())
	if !ok {
		return v, false
	}
	return s.get(ctx, slot, key, w)
}

// Set changes the row of a key's session. It reports whether it did: that of
// a session that has expired is not set.
func (s *SessionRows[T]) Set(ctx *Context, key string, w window.Window, v T) bool {
	slot, ok := s.slot(ctx, s, s.what())
	return ok && s.set(ctx, slot, key, w, &v)
}

// Delete removes the row of a key's session.
func (s *SessionRows[T]) Delete(ctx *Context, key string, w window.Window) {
	if slot, ok := s.slot(ctx, s, s.what()); ok {
		s.set(ctx, slot, key, w, nil)
	}
}

// Find yields the sessions of a key that have a moment between two times, in
// order of their ends. See WindowRows.Fetch.
func (s *SessionRows[T]) Find(ctx *Context, key string, from, to time.Time) iter.Seq2[window.Window, T] {
	return s.find(ctx, key, betweenTimes(from, to, false))
}

// FindReverse is Find from the last session to the first.
func (s *SessionRows[T]) FindReverse(ctx *Context, key string, from, to time.Time) iter.Seq2[window.Window, T] {
	return s.find(ctx, key, betweenTimes(from, to, true))
}

func (s *SessionRows[T]) find(ctx *Context, key string, in between) iter.Seq2[window.Window, T] {
	return func(yield func(window.Window, T) bool) {
		slot, ok := s.slot(ctx, s, s.what())
		if !ok {
			return
		}
		latest := in.to
		in.to = maxTime // one that ends later may have begun before
		for f := range s.scanKey(ctx, slot, key, in) {
			if f.win.Start <= latest && !yield(f.win, f.v) {
				return
			}
		}
	}
}
