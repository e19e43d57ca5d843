package stream

import (
	"fmt"
	"slices"
)

// Branches are the ways that Split parts a flow into.
type Branches[T any] struct {
	ways  map[string]Flow[T]
	names []string
}

// Way is one branch of Split: the records for which Take is true, and that no
// way before it has taken.
type Way[T any] struct {
	Name string
	Take func(key string, v T) bool
}

// DefaultWay is the name of what no way has taken.
const DefaultWay = "default"

// Split parts a flow: each record goes the first way that takes it, or to
// DefaultWay. Records without a value go there too.
func (f Flow[T]) Split(ways ...Way[T]) Branches[T] {
	split := f.then("split")
	b := Branches[T]{ways: map[string]Flow[T]{}}
	outs := make([]Flow[T], len(ways)+1)
	for i, w := range append(slices.Clip(ways), Way[T]{Name: DefaultWay}) {
		switch {
		case w.Name == "":
			f.b().failf(split.n, "way %d has no name", i)
		case i < len(ways) && w.Take == nil:
			f.b().failf(split.n, "way %q has no function", w.Name)
		case b.has(w.Name):
			f.b().failf(split.n, "the way %q is declared twice", w.Name)
		}
		outs[i] = split.then("branch")
		b.ways[w.Name] = outs[i]
		b.names = append(b.names, w.Name)
	}
	f.add(func(x *exec, e event[T]) {
		for i := range ways {
			if !e.null && ways[i].Take(x.key(e.key), e.value) {
				outs[i].out.emit(x, e)
				return
			}
		}
		outs[len(ways)].out.emit(x, e)
	})
	return b
}

func (b Branches[T]) has(name string) bool { _, ok := b.ways[name]; return ok }

// Way returns a branch by its name. One that was not declared is a mistake,
// which Graph reports.
func (b Branches[T]) Way(name string) Flow[T] {
	f, ok := b.ways[name]
	if !ok {
		f = b.ways[DefaultWay]
		f.b().fail(fmt.Errorf("split: no way %q among %q", name, b.names))
	}
	return f
}

// Default returns the branch of what no way has taken.
func (b Branches[T]) Default() Flow[T] { return b.ways[DefaultWay] }
