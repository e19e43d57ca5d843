package stream

import (
	"github.com/rekastream/reka/window"
)

// Windows that are closed one after the other have most panes in common. Each
// key's panes are merged in two stacks: what is to leave is merged from its
// end to each of its panes, what has come is merged into one. So a window costs
// two merges, however many panes it has; when all of the first have left, the
// others take their place (the two-stack queue; see Tangwongsan et al.,
// "Sliding-Window Aggregation Algorithms", Encyclopedia of Big Data
// Technologies, 2018).
//
// Stacks are a cache: they are made of the panes when they are not there, and
// given up when a pane in them changes. They belong to the task.

// partial is what some panes come to.
type partial[A any] struct {
	a    A
	time int64
	ok   bool
}

// stacks are one key's.
type stacks[A any] struct {
	starts []int64      // of the panes in front that are there
	front  []partial[A] // from each of them to the last one in front
	begin  int64        // panes before it are not in the stacks
	back   partial[A]   // of the panes behind those
	end    int64        // panes from there on are not in the stacks
}

// paneCache are the stacks of an operation in a task.
type paneCache[A any] struct {
	keys  map[string]*stacks[A]
	panes int // in all fronts
}

// paneCachePanes bounds the panes in a cache.
const paneCachePanes = 1 << 18

func (p *paneOp[T, A]) cache(x *exec) *paneCache[A] {
	if c, ok := x.caches[p.st].(*paneCache[A]); ok {
		return c
	}
	if x.caches == nil {
		x.caches = map[*store]any{}
	}
	c := &paneCache[A]{keys: map[string]*stacks[A]{}}
	x.caches[p.st] = c
	return c
}

// drop gives a key's stacks up.
func (p *paneOp[T, A]) drop(x *exec, key []byte) {
	c := p.cache(x)
	if s := c.keys[string(key)]; s != nil {
		c.panes -= len(s.front)
		delete(c.keys, string(key))
	}
}

// forget gives a key's stacks up if a pane that changes is in them.
func (p *paneOp[T, A]) forget(x *exec, key []byte, pane window.Window) {
	if s := p.cache(x).keys[string(key)]; s != nil && pane.Start < s.end {
		p.drop(x, key)
	}
}

// merged returns what the panes of a window come to.
func (p *paneOp[T, A]) merged(x *exec, key []byte, win window.Window) partial[A] {
	c := p.cache(x)
	s := c.keys[string(key)]
	if s == nil || win.Start < s.begin || win.End < s.end || len(s.starts) == 0 || s.starts[len(s.starts)-1] < win.Start {
		return p.restack(x, key, win)
	}
	for len(s.starts) > 0 && s.starts[0] < win.Start {
		s.starts, s.front = s.starts[1:], s.front[1:]
		c.panes--
	}
	s.begin = win.Start
	for pane := range p.w.Panes(window.Window{Start: s.end, End: win.End}) {
		s.back = p.join(x, key, s.back, p.pane(x, key, pane))
	}
	s.end = win.End
	return p.join(x, key, s.front[0], s.back)
}

// restack makes the stacks of a key's panes in a window.
func (p *paneOp[T, A]) restack(x *exec, key []byte, win window.Window) (all partial[A]) {
	p.drop(x, key)
	s := &stacks[A]{begin: win.Start, end: win.End}
	for pane := range p.w.Panes(win) {
		if v := p.pane(x, key, pane); v.ok {
			s.starts, s.front = append(s.starts, pane.Start), append(s.front, v)
		}
	}
	for i := len(s.front) - 2; i >= 0; i-- {
		s.front[i] = p.join(x, key, s.front[i], s.front[i+1])
	}
	if x.failed() || len(s.front) == 0 {
		return all
	}
	all = s.front[0]
	c := p.cache(x)
	if c.panes += len(s.front); c.panes > paneCachePanes {
		clear(c.keys)
		c.panes = len(s.front)
	}
	c.keys[string(key)] = s
	return all
}

// pane reads a pane.
func (p *paneOp[T, A]) pane(x *exec, key []byte, pane window.Window) (v partial[A]) {
	v.a, v.time, v.ok = p.panes.get(x, p.paneRow(x, pane, key))
	return v
}

func (p *paneOp[T, A]) join(x *exec, key []byte, a, b partial[A]) partial[A] {
	switch {
	case !a.ok:
		return b
	case !b.ok:
		return a
	}
	return partial[A]{p.by.Merge(x.key(key), a.a, b.a), max(a.time, b.time), true}
}
