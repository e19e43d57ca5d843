package stream

import "github.com/rekastream/reka/codec"

// JoinTables joins two tables by key: its rows are what fn makes of the keys
// that both have. It follows changes of either; a row's time is the later one
// of the change and of the other side's row. A change that leaves the result
// as it is hands nothing on: results are compared if they have a codec
// (WithCodec), the changed side's values otherwise.
//
// fn must depend on nothing else and change nothing that it is given: it is
// called again when a row is read. With a name (Named) the results are kept in
// a store, which views can read. Two tables that the same records change need a
// codec: their results are kept in any case.
func JoinTables[L, R, V any](l Table[L], r Table[R], fn func(key string, l L, r R) V, opts ...Option) Table[V] {
	j := newTableJoin[L, R, V](l, r, "jointables", opts)
	if j.declared(fn != nil) {
		j.follow(func(key string, l *L, r *R) V { return fn(key, *l, *r) })
	}
	return j.out
}

// LeftJoinTables is JoinTables with a row for every key of the left table; the
// right row is nil if there is none.
func LeftJoinTables[L, R, V any](l Table[L], r Table[R], fn func(key string, l L, r *R) V, opts ...Option) Table[V] {
	j := newTableJoin[L, R, V](l, r, "leftjointables", opts)
	j.leftAlone = true
	if j.declared(fn != nil) {
		j.follow(func(key string, l *L, r *R) V { return fn(key, *l, r) })
	}
	return j.out
}

// OuterJoinTables is JoinTables with a row for every key of either table; the
// side that has none is nil.
func OuterJoinTables[L, R, V any](l Table[L], r Table[R], fn func(key string, l *L, r *R) V, opts ...Option) Table[V] {
	j := newTableJoin[L, R, V](l, r, "outerjointables", opts)
	j.leftAlone, j.rightAlone = true, true
	if j.declared(fn != nil) {
		j.follow(fn)
	}
	return j.out
}

// tableJoin is a join of two tables.
type tableJoin[L, R, V any] struct {
	n    *node
	l    Table[L]
	r    Table[R]
	out  Table[V]
	keep *rows[V]
	o    options
	fn   func(key string, l *L, r *R) V

	leftAlone, rightAlone bool // a row without the other side's has a result
}

func newTableJoin[L, R, V any](l Table[L], r Table[R], op string, opts []Option) *tableJoin[L, R, V] {
	n := l.b().node(op, l.n, r.n)
	j := &tableJoin[L, R, V]{n: n, l: l, r: r, o: fold(opts)}
	j.out = newTable(n, codecOf[V](n, &j.o, nil))
	l.needChanges(n)
	r.needChanges(n)
	return j
}

// declared reports whether there is what the join needs.
func (j *tableJoin[L, R, V]) declared(fn bool) bool {
	if !fn {
		j.n.b.failf(j.n, "no function")
		return false
	}
	// A record that changes both sides changes them one after the other. What
	// the result was between is known only if it was kept.
	if j.o.name == "" && shareRecords(j.l.n, j.r.n) {
		j.o.name = j.n.own("")
		if !needCodec(j.n, j.out.codec) {
			return false
		}
		j.keep = stored(j.n.store(""), j.out.codec)
		j.out.get = j.keep.get
		return true
	}
	j.out.get = j.get
	j.keep = j.out.kept(j.n, j.o.name)
	return true
}

// follow makes the result follow both sides.
func (j *tableJoin[L, R, V]) follow(fn func(key string, l *L, r *R) V) {
	j.fn = fn
	j.l.add(func(x *exec, e change[L]) {
		other, at, ok := j.r.get(x, e.key)
		if x.failed() || j.keep == nil && unchanged(x, j.l.codec, &e) {
			return
		}
		ch := change[V]{key: e.key, time: e.time}
		r := optional(&other, ok)
		if ok {
			ch.time = max(ch.time, at)
		}
		if j.keep == nil {
			ch.old, ch.hasOld = j.row(x, e.key, optional(&e.old, e.hasOld), r)
		}
		ch.new, ch.hasNew = j.row(x, e.key, optional(&e.new, e.hasNew), r)
		j.out.changed(x, ch, j.keep)
	})
	j.r.add(func(x *exec, e change[R]) {
		other, at, ok := j.l.get(x, e.key)
		if x.failed() || j.keep == nil && unchanged(x, j.r.codec, &e) {
			return
		}
		ch := change[V]{key: e.key, time: e.time}
		l := optional(&other, ok)
		if ok {
			ch.time = max(ch.time, at)
		}
		if j.keep == nil {
			ch.old, ch.hasOld = j.row(x, e.key, l, optional(&e.old, e.hasOld))
		}
		ch.new, ch.hasNew = j.row(x, e.key, l, optional(&e.new, e.hasNew))
		j.out.changed(x, ch, j.keep)
	})
}

// unchanged reports whether a row was set to the value that it had, or was
// deleted and not there.
func unchanged[T any](x *exec, c codec.Codec[T], e *change[T]) bool {
	return !e.hasOld && !e.hasNew || e.hasOld && e.hasNew && same(x, c, e.old, e.new)
}

// row is the result of both sides, if it has one.
func (j *tableJoin[L, R, V]) row(x *exec, key []byte, l *L, r *R) (v V, ok bool) {
	switch {
	case l == nil && r == nil, l == nil && !j.rightAlone, r == nil && !j.leftAlone:
		return v, false
	}
	return j.fn(x.key(key), l, r), true
}

// get makes a result of both sides' rows.
func (j *tableJoin[L, R, V]) get(x *exec, key []byte) (v V, time int64, ok bool) {
	l, lt, lok := j.l.get(x, key)
	r, rt, rok := j.r.get(x, key)
	if x.failed() {
		return v, 0, false
	}
	if lok {
		time = lt
	}
	if rok {
		time = max(time, rt)
	}
	v, ok = j.row(x, key, optional(&l, lok), optional(&r, rok))
	return v, time, ok
}

// optional is v if it is there.
func optional[T any](v *T, ok bool) *T {
	if !ok {
		return nil
	}
	return v
}

// shareRecords reports whether a record may change both tables.
func shareRecords(l, r *node) bool {
	left := map[*node]bool{}
	var walk func(n *node, visit func(*node) bool) bool
	walk = func(n *node, visit func(*node) bool) bool {
		if n == nil {
			return false
		}
		if visit(n) {
			return true
		}
		for _, p := range n.parents {
			if walk(p, visit) {
				return true
			}
		}
		return false
	}
	walk(l, func(n *node) bool { left[n] = true; return false })
	return walk(r, func(n *node) bool { return left[n] })
}
