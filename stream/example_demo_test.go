package stream_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/window"
)

// The topics of the examples.
var (
	Clicks    = reka.NewStream("clicks", codec.String())      // user: page
	Purchases = reka.NewStream("purchases", codec.String())   // user: product
	Payments  = reka.NewStream("payments", codec.Int64Text()) // user: amount
	Users     = reka.NewTable("users", codec.String())        // user: country
	Limits    = reka.NewTable("limits", codec.Int64Text())    // user: amount
	Capitals  = reka.NewTable("capitals", codec.String())     // country: city

	Out  = reka.NewStream("out", codec.String())
	Sums = reka.NewStream("sums", codec.Int64Text())
	Rest = reka.NewStream("rest", codec.String())
	Late = reka.NewStream("late", codec.String())

	PerMinute = reka.NewWindowTable("per-minute", window.Tumbling(time.Minute, 10*time.Second), codec.Int64Text())
	PerTwo    = reka.NewWindowTable("per-two-minutes", window.Tumbling(2*time.Minute, window.NoGrace), codec.Int64Text())
	Moving    = reka.NewWindowTable("moving", window.Hopping(time.Minute, 30*time.Second, window.NoGrace), codec.Int64Text())
	Around    = reka.NewWindowTable("around", window.Sliding(10*time.Second, window.NoGrace), codec.Int64Text())
	Visits    = reka.NewWindowTable("visits", window.Session(30*time.Second, 30*time.Second), codec.Int64Text())
)

// shownWindows are the topics whose records are results of windows.
var shownWindows = []reka.WindowTable[int64]{PerMinute, PerTwo, Moving, Around, Visits}

// texts is the codec of results that are texts.
func texts() stream.Option { return stream.WithCodec(codec.String()) }

// demo runs what build declares, on the tester: in one partition, on a clock
// that begins at 0. It sends records, each written as "topic key:value@second",
// where ⊥ is no key or no value, and prints what comes of each. A step
// "wait d" moves the clock; "start" starts the graph, else it starts first.
func demo(build func(b *stream.Builder), steps ...string) { demoWith(nil, build, steps...) }

// demoWith is demo with options of the processor.
func demoWith(opts []processor.Option, build func(b *stream.Builder), steps ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tb := &exampleTB{ctx: ctx}
	defer tb.end()

	b := stream.NewBuilder("example")
	build(b)
	graph, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	tt := tester.New(tb, tester.WithPartitions(1), tester.WithStartTime(time.UnixMilli(0)))
	s := shown{tt: tt, topics: graph.Outputs(), seen: map[string]int{}}
	for _, name := range append(graph.Inputs(), graph.Outputs()...) {
		if !own(name) {
			tt.CreateTopic(name, 1)
		}
	}
	ins := map[string]*tester.InputTopic[[]byte]{}
	for _, step := range steps {
		if topic, _, record := strings.Cut(step, " "); record && topic != "wait" && ins[topic] == nil {
			ins[topic] = tester.Input(tt, reka.NewStream(topic, codec.Bytes()))
		}
	}
	start := func() {
		tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
			p, err := processor.New(i.Client(), graph, append([]processor.Option{processor.WithStorage(i.Storage())}, opts...)...)
			return []reka.Runner{p}, err
		})
		tt.Settle()
	}
	if !slices.Contains(steps, "start") {
		start()
	}
	for _, step := range steps {
		switch topic, rec, _ := strings.Cut(step, " "); topic {
		case "start":
			start()
		case "wait":
			d, err := time.ParseDuration(rec)
			if err != nil {
				fmt.Println(err)
			}
			tt.Advance(d)
		default:
			sendShown(ins[topic], rec)
		}
		s.note(step)
	}
	s.print()
}

// own reports whether a topic is the group's own.
func own(topic string) bool { return strings.HasPrefix(topic, "example-") }

// sendShown sends what "key:value@second" says.
func sendShown(in *tester.InputTopic[[]byte], rec string) {
	at := strings.LastIndexByte(rec, '@')
	seconds, err := strconv.ParseFloat(rec[at+1:], 64)
	if err != nil {
		fmt.Println(err)
	}
	key, value, _ := strings.Cut(rec[:at], ":")
	opts := []reka.EmitOption{reka.At(time.UnixMilli(int64(math.Round(seconds * 1000))))}
	if key == "⊥" {
		key, opts = "", append(opts, reka.NullKey())
	}
	if value == "⊥" {
		in.Delete(key, opts...)
		return
	}
	in.Send(key, []byte(value), opts...)
}

// shown is what an example prints.
type shown struct {
	tt     *tester.Tester
	topics []string
	seen   map[string]int
	steps  []string
	gave   []string
}

// note takes down what came since the last step.
func (s *shown) note(step string) {
	s.tt.Settle()
	var all []string
	for _, topic := range s.topics {
		if own(topic) {
			continue
		}
		records := s.tt.Raw(topic, 0)
		for i := range records[s.seen[topic]:] {
			all = append(all, topic+" "+shownRecord(topic, &records[s.seen[topic]+i]))
		}
		s.seen[topic] = len(records)
	}
	if len(all) == 0 {
		all = []string{"–"}
	}
	s.steps, s.gave = append(s.steps, step), append(s.gave, strings.Join(all, ", "))
}

func (s *shown) print() {
	width := 0
	for _, step := range s.steps {
		width = max(width, utf8.RuneCountInString(step))
	}
	for i, step := range s.steps {
		fmt.Printf("%s%s → %s\n", step, strings.Repeat(" ", width-utf8.RuneCountInString(step)), s.gave[i])
	}
}

// shownRecord is a record as "key:value@second", or as
// "key[start..end)=value@second".
func shownRecord(topic string, r *kafka.Record) string {
	key, value, is := "⊥", "⊥", ":"
	if r.Key != nil {
		key = string(r.Key)
	}
	if r.Value != nil {
		value = string(r.Value)
	}
	for _, t := range shownWindows {
		w := t.Windows()
		if t.Name() != topic {
			continue
		}
		inner, win, err := w.SplitTopicKey(r.Key)
		if err != nil {
			return err.Error()
		}
		end := ")"
		if w.Kind() == window.KindSliding || w.Kind() == window.KindSession {
			end = "]"
		}
		key, is = fmt.Sprintf("%s[%s..%s%s", inner, second(win.Start), second(win.End), end), "="
	}
	out := key + is + value + "@" + second(r.Timestamp)
	for _, h := range r.Headers {
		out += fmt.Sprintf(" (%s: %s)", h.Key, h.Value)
	}
	return out
}

func second(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }

// exampleTB is as much of a testing.TB as the tester needs: an example has
// none of its own.
type exampleTB struct {
	testing.TB
	cleanups []func()
	ctx      context.Context
}

func (e *exampleTB) Helper()                           {}
func (e *exampleTB) Log(...any)                        {}
func (e *exampleTB) Logf(string, ...any)               {}
func (e *exampleTB) Name() string                      { return "example" }
func (e *exampleTB) Failed() bool                      { return false }
func (e *exampleTB) Context() context.Context          { return e.ctx }
func (e *exampleTB) Cleanup(f func())                  { e.cleanups = append(e.cleanups, f) }
func (e *exampleTB) Error(args ...any)                 { fmt.Println(args...) }
func (e *exampleTB) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (e *exampleTB) Fatal(args ...any)                 { fmt.Println(args...) }
func (e *exampleTB) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (e *exampleTB) end() {
	for i := len(e.cleanups) - 1; i >= 0; i-- {
		e.cleanups[i]()
	}
}
