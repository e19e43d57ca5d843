package processor_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
)

// Java places user-1 in partition 8 of 10; FNV-1a would in 6.
const (
	javaKey  = "user-1"
	javaPart = int32(8)
)

func sendToJavaPart(tt *tester.Tester, topic, value string) {
	tt.SendRaw(topic, javaPart, kafka.Record{Key: []byte(javaKey), Value: []byte(value), Timestamp: 1})
}

// warnings returns a logger and what it is told with the level of a warning.
func warnings() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zap.WarnLevel)
	return zap.New(core), logs
}

func TestRowsThatJavaPlacedAreFoundByJoinAndLookup(t *testing.T) {
	for _, place := range []kafka.Partitioner{kafka.Murmur2(), kafka.FNV1a()} {
		log, logs := warnings()
		tt := tester.New(t, tester.WithPartitions(10), tester.WithPartitioner(place), tester.WithLogger(log))
		out := tester.Output(tt, answers)
		tester.Input(tt, words)
		tt.CreateTopic("names", 10, "cleanup.policy", "compact")
		tt.CreateTopic("facts", 10, "cleanup.policy", "compact")
		sendToJavaPart(tt, "names", "joined")
		sendToJavaPart(tt, "facts", "found")
		sendToJavaPart(tt, "words", "")
		run(tt, "app", func() []processor.Edge {
			j, out := processor.Join(names), processor.Output(answers)
			l := processor.Lookup(reka.NewTable("facts", words.Codec()))
			return []processor.Edge{j, l, out, processor.Input(words, func(ctx *processor.Context, _ string) error {
				a, _ := j.Get(ctx)
				b, _ := l.Get(ctx, javaKey)
				out.Emit(ctx, ctx.Key(), a+" "+b)
				return nil
			})}
		})
		if got := out.Values(); !slices.Equal(got, []string{"joined found"}) {
			t.Errorf("%v: answers %q", place, got)
		}
		if warned := logs.Len() > 0; warned != (place == kafka.FNV1a()) {
			t.Errorf("%v: warnings %v", place, logs.All())
		}
	}
}

// Rows live where their inputs are, whatever the partitioner says, and views
// find them there. That the partitioner would place them elsewhere is told
// once.
func TestRowsStayInTheirInputsPartitionAndViewsFindThem(t *testing.T) {
	for _, place := range []kafka.Partitioner{kafka.Murmur2(), kafka.FNV1a()} {
		log, logs := warnings()
		tt := tester.New(t, tester.WithPartitions(10), tester.WithPartitioner(place), tester.WithLogger(log))
		tester.Input(tt, words)
		out := tester.Output(tt, answers)
		var v *view.View[string]
		tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
			st, o := processor.Persist(table), processor.Output(answers)
			p, err := build(i, []processor.Edge{st, o, processor.Input(words, func(ctx *processor.Context, w string) error {
				was, _ := st.Get(ctx)
				st.Set(ctx, was+w)
				o.Emit(ctx, ctx.Key(), was+w)
				return nil
			})})
			var err2 error
			v, err2 = view.New(i.Client(), table, view.WithStorage(i.Storage()))
			return []reka.Runner{p, v}, errors.Join(err, err2)
		})
		for range 3 {
			sendToJavaPart(tt, "words", "+")
		}
		if got := out.Values(); !slices.Equal(got, []string{"+", "++", "+++"}) {
			t.Errorf("%v: callbacks saw %q", place, got)
		}
		equal(t, "changelog records in the input's partition", len(tt.Raw("g-table", javaPart)) > 0, true)
		tt.Advance(time.Minute) // the view came before the table
		if got, ok, err := v.Get(javaKey); got != "+++" || !ok || err != nil {
			t.Errorf("%v: the view has %q, %v, %v", place, got, ok, err)
		}
		want := 0
		if place == kafka.FNV1a() {
			want = 1
		}
		equal(t, "warnings of the processor", logs.FilterMessageSnippet("input").Len(), want)
	}
}

func TestLookupOfOnePartitionAnswersInEveryPartitionOfTheInput(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(10))
	tester.Input(tt, words)
	out := tester.Output(tt, answers)
	tt.CreateTopic("names", 10)
	tt.CreateTopic("facts", 1)
	tt.SendRaw("facts", 0, put("x", "found"))
	for p := range int32(10) {
		tt.SendRaw("names", p, put(fmt.Sprint(p), "joined"))
		tt.SendRaw("words", p, put(fmt.Sprint(p), ""))
	}
	run(tt, "app", func() []processor.Edge {
		j, l, out := processor.Join(names), processor.Lookup(reka.NewTable("facts", words.Codec())), processor.Output(answers)
		return []processor.Edge{j, l, out, processor.Input(words, func(ctx *processor.Context, _ string) error {
			a, _ := j.Get(ctx)
			b, _ := l.Get(ctx, "x")
			out.Emit(ctx, ctx.Key(), a+" "+b)
			return nil
		})}
	})
	if got, want := out.Values(), slices.Repeat([]string{"joined found"}, 10); !slices.Equal(got, want) {
		t.Errorf("answers %q", got)
	}
}

func TestTableTopicOfOthersThatIsNotCompactedIsWarnedOf(t *testing.T) {
	for policy, want := range map[string]int{"delete": 1, "compact": 0, "compact,delete": 0} {
		log, logs := warnings()
		tt := tester.New(t, tester.WithPartitions(1), tester.WithLogger(log))
		tester.Input(tt, words)
		tt.CreateTopic("names", 1, "cleanup.policy", policy)
		run(tt, "app", func() []processor.Edge {
			return []processor.Edge{processor.Join(names), processor.Input(words, func(*processor.Context, string) error { return nil })}
		})
		tt.Settle()
		if n := logs.FilterMessageSnippet("is not compacted").Len(); n != want {
			t.Errorf("%s: %d warnings, want %d", policy, n, want)
		}
	}
}
