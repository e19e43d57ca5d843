package processor_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

type purchase struct{ Amount int }

var purchases = reka.NewStream("purchases", codec.JSON[purchase]())

// poisoned is a topic with a blank line between two good records in partition
// 0, and ten good records in partition 1.
func poisoned(t *testing.T) *tester.Tester {
	tt := tester.New(t, tester.WithPartitions(2))
	tester.Input(tt, purchases)
	tester.Output(tt, echoes)
	tester.Output(tt, dead)
	good := kafka.Record{Key: []byte("k"), Value: []byte(`{"Amount":1}`), Timestamp: 7}
	blank := kafka.Record{Key: []byte("bad"), Value: []byte("\n"), Timestamp: 8, Headers: []kafka.Header{{Key: "h", Value: []byte("v")}}}
	tt.SendRaw("purchases", 0, good, blank, good)
	tt.SendRaw("purchases", 1, slices.Repeat([]kafka.Record{good}, 10)...)
	return tt
}

func takePurchases(more ...processor.Edge) func() []processor.Edge {
	return func() []processor.Edge {
		out := processor.Output(echoes)
		return append([]processor.Edge{out, processor.Input(purchases, func(ctx *processor.Context, o purchase) error {
			out.Emit(ctx, ctx.Key(), int64(o.Amount))
			return nil
		})}, more...)
	}
}

func TestUndecodableRecordBlocksItsOffsetUntilItIsDealtWith(t *testing.T) {
	tt := poisoned(t)
	app := run(tt, "app", takePurchases())
	var place *kafka.Error
	if err := app.Err(); !errors.As(err, &place) || place.Topic != "purchases" || place.Partition != 0 || place.Offset != 1 {
		t.Errorf("error %v does not name purchases/0@1", err)
	}
	equal(t, "committed offset", tt.Committed("g", "purchases", 0), 1)
	run(tt, "repaired", takePurchases(processor.OnError(processor.Decode, processor.SkipAndCount)))
	equal(t, "committed offset after the repair", tt.Committed("g", "purchases", 0), 3)
	equal(t, "echoes", tester.Output(tt, echoes).Len(), 12)
}

func TestUndecodableRecordIsPassedOverWithoutStoppingTheOthers(t *testing.T) {
	for name, policy := range map[string]processor.Policy{"skip": processor.SkipAndCount, "dead letters": processor.DeadLetters("dead")} {
		tt := poisoned(t)
		var p *processor.Processor
		tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
			p, err = build(i, takePurchases(processor.OnError(processor.Decode, policy))())
			return []reka.Runner{p}, err
		})
		equal(t, name+": echoes", tester.Output(tt, echoes).Len(), 12)
		equal(t, name+": committed offset", tt.Committed("g", "purchases", 0), 3)
		var skipped, deadLetters int64
		for _, part := range p.Stats().Partitions {
			skipped, deadLetters = skipped+part.Skipped, deadLetters+part.DeadLetters
		}
		equal(t, name+": counted", skipped+deadLetters, 1)
		r, ok := tester.Output(tt, dead).Next()
		if ok != (name == "dead letters") {
			t.Fatalf("%s: dead letter: %v", name, ok)
		}
		if !ok {
			continue
		}
		equal(t, "bytes", string(r.Value), "\n")
		for header, want := range map[string]string{"h": "v", "reka-topic": "purchases", "reka-partition": "0", "reka-offset": "1"} {
			got, _ := r.Header(header)
			equal(t, "header "+header, string(got), want)
		}
	}
}

// strict panics on nothing, and says what it was given.
type strict struct{}

func (strict) Append(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }

func (strict) Decode(b []byte) (string, error) {
	if b == nil {
		panic("a codec was given a null")
	}
	return fmt.Sprintf("%q", b), nil
}

func TestNullsNeverReachACodecAndEmptyValuesDo(t *testing.T) {
	for _, opts := range [][]processor.InputOption{nil, {processor.Nulls()}} {
		tt := tester.New(t, tester.WithPartitions(1))
		in := reka.NewStream("strict", strict{})
		tester.Input(tt, in)
		out := tester.Output(tt, answers)
		var p *processor.Processor
		tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
			out := processor.Output(answers)
			p, err = build(i, []processor.Edge{out, processor.Input(in, func(ctx *processor.Context, v string) error {
				out.Emit(ctx, ctx.Key(), fmt.Sprint(v, ctx.NullValue()))
				return nil
			}, opts...)})
			return []reka.Runner{p}, err
		})
		tt.SendRaw("strict", 0, del("k"), put("k", "x"), kafka.Record{Key: []byte("k"), Value: []byte{}, Timestamp: 1})
		want, nulls := []string{`"x"false`, `""false`}, int64(1)
		if opts != nil {
			want, nulls = append([]string{"true"}, want...), 0
		}
		if got := out.Values(); !slices.Equal(got, want) {
			t.Errorf("callback saw %q, want %q", got, want)
		}
		equal(t, "nulls counted", p.Stats().Partitions[0].NullValues, nulls)
		equal(t, "committed offset", tt.Committed("g", "strict", 0), 3)
	}
}

func TestFailedRecordStopsAllPartitions(t *testing.T) {
	for _, bad := range []int64{-1, -999} {
		tt := tester.New(t, tester.WithPartitions(3))
		tester.Output(tt, echoes)
		tester.Input(tt, numbers)
		app := run(tt, "app", adder())
		for p := range int32(3) {
			tt.SendRaw("numbers", p, kafka.Record{Key: fmt.Append(nil, p), Value: []byte("1"), Timestamp: 1})
		}
		equal(t, "echoes", tester.Output(tt, echoes).Len(), 3)
		tt.SendRaw("numbers", 1, slices.Insert(slices.Repeat([]kafka.Record{{Key: []byte("1"), Value: []byte("1"), Timestamp: 1}}, 9),
			2, kafka.Record{Key: []byte("1"), Value: fmt.Append(nil, bad), Timestamp: 1})...)
		var place *kafka.Error
		if err := app.Err(); !errors.As(err, &place) || place.Partition != 1 || place.Offset != 3 {
			t.Errorf("%d: error %v does not name numbers/1@3", bad, err)
		}
		equal(t, "committed offset", tt.Committed("g", "numbers", 1), 3)
		for _, p := range []int32{0, 2} {
			tt.SendRaw("numbers", p, kafka.Record{Key: fmt.Append(nil, p), Value: []byte("1"), Timestamp: 1})
		}
		equal(t, "echoes", tester.Output(tt, echoes).Len(), 5)
		got, _ := tester.Table(tt, sums).Get("1")
		equal(t, "table", got, 3)
	}
}
