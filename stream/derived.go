package stream

import (
	"bytes"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
)

// Filter is the table of the rows for which keep is true. One that is no
// longer among them is deleted.
//
// It keeps no rows: they are those of the table before it. With a name (Named)
// it keeps them in a store, which views can read.
func (t Table[T]) Filter(keep func(key string, v T) bool, opts ...Option) Table[T] {
	n := t.b().node("filter", t.n)
	o := fold(opts)
	c := codecOf(n, &o, t.codec)
	if keep == nil {
		n.b.failf(n, "no function")
		return newTable(n, c)
	}
	return derived(n, t, &o, deriving[T, T]{c, func(x *exec, key []byte, v T) (T, bool) { return v, keep(x.key(key), v) }})
}

// FilterNot is the table of the rows for which drop is false: see Filter.
func (t Table[T]) FilterNot(drop func(key string, v T) bool, opts ...Option) Table[T] {
	if drop == nil {
		return t.Filter(nil, opts...)
	}
	return t.Filter(func(key string, v T) bool { return !drop(key, v) }, opts...)
}

// MapTable is the table of what fn makes of each row, under the same key. fn
// must depend on nothing else: it is called again when a row is read. Give it
// a codec (WithCodec) if something behind it needs bytes; then a row that
// changes, but not in its result, changes nothing behind it; without one a row
// that was set to the same value. As to Named, see Filter.
func MapTable[T, U any](t Table[T], fn func(key string, v T) U, opts ...Option) Table[U] {
	n := t.b().node("maptable", t.n)
	o := fold(opts)
	c := codecOf[U](n, &o, nil)
	if fn == nil {
		n.b.failf(n, "no function")
		return newTable(n, c)
	}
	return derived(n, t, &o, deriving[T, U]{c, func(x *exec, key []byte, v T) (U, bool) { return fn(x.key(key), v), true }})
}

// To writes the changes to a topic; a deleted row as a record without a value.
func (t Table[T]) To(topic reka.Topic[T]) { Changes(t).To(topic) }

// deriving is how the rows of a table come of another one's.
type deriving[T, U any] struct {
	codec codec.Codec[U]
	row   func(x *exec, key []byte, v T) (U, bool)
}

func derived[T, U any](n *node, t Table[T], o *options, by deriving[T, U]) Table[U] {
	out := newTable(n, by.codec)
	out.rekeyed, out.first, out.history = t.rekeyed, t.first, t.history
	out.get = func(x *exec, key []byte) (u U, time int64, ok bool) {
		v, time, ok := t.get(x, key)
		if !ok {
			return u, 0, false
		}
		u, ok = by.row(x, key, v)
		return u, time, ok
	}
	if t.asOf != nil {
		out.asOf = func(x *exec, key []byte, at moment) (u U, ok bool) {
			v, ok := t.asOf(x, key, at)
			if !ok {
				return u, false
			}
			return by.row(x, key, v)
		}
	}
	if o.name != "" {
		t.needChanges(n)
	}
	keep := out.kept(n, o.name)
	t.add(func(x *exec, e change[T]) {
		if keep == nil && unchanged(x, t.codec, &e) {
			return
		}
		u := change[U]{key: e.key, time: e.time}
		if e.hasOld && keep == nil {
			u.old, u.hasOld = by.row(x, e.key, e.old)
		}
		if e.hasNew {
			u.new, u.hasNew = by.row(x, e.key, e.new)
		}
		out.changed(x, u, keep)
	})
	return out
}

// kept gives the table a store for its rows, if it is to have a name; nil: it
// has none.
func (t *Table[T]) kept(n *node, name string) *rows[T] {
	if name == "" {
		return nil
	}
	n.own(name)
	if !needCodec(n, t.codec) {
		return nil
	}
	keep := stored(n.store(""), t.codec)
	t.get = keep.get
	return keep
}

// changed hands on what became of a row, if it has changed. Rows that are kept
// say what it was before.
func (t *Table[T]) changed(x *exec, e change[T], keep *rows[T]) {
	if keep != nil {
		e.old, _, e.hasOld = keep.get(x, e.key)
	}
	if x.failed() || !e.hasOld && !e.hasNew || e.hasOld && e.hasNew && same(x, t.codec, e.old, e.new) {
		return
	}
	if keep != nil {
		keep.set(x, row[T]{e.key, e.new, e.hasNew, e.time})
	}
	t.out.emit(x, e)
}

// same reports whether two values have the same encoding. Without a codec it
// is not known.
func same[T any](x *exec, c codec.Codec[T], a, b T) bool {
	if c == nil {
		return false
	}
	first := encode(x, c, a)
	if first == nil {
		return false
	}
	x.wireBuf = append(x.wireBuf[:0], first...)
	second := encode(x, c, b)
	return second != nil && bytes.Equal(x.wireBuf, second)
}
