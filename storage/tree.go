package storage

import (
	"bytes"
	"slices"
)

// nodeSize is the most rows of a leaf and the most children of an inner node.
const nodeSize = 64

// tree is a B+ tree whose nodes are copied before they are changed if a
// snapshot may see them. One writer; readers of a frozen root need no lock.
type tree struct {
	root *node // nil: empty
	len  int
	gen  uint64 // nodes of this generation are seen by nobody else
}

// node is a leaf (kids is nil) or an inner node. In an inner node keys[i]
// parts kids[i-1] from kids[i]: above all keys of the one, at or below those
// of the other; keys[0] means nothing.
type node struct {
	gen  uint64
	keys [][]byte
	vals [][]byte // leaf only
	kids []*node  // inner only
}

// freeze returns the rows as they are now, never to be changed.
func (t *tree) freeze() *node {
	t.gen++
	return t.root
}

func (t *tree) apply(rows []Row) {
	for _, r := range rows {
		if r.Value == nil {
			t.remove(r.Key)
		} else {
			t.set(r.Key, r.Value)
		}
	}
}

// set stores copies of key and value.
func (t *tree) set(key, value []byte) {
	value = append(make([]byte, 0, len(value)), value...)
	if t.root == nil {
		t.root = &node{gen: t.gen}
	}
	t.root = t.root.own(t.gen)
	added, right := t.root.set(key, value)
	if added {
		t.len++
	}
	if right != nil {
		t.root = &node{gen: t.gen, keys: [][]byte{nil, right.keys[0]}, kids: []*node{t.root, right}}
	}
}

func (t *tree) remove(key []byte) {
	if _, ok := t.root.get(key); !ok {
		return
	}
	t.len--
	t.root = t.root.own(t.gen)
	t.root.remove(key)
	for len(t.root.kids) == 1 {
		t.root = t.root.kids[0]
	}
	if len(t.root.keys) == 0 {
		t.root = nil
	}
}

func (n *node) get(key []byte) ([]byte, bool) {
	if n == nil {
		return nil, false
	}
	for n.kids != nil {
		n = n.kids[n.child(key)]
	}
	if i, ok := slices.BinarySearchFunc(n.keys, key, bytes.Compare); ok {
		return n.vals[i], true
	}
	return nil, false
}

// child returns the index of the child that key belongs to.
func (n *node) child(key []byte) int {
	i, ok := slices.BinarySearchFunc(n.keys[1:], key, bytes.Compare)
	if ok {
		i++
	}
	return i
}

// own returns n, or a copy if n is of an older generation.
func (n *node) own(gen uint64) *node {
	if n.gen == gen {
		return n
	}
	return &node{gen: gen, keys: slices.Clone(n.keys), vals: slices.Clone(n.vals), kids: slices.Clone(n.kids)}
}

// set reports whether the key is new, and returns the right half if n split.
// n is owned.
func (n *node) set(key, value []byte) (added bool, right *node) {
	if n.kids == nil {
		i, ok := slices.BinarySearchFunc(n.keys, key, bytes.Compare)
		if ok {
			n.vals[i] = value
			return false, nil
		}
		n.keys = slices.Insert(n.keys, i, append(make([]byte, 0, len(key)), key...))
		n.vals = slices.Insert(n.vals, i, value)
		return true, n.split()
	}
	i := n.child(key)
	n.kids[i] = n.kids[i].own(n.gen)
	added, half := n.kids[i].set(key, value)
	if half != nil {
		n.keys = slices.Insert(n.keys, i+1, half.keys[0])
		n.kids = slices.Insert(n.kids, i+1, half)
		right = n.split()
	}
	return added, right
}

// split cuts n in two if it is too big, and returns the right half.
func (n *node) split() *node {
	if len(n.keys) <= nodeSize {
		return nil
	}
	m := len(n.keys) / 2
	right := &node{gen: n.gen, keys: slices.Clone(n.keys[m:])}
	clear(n.keys[m:])
	n.keys = n.keys[:m]
	if n.kids == nil {
		right.vals = slices.Clone(n.vals[m:])
		clear(n.vals[m:])
		n.vals = n.vals[:m]
		return right
	}
	right.kids = slices.Clone(n.kids[m:])
	clear(n.kids[m:])
	n.kids = n.kids[:m]
	return right
}

// remove deletes a key that is there. n is owned and may end up empty.
func (n *node) remove(key []byte) {
	if n.kids == nil {
		i, _ := slices.BinarySearchFunc(n.keys, key, bytes.Compare)
		n.keys = slices.Delete(n.keys, i, i+1)
		n.vals = slices.Delete(n.vals, i, i+1)
		return
	}
	i := n.child(key)
	n.kids[i] = n.kids[i].own(n.gen)
	n.kids[i].remove(key)
	if len(n.kids[i].keys) == 0 {
		n.keys = slices.Delete(n.keys, i, i+1)
		n.kids = slices.Delete(n.kids, i, i+1)
		return
	}
	if i+1 == len(n.kids) {
		i--
	}
	if i >= 0 {
		n.merge(i)
	}
}

// merge makes one of children i and i+1 if both are small.
func (n *node) merge(i int) {
	a, b := n.kids[i], n.kids[i+1]
	if len(a.keys)+len(b.keys) > nodeSize/2 {
		return
	}
	a = a.own(n.gen)
	at := len(a.keys)
	a.keys = append(a.keys, b.keys...)
	a.vals = append(a.vals, b.vals...)
	if b.kids != nil {
		a.keys[at] = n.keys[i+1]
		a.kids = append(a.kids, b.kids...)
	}
	n.kids[i] = a
	n.keys = slices.Delete(n.keys, i+1, i+2)
	n.kids = slices.Delete(n.kids, i+1, i+2)
}

// row returns row i of a leaf. Its slices have no room to append into.
func (n *node) row(i int) Row {
	return Row{Key: slices.Clip(n.keys[i]), Value: slices.Clip(n.vals[i])}
}

// ascend yields the rows of r upwards and reports whether to go on.
func (n *node) ascend(r Range, yield func(Row) bool) bool {
	if n == nil {
		return true
	}
	if n.kids != nil {
		for _, kid := range n.kids[n.child(r.From):] {
			if !kid.ascend(r, yield) {
				return false
			}
		}
		return true
	}
	from, _ := slices.BinarySearchFunc(n.keys, r.From, bytes.Compare)
	for i := from; i < len(n.keys); i++ {
		if r.To != nil && bytes.Compare(n.keys[i], r.To) >= 0 || !yield(n.row(i)) {
			return false
		}
	}
	return true
}

// descend yields the rows of r downwards and reports whether to go on.
func (n *node) descend(r Range, yield func(Row) bool) bool {
	if n == nil {
		return true
	}
	last := len(n.keys) - 1
	if n.kids != nil {
		if r.To != nil {
			last = n.child(r.To)
		}
		for i := last; i >= 0; i-- {
			if !n.kids[i].descend(r, yield) {
				return false
			}
		}
		return true
	}
	if r.To != nil {
		to, _ := slices.BinarySearchFunc(n.keys, r.To, bytes.Compare)
		last = to - 1
	}
	for i := last; i >= 0; i-- {
		if bytes.Compare(n.keys[i], r.From) < 0 || !yield(n.row(i)) {
			return false
		}
	}
	return true
}
