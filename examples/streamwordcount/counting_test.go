package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
)

func app(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) }

func TestWordsAreCountedOverAllTexts(t *testing.T) {
	tt := tester.New(t)
	lines, counts := tester.Input(tt, Lines), tester.Table(tt, Counts)
	tt.Start("app", app)

	lines.Send("genesis", "In the beginning was the deep, and the deep was dark.")
	lines.Send("john", "In the beginning was the Word!")
	lines.Send("empty", " ,.; ")

	want := map[string]int64{"in": 2, "the": 5, "beginning": 2, "was": 3, "deep": 2, "and": 1, "dark": 1, "word": 1}
	if got := counts.All(); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}

func TestEveryCountIsWrittenOnceThroughCrashesAndMoves(t *testing.T) {
	tt := tester.New(t)
	lines, counts := tester.Input(tt, Lines), tester.Output(tt, Counts)
	one := tt.Start("one", app)
	lines.Send("a", "to be or not to be")
	tt.Settle()
	one.Crash()
	lines.Send("b", "be")
	tt.Start("two", app) // an empty disk
	tt.Advance(time.Minute)
	one.Restart()
	lines.Send("c", "Not to be")
	tt.Advance(time.Minute)

	got := map[string][]int64{}
	for _, r := range counts.All() {
		got[r.Key] = append(got[r.Key], r.Value)
	}
	want := map[string][]int64{"to": {1, 2, 3}, "be": {1, 2, 3, 4}, "or": {1}, "not": {1, 2}}
	if !maps.EqualFunc(got, want, slices.Equal[[]int64]) {
		t.Errorf("counts %v, want %v", got, want)
	}
}
