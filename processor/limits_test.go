package processor_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// Around the limit of a topic no size passes the check of Set or Emit and is
// then refused by the broker, which would end the processor.
func TestRecordsAroundTheLimitFailAloneOrNotAtAll(t *testing.T) {
	const limit = 2000
	tt := tester.New(t, tester.WithPartitions(1))
	tt.CreateTopic("answers", 1, "max.message.bytes", fmt.Sprint(limit))
	tt.CreateTopic("g-table", 1, "max.message.bytes", fmt.Sprint(limit), "cleanup.policy", "compact")
	in := tester.Input(tt, words)
	var p *processor.Processor
	app := tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		st, out := processor.Persist(table), processor.Output(answers)
		p, err = build(i, []processor.Edge{st, out, processor.OnError(processor.Process, processor.SkipAndCount),
			processor.Input(words, func(ctx *processor.Context, w string) error {
				if ctx.Key()[0] == 's' {
					st.Set(ctx, w)
				} else {
					out.Emit(ctx, ctx.Key(), w)
				}
				return nil
			})})
		return []reka.Runner{p}, err
	})
	for n := limit - 200; n < limit+50; n++ {
		in.Send(fmt.Sprint("s", n), strings.Repeat("x", n))
		in.Send(fmt.Sprint("e", n), strings.Repeat("x", n))
	}
	tt.Settle()
	if err := app.Err(); err != nil {
		t.Fatalf("it ended: %v", err)
	}
	equal(t, "committed", tt.Committed("g", "words", 0), 500)
	rows, outputs := len(tester.Table(tt, table).All()), tester.Output(tt, answers).Len()
	if rows < 90 || rows > 150 || outputs < 90 || outputs > 150 {
		t.Errorf("%d rows and %d outputs passed", rows, outputs)
	}
	equal(t, "skipped", p.Stats().Partitions[0].Skipped, int64(500-rows-outputs))
}

func TestErrorOfAnOversizedEmitKeepsItsKey(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	tt.CreateTopic("answers", 1, "max.message.bytes", "1000")
	in := tester.Input(tt, words)
	app := run(tt, "app", func() []processor.Edge {
		out := processor.Output(answers)
		return []processor.Edge{out, processor.Input(words, func(ctx *processor.Context, w string) error {
			out.Emit(ctx, "the large one", strings.Repeat("x", 2000))
			out.Emit(ctx, "another one..", w)
			return nil
		})}
	})
	in.Send("a", "1")
	err := app.Err()
	if !errors.Is(err, kafka.ErrTooLarge) || !strings.Contains(err.Error(), "the large one") || !strings.Contains(err.Error(), "words/0") {
		t.Errorf("%v", err)
	}
}

func TestKeysOfAnyBytesAreKept(t *testing.T) {
	onBothStores(t, func(t *testing.T, store func(*tester.Instance) processor.Option) {
		tt := tester.New(t, tester.WithPartitions(1))
		in := tester.Input(tt, words)
		var r rows
		app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return r.build(i, store(i)) })
		want := map[string]string{"": "empty", "\x00": "zero", strings.Repeat("k", 70_000): "long", "\xff\xfe": "not text"}
		for k, v := range want {
			in.Send(k, v)
		}
		r.want(t, tt, want)
		app.Crash()
		app.Restart()
		r.want(t, tt, want)
		if err := app.Stop(); err != nil {
			t.Fatal(err)
		}
		app.Restart() // from the store
		r.want(t, tt, want)
	})
}

// The offset that the group has committed is not in the log any more.
func TestCommittedOffsetOutsideTheLogIsATypedError(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	app := run(tt, "app", adder())
	in.Send("a", 1)
	tt.Settle()
	app.Crash()
	for range 5 {
		in.Send("a", 1)
	}
	tt.DeleteRecords("numbers", 0, 4)
	app.Restart()
	err := app.Err()
	var out *kafka.OffsetOutOfRangeError
	if !errors.As(err, &out) || out.Position != 1 || out.LogStart != 4 || out.HighWatermark != 6 {
		t.Errorf("%v", err)
	}
	equal(t, "committed", tt.Committed("g", "numbers", 0), 1)
}

