package processor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

var (
	numbers = reka.NewStream("numbers", codec.Int64Text())
	sums    = reka.GroupTable("g", codec.Int64())
	echoes  = reka.NewStream("echoes", codec.Int64())
	dead    = reka.NewStream("dead", codec.Bytes())
)

var errBad = errors.New("a bad number")

// adder sums numbers per key, echoes them, and refuses negative ones after
// it has touched state and output.
func adder(more ...processor.Edge) func() []processor.Edge {
	return func() []processor.Edge {
		sum, out := processor.Persist(sums), processor.Output(echoes)
		return append([]processor.Edge{sum, out, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
			v, _ := sum.Get(ctx)
			sum.Set(ctx, v+n)
			out.Emit(ctx, ctx.Key(), n)
			switch {
			case n == -999:
				panic("a very bad number")
			case n < 0:
				return errBad
			}
			return nil
		})}, more...)
	}
}

func policyWorld(t *testing.T) *tester.Tester {
	tt := tester.New(t, tester.WithPartitions(1))
	tester.Output(tt, echoes)
	tester.Output(tt, dead)
	tester.Input(tt, numbers)
	return tt
}

func TestFailedRecordStopsProcessorAndStaysUncommitted(t *testing.T) {
	for _, bad := range []int64{-1, -999} {
		tt := policyWorld(t)
		in := tester.Input(tt, numbers)
		app := run(tt, "app", adder())
		in.Send("a", 1)
		in.Send("a", 2)
		in.Send("a", bad)
		in.Send("a", 4)
		err := app.Err()
		var place *kafka.Error
		if !errors.As(err, &place) || place.Topic != "numbers" || place.Offset != 2 || string(place.Key) != "a" {
			t.Errorf("%d: error %v does not name numbers/0@2 key a", bad, err)
		}
		if bad == -1 && !errors.Is(err, errBad) {
			t.Errorf("error %v is not the callback's", err)
		}
		var p *processor.PanicError
		if bad == -999 && (!errors.As(err, &p) || !strings.Contains(string(p.Stack), "policy_test.go")) {
			t.Errorf("error %v is not the panic with its stack", err)
		}
		equal(t, "committed offset", tt.Committed("g", "numbers", 0), 2)
		got, _ := tester.Table(tt, sums).Get("a")
		equal(t, "table", got, 3)
		equal(t, "outputs", tester.Output(tt, echoes).Len(), 2)
	}
}

func TestUndecodableRecordFailsWithItsPlace(t *testing.T) {
	tt := policyWorld(t)
	tester.Input(tt, numbers).Send("a", 1)
	tt.SendRaw("numbers", 0, kafka.Record{Key: []byte("a"), Value: []byte("x"), Timestamp: 1})
	app := run(tt, "app", adder())
	tt.Settle()
	var place *kafka.Error
	if err := app.Err(); !errors.As(err, &place) || place.Offset != 1 || !strings.Contains(err.Error(), "decode") {
		t.Errorf("error %v does not name the decode of numbers/0@1", err)
	}
	equal(t, "committed offset", tt.Committed("g", "numbers", 0), 1)
}

func TestSkippedRecordLeavesNoTrace(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	run(tt, "app", adder(processor.OnError(processor.Process, processor.SkipAndCount)))
	for _, n := range []int64{1, -1, -999, 4} {
		in.Send("a", n)
	}
	got, _ := tester.Table(tt, sums).Get("a")
	equal(t, "table", got, 5)
	equal(t, "outputs", tester.Output(tt, echoes).Len(), 2)
	equal(t, "committed offset", tt.Committed("g", "numbers", 0), 4)
}

func TestDeadLetterHoldsRecordAsItWasAndItsOrigin(t *testing.T) {
	tt := policyWorld(t)
	run(tt, "app", adder(processor.OnError(processor.Decode, processor.DeadLetters("dead"))))
	tt.SendRaw("numbers", 0, kafka.Record{Key: []byte("k"), Value: []byte{0xff}, Timestamp: 77,
		Headers: []kafka.Header{{Key: "h", Value: []byte("v")}}})
	tester.Input(tt, numbers).Send("a", 1)
	r, ok := tester.Output(tt, dead).Next()
	if !ok {
		t.Fatal("no dead letter")
	}
	equal(t, "key", r.Key, "k")
	equal(t, "value", string(r.Value), "\xff")
	for name, want := range map[string]string{"h": "v", "reka-topic": "numbers", "reka-partition": "0", "reka-offset": "0", "reka-phase": "decode"} {
		got, _ := r.Header(name)
		equal(t, "header "+name, string(got), want)
	}
	equal(t, "time", r.Time.UnixMilli(), 77)
	equal(t, "committed offset", tt.Committed("g", "numbers", 0), 2)
}

func TestRetryWaitsThenGivesTheRecordUp(t *testing.T) {
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	run(tt, "app", adder(processor.OnError(processor.Process, processor.Retry(2, time.Second, processor.SkipAndCount))))
	in.Send("a", -1)
	in.Send("a", 5)
	tt.Settle()
	equal(t, "outputs while the record waits", tester.Output(tt, echoes).Len(), 0)
	tt.Advance(time.Second)
	equal(t, "outputs after one try", tester.Output(tt, echoes).Len(), 0)
	tt.Advance(2 * time.Second)
	equal(t, "outputs after two tries", tester.Output(tt, echoes).Len(), 1)
	got, _ := tester.Table(tt, sums).Get("a")
	equal(t, "table", got, 5)
}

func TestCallbackSteersByItsError(t *testing.T) {
	steer := map[int64]func(error) error{1: processor.AsSkip, 2: processor.AsDeadLetter, 3: processor.AsRetry, 4: processor.AsFatal}
	tries := map[int64]int{}
	tt := policyWorld(t)
	in := tester.Input(tt, numbers)
	app := run(tt, "app", func() []processor.Edge {
		return []processor.Edge{
			processor.OnError(processor.Decode, processor.DeadLetters("dead")),
			processor.Input(numbers, func(_ *processor.Context, n int64) error {
				if tries[n]++; tries[n] > 1 {
					return nil
				}
				return steer[n](errBad)
			}),
		}
	})
	for n := range int64(4) {
		in.Send("a", n+1)
		tt.Settle()
		tt.Advance(time.Second)
	}
	equal(t, "tries of the retried record", tries[3], 2)
	equal(t, "dead letters", tester.Output(tt, dead).Len(), 1)
	if err := app.Err(); !errors.Is(err, errBad) {
		t.Errorf("error %v, want the fatal one", err)
	}
	equal(t, "committed offset", tt.Committed("g", "numbers", 0), 3)
}
