package differential

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"
)

var (
	casesFlag   = flag.Int("differential.cases", 25, "cases a topology")
	recordsFlag = flag.Int("differential.records", 24, "records a case")
	seedFlag    = flag.Uint64("differential.seed", 1, "seed of the first case")
	onlyFlag    = flag.String("differential.only", "", "run topologies that contain this text only")
)

// check runs random cases of every topology through both sides. Of a topology
// with an unexplained difference it reports the first such case, shrunk. It
// returns how often each rule explained a difference.
func check(t *testing.T, streams *Streams, other Runner) map[string]int {
	t.Helper()
	used := map[string]int{}
	for _, topology := range Topologies() {
		if !strings.Contains(string(topology), *onlyFlag) {
			continue
		}
		t.Run(string(topology), func(t *testing.T) {
			for seed := *seedFlag; seed < *seedFlag+uint64(*casesFlag); seed++ {
				c := Generate(topology, seed, *recordsFlag)
				_, _, diffs, err := Try(c, streams, other)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for _, d := range diffs {
					used[d.Rule]++
				}
				if len(Unexplained(diffs)) > 0 {
					t.Fatalf("seed %d:\n%s", seed, shrunk(c, streams, other))
				}
			}
		})
	}
	return used
}

func shrunk(c Case, streams *Streams, other Runner) string {
	c = Shrink(c, func(c Case) bool {
		_, _, diffs, err := Try(c, streams, other)
		return err == nil && len(Unexplained(diffs)) > 0
	})
	theirs, mine, diffs, err := Try(c, streams, other)
	if err != nil {
		return err.Error()
	}
	return Report(c, theirs, mine, diffs)
}

// checkModel runs random cases through the model and another implementation of
// the same definitions, which must agree in everything. It needs no Java.
func checkModel(t *testing.T, other Runner) {
	t.Helper()
	for _, topology := range Topologies() {
		if !strings.Contains(string(topology), *onlyFlag) {
			continue
		}
		t.Run(string(topology), func(t *testing.T) {
			run := func(c Case) (want, got []Output, diffs []Difference) {
				want, err := modelRunner{}.Run(c)
				if err != nil {
					t.Fatal(err)
				}
				got, err = other.Run(c)
				if err != nil {
					t.Fatalf("%s: %v", c.Topology, err)
				}
				return want, got, Exact(c, want, got)
			}
			for seed := *seedFlag; seed < *seedFlag+uint64(*casesFlag); seed++ {
				c := Generate(topology, seed, *recordsFlag)
				if _, _, diffs := run(c); len(diffs) == 0 {
					continue
				}
				c = Shrink(c, func(c Case) bool {
					_, _, diffs := run(c)
					return len(diffs) > 0
				})
				want, got, diffs := run(c)
				t.Fatalf("seed %d (first the model's):\n%s", seed, Report(c, want, got, diffs))
			}
		})
	}
}

func TestModelIsDeterministic(t *testing.T) { checkModel(t, modelRunner{}) }

// The model is written from the definitions alone. That it agrees with Kafka
// Streams but for the rules proves the rules, the harness and the model, which
// is then a second oracle.
func TestModelAndKafkaStreamsDifferByTheRulesOnly(t *testing.T) {
	used := check(t, Start(t), modelRunner{})
	for _, rule := range slices.Sorted(maps.Keys(used)) {
		t.Logf("%6d × %s", used[rule], rule)
	}
}
