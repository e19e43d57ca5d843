package processor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rekastream/reka/internal/assign"
	"github.com/rekastream/reka/processor"
)

// member is one of a version in its group, as processors declare it.
func member(id string, d processor.Description, runs bool) assign.Member {
	m := assign.Member{ID: id, MemberData: assign.MemberData{ProcessID: id, Lanes: 1}, Generation: -1}
	for _, s := range d.Subgraphs {
		sub := assign.Subgraph{Name: s.Name}
		for _, in := range s.Inputs {
			sub.Topics = append(sub.Topics, in.Topic)
		}
		for _, st := range s.Stores {
			sub.Keeps = append(sub.Keeps, st.Changelog)
		}
		m.Subgraphs = append(m.Subgraphs, sub)
		if runs {
			m.Claims, m.Generation = append(m.Claims, assign.Task{Subgraph: s.Name}), 1
		}
	}
	return m
}

// conflicts reports whether members of both versions are refused side by side
// other than for being the narrower ones.
func conflicts(t *testing.T, old, next processor.Description) bool {
	t.Helper()
	r, err := assign.Plan(assign.Input{
		Members:    []assign.Member{member("old", old, true), member("new", next, false)},
		Partitions: map[string]int32{"a": 1, "b": 1, "c": 1, "d": 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Shares {
		for _, refused := range s.Refused {
			var c *assign.ConflictError
			if errors.As(refused.Err, &c) {
				return true
			}
		}
	}
	return false
}

// randomSubs are up to three subgraphs of few names, topics and stores.
func randomSubs(t *testing.T, r *rand.Rand) processor.Description {
	t.Helper()
	topics, stores := []string{"a", "b", "c", "d"}, []string{"x", "y"}
	r.Shuffle(len(topics), func(i, j int) { topics[i], topics[j] = topics[j], topics[i] })
	texts := []string{}
	for _, name := range []string{"p", "q", "s"}[:1+r.IntN(3)] {
		n := min(1+r.IntN(2), len(topics))
		if n == 0 {
			break
		}
		keeps := ""
		if len(stores) > 0 && r.IntN(2) == 0 {
			keeps, stores = stores[0], stores[1:]
		}
		texts = append(texts, fmt.Sprintf("%s: %s / %s", name, strings.Join(topics[:n], " "), keeps))
		topics = topics[n:]
	}
	return subs(t, texts...)
}

func TestCompareAsksForAStopWhereTheGroupRefusesBothVersions(t *testing.T) {
	stops, rolls := 0, 0
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 3))
		old, next := randomSubs(t, r), randomSubs(t, r)
		got := processor.Compare(old, next)
		stop := slices.ContainsFunc(got, func(d processor.Difference) bool { return d.Severity == processor.NeedsStop })
		refused := conflicts(t, old, next)
		if refused != stop {
			t.Fatalf("seed %d: refused %v, stop %v\n%v\n%v\n%v", seed, refused, stop, old, next, got)
		}
		if stop {
			stops++
		} else {
			rolls++
		}
	}
	if stops < 500 || rolls < 500 {
		t.Errorf("%d stops, %d rolling upgrades: too few to tell", stops, rolls)
	}
}
