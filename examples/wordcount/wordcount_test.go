package main

import (
	"maps"
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
)

func TestWordsAreCountedOverAllTexts(t *testing.T) {
	tt := tester.New(t)
	lines := tester.Input(tt, Lines)
	tester.Input(tt, Words)
	tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) })

	lines.Send("genesis", "In the beginning was the deep, and the deep was dark.")
	lines.Send("john", "In the beginning was the Word!")
	lines.Send("empty", " ,.; ")

	want := map[string]int64{"in": 2, "the": 5, "beginning": 2, "was": 3, "deep": 2, "and": 1, "dark": 1, "word": 1}
	if got := tester.Table(tt, Counts).All(); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}
