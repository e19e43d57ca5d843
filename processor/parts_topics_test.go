package processor_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

var (
	moreWords  = reka.NewStream("more-words", codec.String())
	everything = reka.NewStream("g-everything-repartition", codec.Int64())
)

// Internal topics have the counts of the parts that read them, whatever the
// broker's default (three here), and settings under which nothing is lost.
func TestInternalTopicsOfPartsHaveTheirCounts(t *testing.T) {
	for _, c := range []struct{ inputs, declared, want int32 }{{10, 4, 4}, {10, 0, 10}, {1, 7, 7}, {2, 0, 2}} {
		x := newParted(t, c.inputs, c.declared, processor.ExactlyOnce)
		x.start("p1")
		for _, topic := range []string{byWord.Name(), perWord.Name()} {
			equal(t, "partitions of "+topic, partitionsOf(t, x.tt, topic), c.want)
		}
		have := configs(t, x.tt, byWord.Name())
		for name, value := range map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"} {
			equal(t, name, have[name], value)
		}
		equal(t, "cleanup of the changelog", configs(t, x.tt, perWord.Name())["cleanup.policy"], "compact")
		x.send(30)
		x.check()
	}
}

// One input of ten partitions, a broker that gives three.
func TestInternalTopicsOfOnePartHaveItsCount(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(3))
	tt.CreateTopic(words.Name(), 10)
	run(tt, "app", looping)
	for _, topic := range []string{"g-table", "g-loop"} {
		equal(t, "partitions of "+topic, partitionsOf(t, tt, topic), 10)
	}
}

// A part that reads repartition topics only has as many partitions as the
// largest of those that feed it, through any number of parts.
func TestPartitionCountComesFromThoseWhoFeedAPart(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(3))
	tt.CreateTopic(words.Name(), 2)
	tt.CreateTopic(moreWords.Name(), 7)
	tester.Output(tt, counted)
	between := reading("between", byWord.Name(), everything)
	between.Graph.Inputs[0].Repartition = &graph.Repartition{From: []string{"two", "one"}}
	between.Inputs[0] = func(*processor.Context) error { return nil }
	last := counting("last", 0, "between")
	last.Graph.Inputs[0].Topic = everything.Name()
	startParts(tt, "app", []processor.Part{last, between, reading("one", words.Name(), byWord), reading("two", moreWords.Name(), byWord)})
	for _, topic := range []string{byWord.Name(), everything.Name(), perWord.Name()} {
		equal(t, "partitions of "+topic, partitionsOf(t, tt, topic), 7)
	}
}

// A repartition topic that is co-partitioned with an external input has its
// count.
func TestRepartitionTopicTakesTheCountOfTheInputBesideIt(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(3))
	tt.CreateTopic(words.Name(), 2)
	tt.CreateTopic(numbers.Name(), 5)
	tester.Output(tt, counted)
	startParts(tt, "app", beside(0))
	for _, topic := range []string{byWord.Name(), perWord.Name()} {
		equal(t, "partitions of "+topic, partitionsOf(t, tt, topic), 5)
	}
}

// beside is rekeying whose second part reads an external input, too.
func beside(declared int32) []processor.Part {
	parts := rekeying(declared)
	parts[1].Graph.Inputs = append([]graph.Input{{Topic: numbers.Name()}}, parts[1].Graph.Inputs...)
	parts[1].Inputs = append([]func(*processor.Context) error{func(*processor.Context) error { return nil }}, parts[1].Inputs...)
	return parts
}

