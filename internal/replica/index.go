package replica

import (
	"bytes"
	"slices"

	"github.com/rekastream/reka/storage"
)

// index holds rows that are not in the store yet, in byte order: a B-tree
// whose nodes are copied before a change while somebody reads them. It is
// kept only while scans are in use.
//
// One writer. A root that was borrowed does not change until it is returned,
// and may be read from any goroutine meanwhile.
type index struct {
	root    *indexNode
	gen     uint64 // nodes of this generation are written in place
	readers int
	len     int
}

// indexItem is one row, never changed; a nil value is a delete.
type indexItem struct {
	key, value []byte
	time       int64
	seq        uint64
}

// indexSize is the most items of a node.
const indexSize = 32

type indexNode struct {
	gen   uint64
	items []*indexItem
	kids  []*indexNode // none in a leaf, else one more than items
}

func newIndex() *index { return &index{root: &indexNode{}} }

// set stores copies of key and value.
func (x *index) set(key, value []byte, time int64, seq uint64) {
	block := make([]byte, len(key)+len(value))
	copy(block, key)
	it := &indexItem{key: block[:len(key):len(key)], time: time, seq: seq}
	if value != nil {
		copy(block[len(key):], value)
		it.value = block[len(key):]
	}
	x.insert(it)
}

func (x *index) insert(it *indexItem) {
	if x.readers > 0 {
		x.gen++ // what they read is not touched from here on
		x.readers = 0
	}
	x.root = x.root.own(x.gen)
	if len(x.root.items) == indexSize {
		mid, right := x.root.split(x.gen)
		x.root = &indexNode{gen: x.gen, items: []*indexItem{mid}, kids: []*indexNode{x.root, right}}
	}
	if x.root.insert(it, x.gen) {
		x.len++
	}
}

// borrow returns the rows as they are now.
func (x *index) borrow() borrowed {
	x.readers++
	return borrowed{x.root, x.gen}
}

// borrowed are the rows of an index at one moment.
type borrowed struct {
	root *indexNode
	gen  uint64
}

// giveBack says that b is not read any more.
func (x *index) giveBack(b borrowed) {
	if b.gen == x.gen && x.readers > 0 {
		x.readers--
	}
}

// dropThrough returns an index without the items up to seq.
func (x *index) dropThrough(seq uint64) *index {
	out := newIndex()
	c := newIndexCursor(x.root, storage.Range{})
	for it := c.next(); it != nil; it = c.next() {
		if it.seq > seq {
			out.insert(it)
		}
	}
	return out
}

func (n *indexNode) own(gen uint64) *indexNode {
	if n.gen == gen {
		return n
	}
	c := &indexNode{gen: gen, items: make([]*indexItem, len(n.items), indexSize)}
	copy(c.items, n.items)
	if n.kids != nil {
		c.kids = make([]*indexNode, len(n.kids), indexSize+1)
		copy(c.kids, n.kids)
	}
	return c
}

// find returns the position of the first item not below key.
func (n *indexNode) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(n.items, key, func(it *indexItem, k []byte) int {
		return bytes.Compare(it.key, k)
	})
}

// insert puts it below n, which is owned and not full. It reports whether the
// key is new.
func (n *indexNode) insert(it *indexItem, gen uint64) bool {
	i, ok := n.find(it.key)
	switch {
	case ok:
		n.items[i] = it
		return false
	case n.kids == nil:
		n.items = slices.Insert(n.items, i, it)
		return true
	}
	kid := n.kids[i].own(gen)
	n.kids[i] = kid
	if len(kid.items) < indexSize {
		return kid.insert(it, gen)
	}
	mid, right := kid.split(gen)
	n.items = slices.Insert(n.items, i, mid)
	n.kids = slices.Insert(n.kids, i+1, right)
	return n.insert(it, gen)
}

// split cuts n, which is owned and full, in two around its middle item.
func (n *indexNode) split(gen uint64) (mid *indexItem, right *indexNode) {
	m := len(n.items) / 2
	mid = n.items[m]
	right = &indexNode{gen: gen, items: append(make([]*indexItem, 0, indexSize), n.items[m+1:]...)}
	clear(n.items[m:])
	n.items = n.items[:m]
	if n.kids != nil {
		right.kids = append(make([]*indexNode, 0, indexSize+1), n.kids[m+1:]...)
		clear(n.kids[m+1:])
		n.kids = n.kids[:m+1]
	}
	return mid, right
}

// indexCursor walks a range of a borrowed root.
type indexCursor struct {
	r     storage.Range
	stack []indexFrame
}

// indexFrame is a node and the next item of it: the kid before that item (in
// the direction of the walk) is done.
type indexFrame struct {
	n *indexNode
	i int
}

func newIndexCursor(root *indexNode, r storage.Range) *indexCursor {
	c := &indexCursor{r: r}
	for n := root; n != nil; {
		i := 0
		if r.Reverse {
			i = len(n.items) // items below To are left of i
			if r.To != nil {
				i, _ = n.find(r.To)
			}
			c.stack = append(c.stack, indexFrame{n, i - 1})
		} else {
			if r.From != nil {
				i, _ = n.find(r.From)
			}
			c.stack = append(c.stack, indexFrame{n, i})
		}
		if n.kids == nil {
			break
		}
		n = n.kids[i]
	}
	return c
}

// next returns the next item of the range, nil after the last.
func (c *indexCursor) next() *indexItem {
	for len(c.stack) > 0 {
		f := &c.stack[len(c.stack)-1]
		if f.i < 0 || f.i >= len(f.n.items) {
			c.stack = c.stack[:len(c.stack)-1]
			continue
		}
		it := f.n.items[f.i]
		c.advance(f)
		if !c.r.Contains(it.key) {
			// Nearer to the start than the range is impossible: it is beyond.
			c.stack = c.stack[:0]
			return nil
		}
		return it
	}
	return nil
}

// advance moves behind the item at f and down into the kid between it and the
// next one.
func (c *indexCursor) advance(f *indexFrame) {
	n, kid := f.n, f.i+1
	if c.r.Reverse {
		kid = f.i
		f.i--
	} else {
		f.i++
	}
	for n.kids != nil {
		n = n.kids[kid]
		if c.r.Reverse {
			c.stack = append(c.stack, indexFrame{n, len(n.items) - 1})
			kid = len(n.items)
		} else {
			c.stack = append(c.stack, indexFrame{n, 0})
			kid = 0
		}
	}
}
