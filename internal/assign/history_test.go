package assign

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// group plays a group over many rounds: members join, leave, crash, stall
// (and so miss generations) and come back claiming what is no longer theirs.
type group struct {
	t          *testing.T
	rnd        *rand.Rand
	generation int32
	members    []Member
	counts     map[string]int32
	next       int
}

func newGroup(t *testing.T, seed uint64) *group {
	g := &group{t: t, rnd: rand.New(rand.NewPCG(seed, 2)), counts: map[string]int32{}}
	for s := range 1 + g.rnd.IntN(3) {
		g.counts[fmt.Sprint("in-", s)] = int32(1 + g.rnd.IntN(20))
	}
	g.join()
	return g
}

func (g *group) join() {
	g.next++
	m := Member{ID: fmt.Sprintf("%04x-%d", g.rnd.Uint32N(1<<16), g.next), Generation: -1}
	m.ProcessID = fmt.Sprint("process-", g.next)
	for _, topic := range slices.Sorted(maps.Keys(g.counts)) { // the same history on every run
		if g.rnd.IntN(8) > 0 {
			m.Subgraphs = append(m.Subgraphs, Subgraph{Name: topic[3:], Topics: []string{topic}})
		}
	}
	g.members = append(g.members, m)
}

func (g *group) event() {
	i := g.rnd.IntN(len(g.members))
	switch n := g.rnd.IntN(5); {
	case n < 2 && len(g.members) < 12:
		g.join()
	case n == 2 && len(g.members) > 1:
		g.members = slices.Delete(g.members, i, i+1)
	case n == 3: // a lost member that comes back without its claims
		g.members[i].Claims, g.members[i].Generation = nil, -1
		g.members[i].ID += "'"
	}
}

// round plans, checks, and lets the members adopt; each misses the plan with
// the given chance.
func (g *group) round(miss float64) Result {
	g.generation++
	r := plan(g.t, g.counts, g.members...)
	g.checkGiven(r)
	for i := range g.members {
		m := &g.members[i]
		if g.rnd.Float64() < miss {
			continue
		}
		m.Claims, m.Generation = slices.Clone(r.Shares[m.ID].Tasks), g.generation
	}
	g.checkOwners()
	return r
}

func (g *group) checkGiven(r Result) {
	g.t.Helper()
	given := map[Task]string{}
	for _, m := range g.members {
		s := r.Shares[m.ID]
		for _, t := range s.Tasks {
			if other, ok := given[t]; ok {
				g.t.Fatalf("generation %d: %v given to %s and %s", g.generation, t, other, m.ID)
			}
			given[t] = m.ID
			for _, o := range g.members {
				if o.ID != m.ID && o.Generation >= m.Generation && slices.Contains(o.Claims, t) {
					g.t.Fatalf("generation %d: %v given to %s while %s claims it", g.generation, t, m.ID, o.ID)
				}
			}
			if !slices.ContainsFunc(m.Subgraphs, func(s Subgraph) bool { return s.Name == t.Subgraph }) {
				g.t.Fatalf("%v given to %s, which does not declare it", t, m.ID)
			}
		}
		for _, t := range s.Releasing {
			if !slices.Contains(m.Claims, t) {
				g.t.Fatalf("%s shall release %v, which it does not claim", m.ID, t)
			}
		}
	}
	for _, m := range g.members {
		for _, t := range slices.Concat(r.Shares[m.ID].Releasing, r.Shares[m.ID].Awaiting) {
			if owner, ok := given[t]; ok {
				g.t.Fatalf("%v is held back for %s and given to %s", t, m.ID, owner)
			}
		}
	}
}

// checkOwners checks that nobody who adopted this generation shares a task
// with anybody else who did.
func (g *group) checkOwners() {
	g.t.Helper()
	owner := map[Task]string{}
	for _, m := range g.members {
		if m.Generation != g.generation {
			continue
		}
		for _, t := range m.Claims {
			if other, ok := owner[t]; ok {
				g.t.Fatalf("generation %d: %s and %s own %v", g.generation, other, m.ID, t)
			}
			owner[t] = m.ID
		}
	}
}

func (g *group) checkSettled(r Result) {
	g.t.Helper()
	if r.Again {
		g.t.Fatal("not settled after two rounds")
	}
	for topic, n := range g.counts {
		low, high, sum := int(n), 0, 0
		declared := false
		for _, m := range g.members {
			if !slices.ContainsFunc(m.Subgraphs, func(s Subgraph) bool { return s.Topics[0] == topic }) {
				continue
			}
			declared = true
			c := 0
			for _, t := range m.Claims {
				if "in-"+t.Subgraph == topic {
					c++
				}
			}
			low, high, sum = min(low, c), max(high, c), sum+c
		}
		if declared && (sum != int(n) || high-low > 1) {
			g.t.Fatalf("%s: %d of %d owned, between %d and %d a member", topic, sum, n, low, high)
		}
	}
}

func TestRandomHistoriesOfMembership(t *testing.T) {
	for seed := range uint64(400) {
		g := newGroup(t, seed)
		for range 25 {
			g.event()
			g.round(0.2)
		}
		first := g.round(0)
		second := g.round(0)
		g.checkSettled(second)
		if !reflect.DeepEqual(first.target, second.target) {
			t.Fatalf("seed %d: the second round wants something else", seed)
		}
		third := g.round(0)
		if len(third.Moves) != 0 || !reflect.DeepEqual(third.Shares, second.Shares) {
			t.Fatalf("seed %d: a settled group moves %v", seed, third.Moves)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestMemberThatJoinsTakesOnlyItsPart(t *testing.T) {
	for n := 1; n <= 12; n++ {
		for tasks := range int32(40) {
			g := &group{t: t, rnd: rand.New(rand.NewPCG(1, 1)), counts: map[string]int32{"in-s": tasks + 1}}
			for range n {
				g.join()
				g.members[len(g.members)-1].Subgraphs = []Subgraph{{Name: "s", Topics: []string{"in-s"}}}
				g.round(0)
				g.round(0)
			}
			g.join()
			g.members[n].Subgraphs = []Subgraph{{Name: "s", Topics: []string{"in-s"}}}
			r := g.round(0)
			if most := int(tasks+1) / (n + 1); len(r.Moves) > most {
				t.Fatalf("%d tasks, the %d. member: %d moves, its part is %d", tasks+1, n+1, len(r.Moves), most)
			}
		}
	}
}
