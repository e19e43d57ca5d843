package assign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The dumb twin tries every assignment of a tiny group and knows the best
// that there is.

type score struct {
	spread  int // largest total less smallest, over members that declare anything
	squares int
	moves   int
}

type twin struct {
	members  []Member
	tasks    []Task
	eligible [][]int // by task
	holder   []int   // by task, -1: none
	best     score
	found    bool
}

func newTwin(members []Member, counts map[string]int32) *twin {
	w := &twin{members: members}
	for _, name := range []string{"s", "t"} {
		for p := range counts["in-"+name] {
			task := Task{name, p}
			var can []int
			holder := -1
			for i, m := range members {
				declares := slices.ContainsFunc(m.Subgraphs, func(s Subgraph) bool { return s.Name == name })
				if declares {
					can = append(can, i)
				}
				if slices.Contains(m.Claims, task) {
					holder = i
				}
			}
			if len(can) > 0 {
				w.tasks = append(w.tasks, task)
				w.eligible = append(w.eligible, can)
				w.holder = append(w.holder, holder)
			}
		}
	}
	w.try(make([]int, 0, len(w.tasks)))
	return w
}

func (w *twin) try(owner []int) {
	if n := len(owner); n < len(w.tasks) {
		for _, i := range w.eligible[n] {
			w.try(append(owner, i))
		}
		return
	}
	if !w.fairWithin(owner) {
		return
	}
	s := w.score(owner)
	better := s.squares < w.best.squares || s.squares == w.best.squares && s.moves < w.best.moves
	spread := s.spread
	if w.found {
		spread = min(spread, w.best.spread)
	}
	if !w.found || better {
		w.best = s
	}
	w.found, w.best.spread = true, spread
}

// fairWithin reports whether no two members differ by more than one task in
// any subgraph.
func (w *twin) fairWithin(owner []int) bool {
	for n := 0; n < len(owner); {
		counts := map[int]int{}
		for _, i := range w.eligible[n] {
			counts[i] = 0
		}
		name := w.tasks[n].Subgraph
		for ; n < len(owner) && w.tasks[n].Subgraph == name; n++ {
			counts[owner[n]]++
		}
		low, high := len(owner), 0
		for _, c := range counts {
			low, high = min(low, c), max(high, c)
		}
		if high-low > 1 {
			return false
		}
	}
	return true
}

func (w *twin) score(owner []int) score {
	var s score
	load := make([]int, len(w.members))
	for n, i := range owner {
		load[i]++
		if w.holder[n] >= 0 && w.holder[n] != i {
			s.moves++
		}
	}
	low, high := len(owner)+1, 0
	for i, l := range load {
		s.squares += l * l
		if len(w.members[i].Subgraphs) > 0 {
			low, high = min(low, l), max(high, l)
		}
	}
	s.spread = max(0, high-low)
	return s
}

func TestPlanIsAsGoodAsTheBestOfAllAssignments(t *testing.T) {
	for seed := range uint64(1500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		counts := map[string]int32{"in-s": int32(1 + rnd.IntN(5)), "in-t": int32(1 + rnd.IntN(3))}
		members := make([]Member, 1+rnd.IntN(3))
		for i := range members {
			members[i] = Member{ID: fmt.Sprint("m", i), Generation: 1}
			for _, name := range []string{"s", "t"} {
				if rnd.IntN(5) > 0 {
					members[i].Subgraphs = append(members[i].Subgraphs, Subgraph{Name: name, Topics: []string{"in-" + name}})
				}
			}
		}
		for _, name := range []string{"s", "t"} {
			for p := range counts["in-"+name] {
				if i := rnd.IntN(len(members) + 1); i < len(members) {
					members[i].Claims = append(members[i].Claims, Task{name, p})
				}
			}
		}
		w := newTwin(members, counts)
		r := plan(t, counts, members...)
		owner := make([]int, len(w.tasks))
		for n, task := range w.tasks {
			i, ok := r.target[task]
			if !ok {
				t.Fatalf("seed %d: %v has no target", seed, task)
			}
			owner[n] = i
		}
		if !w.fairWithin(owner) {
			t.Fatalf("seed %d: unfair within a subgraph: %v", seed, r.target)
		}
		if got := w.score(owner); got != w.best {
			t.Fatalf("seed %d: %+v, best %+v", seed, got, w.best)
		}
	}
}
