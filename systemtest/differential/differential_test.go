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

// check runs random cases of every topology through Kafka Streams and other
// implementations, by name. Of a topology with an unexplained difference it
// reports the first such case, shrunk. It returns how often each rule explained
// a difference.
func check(t *testing.T, streams *Streams, others map[string]Runner) map[string]int {
	t.Helper()
	used := map[string]int{}
	for _, topology := range Topologies() {
		if !strings.Contains(string(topology), *onlyFlag) {
			continue
		}
		t.Run(string(topology), func(t *testing.T) {
			cases := generated(topology)
			theirs := make([][]Output, len(cases))
			for i, c := range cases {
				var err error
				if theirs[i], err = streams.Run(c.Disguised()); err != nil {
					t.Fatalf("seed %d: %v", *seedFlag+uint64(i), err)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(others)) {
				for i, mine := range runAll(t, cases, others[name]) {
					diffs := Compare(cases[i], cases[i].Undisguise(theirs[i]), mine)
					for _, d := range diffs {
						used[d.Rule]++
					}
					if len(Unexplained(diffs)) > 0 {
						t.Errorf("seed %d, the other is %s:\n%s", *seedFlag+uint64(i), name, shrunk(cases[i], streams, others[name]))
						break
					}
				}
			}
		})
	}
	return used
}

// generated returns the cases of a topology.
func generated(topology Topology) []Case {
	var cases []Case
	for seed := *seedFlag; seed < *seedFlag+uint64(*casesFlag); seed++ {
		cases = append(cases, Generate(topology, seed, *recordsFlag))
	}
	return cases
}

// atOnce is how many cases are run at once, where that is quicker.
const atOnce = 25

// runAll returns the results of all cases. If one fails it is reported, shrunk.
func runAll(t *testing.T, cases []Case, r Runner) [][]Output {
	t.Helper()
	if many, ok := r.(Many); ok {
		var all [][]Output
		for some := range slices.Chunk(cases, atOnce) {
			out, err := many.RunAll(some)
			if err != nil {
				break
			}
			all = append(all, out...)
		}
		if len(all) == len(cases) {
			return all
		}
	}
	all := make([][]Output, len(cases))
	for i, c := range cases {
		var err error
		if all[i], err = r.Run(c); err == nil {
			continue
		}
		c = Shrink(c, func(c Case) bool {
			_, err := r.Run(c)
			return err != nil
		})
		_, err = r.Run(c)
		t.Fatalf("seed %d: %v\n%s", *seedFlag+uint64(i), err, Report(c, nil, nil, nil))
	}
	return all
}

// shrunk reports a case that has an unexplained difference.
func shrunk(c Case, streams *Streams, other Runner) string {
	bad := func(c Case) bool {
		_, _, diffs, err := Try(c, streams, other)
		return err == nil && len(Unexplained(diffs)) > 0
	}
	text := ""
	if !bad(c) {
		text = "among other cases only; alone it is\n"
	}
	c = Shrink(c, bad)
	theirs, mine, diffs, err := Try(c, streams, other)
	if err != nil {
		return err.Error()
	}
	return text + Report(c, theirs, mine, diffs)
}

// checkModel runs random cases through the model and another implementation of
// the same definitions, which must agree in everything. It needs no Java.
func checkModel(t *testing.T, other Runner) {
	t.Helper()
	for _, topology := range append(Topologies(), chains()...) {
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
				return want, got, Exact(want, got)
			}
			cases := generated(topology)
			all := runAll(t, cases, other)
			for i, c := range cases {
				want, err := modelRunner{}.Run(c)
				if err != nil {
					t.Fatal(err)
				}
				if len(Exact(want, all[i])) == 0 {
					continue
				}
				bad := func(c Case) bool {
					_, _, diffs := run(c)
					return len(diffs) > 0
				}
				if !bad(c) {
					t.Fatalf("seed %d, among others only (first the model's):\n%s", *seedFlag+uint64(i), Report(c, want, all[i], Exact(want, all[i])))
				}
				c = Shrink(c, bad)
				want, got, diffs := run(c)
				t.Fatalf("seed %d (first the model's):\n%s", *seedFlag+uint64(i), Report(c, want, got, diffs))
			}
		})
	}
}

func TestModelIsDeterministic(t *testing.T) { checkModel(t, modelRunner{}) }

// The model is written from the definitions alone. That it agrees with Kafka
// Streams but for the rules proves the rules, the harness and the model, which
// is then a second oracle. That Reka does is what all this is for.
func TestDifferencesFromKafkaStreamsFollowTheRules(t *testing.T) { //nolint:tparallel // topologies follow each other, beside other tests
	t.Parallel()
	used := check(t, Start(t), map[string]Runner{"the model": modelRunner{}, "Reka": NewReka(t)})
	for _, rule := range slices.Sorted(maps.Keys(used)) {
		t.Logf("%6d × %s", used[rule], rule)
	}
}
