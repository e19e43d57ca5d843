package differential

import (
	"slices"
	"strings"
	"testing"
)

func TestRekaAndTheModelAgree(t *testing.T) { //nolint:tparallel // topologies follow each other, beside other tests
	t.Parallel()
	checkModel(t, NewReka(t))
}

// What a process keeps, it keeps over its end: no result is lost or repeated,
// and none differs.
func TestRekaAndTheModelAgreeWhateverHappensToTheProcess(t *testing.T) { //nolint:tparallel // topologies follow each other, beside other tests
	t.Parallel()
	r := NewReka(t)
	r.Trouble = *seedFlag
	checkModel(t, r)
	if r.ends.Load() == 0 {
		t.Error("no process ended on the way")
	}
	t.Logf("%d processes ended on the way", r.ends.Load())
}

// The record that flushes lies far ahead of all others: after it stores have
// what they would have had it come alone.
func TestRekaKeepsNothingOfWhatIsOver(t *testing.T) { //nolint:tparallel // topologies follow each other, beside other tests
	t.Parallel()
	for _, topology := range append(Topologies(), chains()...) {
		if topology.Get("window") == "" && !topology.streamJoin() || !strings.Contains(string(topology), *onlyFlag) {
			continue
		}
		t.Run(string(topology), func(t *testing.T) {
			cases := generated(topology)
			flush := cases[0].Inputs[len(cases[0].Inputs)-1:]
			acts, err := NewReka(t).perform(append(cases[:min(len(cases), atOnce)], Case{topology, flush}))
			if err != nil {
				t.Fatal(err)
			}
			alone := acts[len(acts)-1].kept
			if len(alone) == 0 {
				t.Fatal("nothing is kept of the last record")
			}
			for i, a := range acts {
				if !slices.Equal(a.kept, alone) {
					t.Fatalf("seed %d: kept are\n%s\nwant\n%s", *seedFlag+uint64(i), strings.Join(a.kept, "\n"), strings.Join(alone, "\n"))
				}
			}
		})
	}
}