func TestStoredValueThatIsUndecodableNamesTableAndKey(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	tester.Output(tt, echoes)
	changelog(tt, put("a", "not eight bytes"))
	in := tester.Input(tt, numbers)
	app := run(tt, "app", adder(), anyway)
	in.Send("a", 1)
	err := app.Err()
	var place *kafka.Error
	if !errors.As(err, &place) || !strings.Contains(err.Error(), "g-table") || !strings.Contains(err.Error(), "numbers/0@0") || string(place.Key) != "a" {
		t.Errorf("%v", err)
	}
}

func TestLostOffsetsFollowTheirPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		lost processor.LostOffsets
		want int64
		err  error
	}{
		"fail":     {processor.FailOnLostOffsets, 7, processor.ErrOffsetsLost},
		"earliest": {processor.RestartEarliest, 10, nil},
		"latest":   {processor.RestartLatest, 8, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tt := policyWorld(t)
			in := tester.Input(tt, numbers)
			changelog(tt, kafka.Record{Key: []byte("a"), Value: []byte{0, 0, 0, 0, 0, 0, 0, 7}, Timestamp: 1})
			in.Send("a", 1)
			in.Send("a", 1)
			app := run(tt, "app", adder(), processor.WithLostOffsets(test.lost))
			in.Send("a", 1)
			tt.Settle()
			if err := app.Err(); !errors.Is(err, test.err) || test.err != nil && !strings.Contains(err.Error(), "g-table/0@1") {
				t.Errorf("%v, want %v", err, test.err)
			}
			got, _ := tester.Table(tt, sums).Get("a")
			equal(t, "row", got, test.want)
		})
	}
}

// A broken record may carry a time far in the future: it does not advance the
// task's.
func TestUndecodableRecordDoesNotAdvanceStreamTime(t *testing.T) {
	tt := policyWorld(t)
	var p *processor.Processor
	tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		p, err = build(i, adder(processor.OnError(processor.Decode, processor.SkipAndCount))())
		return []reka.Runner{p}, err
	})
	tt.SendRaw("numbers", 0, kafka.Record{Key: []byte("a"), Value: []byte("1"), Timestamp: 1000},
		kafka.Record{Key: []byte("a"), Value: []byte("broken"), Timestamp: math.MaxInt64 / 2})
	equal(t, "committed", tt.Committed("g", "numbers", 0), 2)
	equal(t, "stream time", p.Stats().Partitions[0].StreamTime.UnixMilli(), 1000)
}

func TestLogAppendTimeIsTheContextsTime(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	tt.CreateTopic("words", 1, "message.timestamp.type", "LogAppendTime")
	out := tester.Output(tt, answers)
	run(tt, "app", func() []processor.Edge {
		o := processor.Output(answers)
		return []processor.Edge{o, processor.Input(words, func(ctx *processor.Context, _ string) error {
			o.Emit(ctx, "k", ctx.Time().UTC().Format(time.RFC3339))
			return nil
		})}
	})
	tt.SendRaw("words", 0, kafka.Record{Key: []byte("k"), Value: []byte("x"), Timestamp: 5})
	equal(t, "time", fmt.Sprint(out.Values()), "[2024-01-01T00:00:00Z]")
}

func TestEmitToAPartition(t *testing.T) {
	for to, want := range map[int32]string{0: "", 1: "", 2: "answers/2", -7: "partition -7"} {
		tt := tester.New(t, tester.WithPartitions(1))
		tt.CreateTopic("answers", 2)
		in := tester.Input(tt, words)
		app := run(tt, "app", func() []processor.Edge {
			o := processor.Output(answers)
			return []processor.Edge{o, processor.Input(words, func(ctx *processor.Context, w string) error {
				o.Emit(ctx, "k", w, reka.ToPartition(to))
				return nil
			})}
		})
		in.Send("a", "x")
		err := app.Err()
		if want == "" && (err != nil || len(tt.Raw("answers", to)) != 1) {
			t.Errorf("to %d: %v, %d records there", to, err, len(tt.Raw("answers", to)))
		}
		if want != "" && (!errors.Is(err, kafka.ErrUnknownTopic) || !strings.Contains(err.Error(), want)) {
			t.Errorf("to %d: %v", to, err)
		}
	}
}

