package differential

import (
	"slices"
	"testing"
)

// wrong are ways to spoil the result at index i.
var wrong = map[string]func(all []Output, i int) []Output{
	"lost":      func(all []Output, i int) []Output { return slices.Delete(all, i, i+1) },
	"repeated":  func(all []Output, i int) []Output { return slices.Insert(all, i, all[i]) },
	"later":     func(all []Output, i int) []Output { all[i].Time++; return all },
	"other key": func(all []Output, i int) []Output { all[i].Key = "q" + all[i].Key; return all },
	"value":     func(all []Output, i int) []Output { all[i].Value += "!"; return all },
}

// Where nothing is late and no rule applies, rules must not excuse anything
// either.
func TestNoSpoiltResultIsExcused(t *testing.T) {
	t.Parallel()
	streams := Start(t)
	plain := map[Topology]bool{}
	for _, topology := range Topologies() {
		if topology.Get("versioned") != "" {
			continue // slow to start, and compared as without
		}
		for seed := uint64(3); seed <= 12 && !plain[topology]; seed += 3 {
			c := Generate(topology, seed, *recordsFlag)
			theirs, mine, diffs, err := Try(c, streams, modelRunner{})
			if err != nil {
				t.Fatal(err)
			}
			if len(diffs) > 0 {
				continue
			}
			plain[topology] = true
			if topology.Get("op") == "joincount" {
				continue // the times of its counts are free
			}
			for name, spoil := range wrong {
				for i := range mine {
					if len(Unexplained(Compare(c, theirs, spoil(slices.Clone(mine), i)))) == 0 {
						t.Errorf("%s is not seen: %v\n%s", name, mine[i], Report(c, theirs, mine, nil))
					}
				}
			}
		}
	}
	for _, topology := range Topologies() {
		if !plain[topology] && topology.Get("versioned") == "" {
			t.Logf("%s: no case without a difference", topology)
		}
	}
	if all := len(Topologies()); len(plain) < all*3/4 {
		t.Errorf("%d of %d topologies have a case without a difference, want three in four", len(plain), all)
	}
}