func TestCountsOfPartsThatDoNotFitAreRefused(t *testing.T) {
	cycle := []processor.Part{reading("one", byWord.Name(), everything), reading("two", everything.Name(), byWord)}
	cycle[0].Graph.Inputs[0].Repartition = &graph.Repartition{From: []string{"two"}}
	cycle[1].Graph.Inputs[0].Repartition = &graph.Repartition{From: []string{"one"}}
	uneven := rekeying(0)
	uneven[0].Graph.Joins = []graph.Join{{Topic: "more-words"}}
	for says, c := range map[string]struct {
		parts  []processor.Part
		counts bool
	}{
		"group g: topics must have equal partition counts: numbers has 5, g-by-word-repartition has 6": {beside(6), true},
		"group g: topics must have equal partition counts: words has 2, more-words has 4":              {uneven, true},
		"subgraphs one, two feed each other through repartition topics":                                {cycle, false},
	} {
		tt := tester.New(t, tester.WithPartitions(3))
		tt.CreateTopic(words.Name(), 2)
		tt.CreateTopic(moreWords.Name(), 4)
		tt.CreateTopic(numbers.Name(), 5)
		tester.Output(tt, counted)
		err := startParts(tt, "app", c.parts).Err()
		var counts *processor.PartitionCountError
		if err == nil || !strings.Contains(err.Error(), says) || errors.As(err, &counts) != c.counts {
			t.Errorf("error %v, want %q", err, says)
		}
		equal(t, "topics created", tt.Calls()[tester.OpCreateTopics], 0)
	}
}

// A part grows with its own inputs. Those it feeds keep the counts that their
// topics have, now and after a restart.
func TestInputOfOnePartGrows(t *testing.T) {
	x := newParted(t, 2, 0, processor.ExactlyOnce)
	n := x.start("p1")
	x.send(30)
	x.check()
	grow(t, x.tt, words.Name(), 5)
	x.tt.Advance(look)
	x.send(30)
	x.check()
	equal(t, "tasks", strings.Join(n.tasks(), " "), "read/0 read/1 read/2 read/3 read/4 count/0 count/1")
	n.Restart()
	x.send(30)
	x.check()
	equal(t, "tasks after a restart", strings.Join(n.tasks(), " "), "read/0 read/1 read/2 read/3 read/4 count/0 count/1")
}

// Partitions that are added to an input beside a repartition topic end the
// group, for that cannot have more.
func TestInputBesideARepartitionTopicGrows(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(3))
	tester.Input(tt, words)
	tester.Input(tt, numbers)
	tester.Output(tt, counted)
	app := startParts(tt, "app", beside(0))
	grow(t, tt, words.Name(), 4)
	tt.Advance(look)
	equal(t, "error after the other part's input grew", fmt.Sprint(app.Err()), "<nil>")
	grow(t, tt, numbers.Name(), 4)
	tt.Advance(look)
	var counts *processor.PartitionCountError
	if err := app.Err(); !errors.As(err, &counts) || !strings.Contains(err.Error(), "numbers has 4, g-per-word-changelog has 3, g-by-word-repartition has 3") {
		t.Errorf("error %v", err)
	}
}

// Retention must not delete what is not read yet.
func TestRepartitionTopicOfOtherSettingsIsRefused(t *testing.T) {
	x := newParted(t, 2, 2, processor.ExactlyOnce)
	x.tt.CreateTopic(byWord.Name(), 2, "retention.ms", "1000", "retention.bytes", "-1", "cleanup.policy", "delete")
	n := x.start("p1")
	x.tt.Advance(time.Second)
	if err := n.Err(); err == nil || !strings.Contains(err.Error(), "g-by-word-repartition: retention.ms is 1000, want -1") {
		t.Errorf("error %v", err)
	}
}

// A table that several parts look up is copied once.
func TestTableThatTwoPartsLookUpIsCopiedOnce(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	in, users := tester.Input(tt, words), tester.Input(tt, names)
	tester.Output(tt, counted)
	users.Send("k", "x")
	var opened atomic.Int64
	tt.Hook(func(c tester.Call) tester.Action {
		if c.Op == tester.OpOpenTable && strings.Contains(c.Topic, "lookup:names") {
			opened.Add(1)
		}
		return tester.Proceed
	})
	parts := rekeying(0)
	for i := range parts {
		lookup := processor.Lookup(names)
		was := parts[i].Inputs[0]
		parts[i].Edges = append(parts[i].Edges, lookup)
		parts[i].Inputs[0] = func(ctx *processor.Context) error {
			if v, _ := lookup.Get(ctx, "k"); v != "x" {
				return fmt.Errorf("found %q", v)
			}
			return was(ctx)
		}
	}
	startParts(tt, "app", parts)
	in.Send("k", "w")
	tt.Advance(time.Second)
	equal(t, "count", tester.Table(tt, perWord).All()["w"], 1)
	equal(t, "partitions of copies", opened.Load(), 2)
}