// An output topic is deleted while the processor runs.
func TestRefusedOutputNamesItsInputOrGoesToTheDeadLetters(t *testing.T) {
	for _, letters := range []bool{false, true} {
		tt := policyWorld(t)
		in := tester.Input(tt, numbers)
		var edges []processor.Edge
		if letters {
			edges = append(edges, processor.OnError(processor.Produce, processor.DeadLetters("dead")))
		}
		app := run(tt, "app", adder(edges...))
		in.Send("a", 1)
		tt.Settle()
		tt.DeleteTopic("echoes")
		in.Send("a", 2)
		in.Send("b", 3)
		err := app.Err()
		if letters {
			if err != nil {
				t.Errorf("%v", err)
			}
			equal(t, "dead letters", tester.Output(tt, dead).Len(), 2)
			equal(t, "committed", tt.Committed("g", "numbers", 0), 3)
			continue
		}
		if !errors.Is(err, kafka.ErrUnknownTopic) || !strings.Contains(err.Error(), "echoes/0") || !strings.Contains(err.Error(), "numbers/0@1") {
			t.Errorf("%v", err)
		}
		equal(t, "committed", tt.Committed("g", "numbers", 0), 1)
	}
}

func TestTwoGraphsUnderOneGroupNameAreRefusedLoudly(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	tester.Input(tt, words)
	tester.Input(tt, numbers)
	one := run(tt, "one", func() []processor.Edge {
		return []processor.Edge{processor.Input(words, func(*processor.Context, string) error { return nil })}
	})
	two := run(tt, "two", func() []processor.Edge {
		return []processor.Edge{processor.Input(numbers, func(*processor.Context, int64) error { return nil })}
	})
	tt.Advance(time.Minute)
	errs := errors.Join(one.Err(), two.Err())
	if errs == nil || !strings.Contains(errs.Error(), "refused") {
		t.Errorf("%v", errs)
	}
}

func TestNullsAndNullKeysReachOnlyWhoAsksForThem(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	tester.Input(tt, words)
	out := tester.Output(tt, answers)
	tt.SendRaw("words", 0, kafka.Record{Key: []byte("k")}, kafka.Record{Value: []byte("v")}, kafka.Record{},
		kafka.Record{Key: []byte{}, Value: []byte{}})
	for _, test := range []struct {
		group string
		opts  []processor.InputOption
		want  string
	}{
		{"none", nil, `[false/false/""]`},
		{"values", []processor.InputOption{processor.Nulls()}, `[false/true/"" false/false/""]`},
		{"keys", []processor.InputOption{processor.NullKeys()}, `[true/false/"v" false/false/""]`},
		{"both", []processor.InputOption{processor.Nulls(), processor.NullKeys()}, `[false/true/"" true/false/"v" true/true/"" false/false/""]`},
	} {
		before := out.Len()
		tt.Start(test.group, func(i *tester.Instance) ([]reka.Runner, error) {
			o := processor.Output(answers)
			g, err := processor.NewGraph(test.group, o, processor.Input(words, func(ctx *processor.Context, w string) error {
				o.Emit(ctx, "k", fmt.Sprintf("%t/%t/%q", ctx.NullKey(), ctx.NullValue(), w))
				return nil
			}, test.opts...))
			if err != nil {
				return nil, err
			}
			p, err := processor.New(i.Client(), g)
			return []reka.Runner{p}, err
		})
		equal(t, test.group, fmt.Sprint(out.Values()[before:]), test.want)
		equal(t, test.group+": committed", tt.Committed(test.group, "words", 0), 4)
	}
}
