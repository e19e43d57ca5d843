package processor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

var (
	words   = reka.NewStream("words", codec.String())
	answers = reka.NewStream("answers", codec.String())
	names   = reka.NewTable("names", codec.String())
	table   = reka.GroupTable("g", codec.String())
)

func TestStoreRangesSeeOwnChangesInByteOrder(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in, out := tester.Input(tt, words), tester.Output(tt, answers)
	app := run(tt, "app", func() []processor.Edge {
		st, o := processor.Store("index", codec.String()), processor.Output(answers)
		return []processor.Edge{st, o, processor.Input(words, func(ctx *processor.Context, w string) error {
			if w == "-" {
				st.Delete(ctx, ctx.Key())
			} else {
				st.Set(ctx, ctx.Key(), w)
			}
			var forward, backward, prefixed []string
			for k, v := range st.Range(ctx, "", "") {
				forward = append(forward, k+v)
			}
			for k := range st.Reverse(ctx, "a", "c") {
				backward = append(backward, k)
			}
			for k := range st.Prefix(ctx, "b") {
				prefixed = append(prefixed, k)
			}
			o.Emit(ctx, "r", strings.Join(forward, ",")+" "+strings.Join(backward, ",")+" "+strings.Join(prefixed, ","))
			return ctx.Failed()
		})}
	})
	in.Send("b", "1")
	in.Send("a", "2")
	in.Send("", "0")
	in.Send("ba", "3")
	app.Crash()
	app.Restart()
	in.Send("c", "4")
	in.Send("a", "-")
	want := []string{"b1 b b", "a2,b1 b,a b", "0,a2,b1 b,a b", "0,a2,b1,ba3 ba,b,a b,ba", "0,a2,b1,ba3,c4 ba,b,a b,ba", "0,b1,ba3,c4 ba,b b,ba"}
	if got := out.Values(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestStoreWithoutChangelogIsEmptyAfterRestart(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in, out := tester.Input(tt, words), tester.Output(tt, answers)
	app := run(tt, "app", func() []processor.Edge {
		st, o := processor.Store("scratch", codec.String(), processor.NoChangelog()), processor.Output(answers)
		return []processor.Edge{st, o, processor.Input(words, func(ctx *processor.Context, w string) error {
			was, ok := st.Get(ctx, ctx.Key())
			if !ok {
				was = "nothing"
			}
			st.Set(ctx, ctx.Key(), w)
			o.Emit(ctx, ctx.Key(), was)
			return nil
		})}
	})
	in.Send("k", "1")
	in.Send("k", "2")
	tt.Settle()
	if err := app.Stop(); err != nil {
		t.Fatal(err)
	}
	app.Restart()
	in.Send("k", "3")
	if got, want := out.Values(), []string{"nothing", "1", "nothing"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDeletedRowsLeaveTombstonesAndStayDeleted(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, words)
	edges := func() []processor.Edge {
		st := processor.Persist(table)
		return []processor.Edge{st, processor.Input(words, func(ctx *processor.Context, w string) error {
			if w == "-" {
				st.Delete(ctx)
			} else {
				st.Set(ctx, w)
			}
			return nil
		})}
	}
	app := run(tt, "app", edges)
	for _, k := range []string{"a", "b", "c"} {
		in.Send(k, "x")
	}
	tt.Settle()
	in.Send("a", "-")
	in.Send("b", "-")
	if got := tester.Table(tt, table).Keys(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("keys %q, want c", got)
	}
	tombstones := 0
	for _, r := range tt.Raw("g-table", 0) {
		if r.Value == nil {
			tombstones++
		}
	}
	equal(t, "tombstones", tombstones, 2)
	if err := app.Stop(); err != nil {
		t.Fatal(err)
	}
	// Another machine: an empty disk.
	out := tester.Output(tt, answers)
	run(tt, "other", func() []processor.Edge {
		st, o := processor.Persist(table), processor.Output(answers)
		return []processor.Edge{st, o, processor.Input(words, func(ctx *processor.Context, _ string) error {
			_, ok := st.Get(ctx)
			o.Emit(ctx, ctx.Key(), map[bool]string{true: "there", false: "gone"}[ok])
			return nil
		})}
	})
	for _, k := range []string{"a", "b", "c"} {
		in.Send(k, "?")
	}
	if got := out.Values(); !slices.Equal(got, []string{"gone", "gone", "there"}) {
		t.Errorf("after a restore: %q", got)
	}
}

func TestJoinedTableIsMergedByTime(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in, out := tester.Input(tt, words), tester.Output(tt, answers)
	tt.CreateTopic("names", 1)
	at := func(topic, value string, ms int64) {
		tt.SendRaw(topic, 0, kafka.Record{Key: []byte("u"), Value: []byte(value), Timestamp: ms})
	}
	at("names", "v1", 100)
	at("names", "v2", 300)
	_ = in
	at("words", "", 50)
	at("words", "", 200)
	at("words", "", 300)
	at("words", "", 400)
	edges := func(o ...processor.JoinOption) func() []processor.Edge {
		return func() []processor.Edge {
			j, out := processor.Join(names, o...), processor.Output(answers)
			return []processor.Edge{j, out, processor.Input(words, func(ctx *processor.Context, _ string) error {
				v, ok := j.Get(ctx)
				if !ok {
					v = "none"
				}
				out.Emit(ctx, ctx.Key(), v)
				return nil
			})}
		}
	}
	app := run(tt, "app", edges())
	if got, want := out.Values(), []string{"none", "v1", "v2", "v2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	app.Crash()
	app.Restart()
	at("words", "", 500)
	if got := out.Values(); len(got) != 5 || got[4] != "v2" {
		t.Errorf("after a restart: %q, want v2 last", got)
	}
}

func TestTableFirstLoadsTheJoinedTableBeforeTheFirstRecord(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	out := tester.Output(tt, answers)
	tester.Input(tt, words)
	tt.CreateTopic("names", 1)
	tt.SendRaw("words", 0, kafka.Record{Key: []byte("u"), Value: []byte{}, Timestamp: 50})
	tt.SendRaw("names", 0, kafka.Record{Key: []byte("u"), Value: []byte("late"), Timestamp: 300})
	run(tt, "app", func() []processor.Edge {
		j, out := processor.Join(names, processor.TableFirst()), processor.Output(answers)
		return []processor.Edge{j, out, processor.Input(words, func(ctx *processor.Context, _ string) error {
			v, _ := j.Get(ctx)
			out.Emit(ctx, ctx.Key(), v)
			return nil
		})}
	})
	if got := out.Values(); !slices.Equal(got, []string{"late"}) {
		t.Errorf("got %q, want late", got)
	}
}

func TestLookupTableMayHaveAnotherPartitionCount(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(4))
	tt.CreateTopic("names", 1)
	out := tester.Output(tt, answers)
	in := tester.Input(tt, words)
	tester.Input(tt, names).Send("x", "found")
	edges := func(_ ...processor.Edge) []processor.Edge {
		l, out := processor.Lookup(names), processor.Output(answers)
		return []processor.Edge{l, out, processor.Input(words, func(ctx *processor.Context, w string) error {
			v, ok := l.Get(ctx, w)
			if !ok {
				v = "none"
			}
			out.Emit(ctx, ctx.Key(), v)
			return nil
		})}
	}
	run(tt, "app", func() []processor.Edge { return edges() })
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		in.Send(k, "x")
	}
	in.Send("f", "y")
	got := out.Values()
	slices.Sort(got)
	if want := []string{"found", "found", "found", "found", "found", "none"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJoinedTableWithAnotherPartitionCountIsRefused(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(4))
	tt.CreateTopic("names", 1)
	tester.Input(tt, words)
	app := run(tt, "app", func() []processor.Edge {
		j := processor.Join(names)
		return []processor.Edge{j, processor.Input(words, func(*processor.Context, string) error { return nil })}
	})
	err := app.Err()
	var counts *processor.PartitionCountError
	if !errors.As(err, &counts) || !strings.Contains(err.Error(), "words has 4") || !strings.Contains(err.Error(), "names has 1") {
		t.Errorf("error %v does not name both topics and counts", err)
	}
}

func TestLoopSendsWorkToAnotherKeyAndIsPurged(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	in, out := tester.Input(tt, words), tester.Output(tt, answers)
	run(tt, "app", func() []processor.Edge {
		l, o := processor.Loop(codec.String()), processor.Output(answers)
		return []processor.Edge{o, l.On(func(ctx *processor.Context, w string) error {
			o.Emit(ctx, ctx.Key(), w+"!")
			return nil
		}), processor.Input(words, func(ctx *processor.Context, w string) error {
			l.Emit(ctx, w, "from "+ctx.Key())
			return nil
		})}
	})
	in.Send("a", "b")
	in.Send("b", "c")
	got := out.Values()
	slices.Sort(got)
	if want := []string{"from a!", "from b!"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVisitorSeesEveryKeyAndReturnsWhenCommitted(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(3))
	in := tester.Input(tt, words)
	var p *processor.Processor
	st := processor.Persist(table)
	visits := processor.Visitor("suffix", func(ctx *processor.Context, m string) error {
		v, _ := st.Get(ctx)
		st.Set(ctx, v+m)
		return nil
	})
	tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		var err error
		p, err = build(i, []processor.Edge{st, visits, processor.Input(words, func(ctx *processor.Context, w string) error {
			st.Set(ctx, w)
			return nil
		})})
		return []reka.Runner{p}, err
	})
	for i := range 1000 {
		in.Send(string(rune('a'+i%26))+string(rune('a'+i/26)), "v")
	}
	tt.Settle()
	n, err := visits.Run(context.Background(), p, "+")
	if err != nil || n != 1000 {
		t.Fatalf("visited %d, %v, want 1000", n, err)
	}
	for k, v := range tester.Table(tt, table).All() {
		if v != "v+" {
			t.Fatalf("%s = %q, want v+", k, v)
		}
	}
}

func TestUndeclaredHandleNamesHandleAndGraph(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, words)
	app := run(tt, "app", func() []processor.Edge {
		o := processor.Output(answers)
		return []processor.Edge{processor.Input(words, func(ctx *processor.Context, _ string) error {
			o.Emit(ctx, "k", "v")
			return nil
		})}
	})
	in.Send("a", "x")
	tt.Settle()
	var u *processor.UndeclaredError
	if err := app.Err(); !errors.As(err, &u) || !strings.Contains(err.Error(), "output answers") || !strings.Contains(err.Error(), "group g") {
		t.Errorf("error %v does not name output and group", err)
	}
}

func TestContextUsedAfterItsCallbackFailsTyped(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, words)
	var kept *processor.Context
	st := processor.Persist(table)
	app := run(tt, "app", func() []processor.Edge {
		return []processor.Edge{st, processor.Input(words, func(ctx *processor.Context, _ string) error {
			kept = ctx
			return nil
		}), processor.Visitor("x", func(*processor.Context, int) error { return nil })}
	})
	in.Send("a", "x")
	tt.Settle()
	st.Get(kept)
	tt.Settle()
	if err := app.Err(); !errors.Is(err, processor.ErrInactive) {
		t.Errorf("error %v, want ErrInactive", err)
	}
}
