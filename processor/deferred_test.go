package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// Of the records at 915 to 918 all but 917 are finished, out of order, when
// the process is killed. No position beyond 917 is committed, nothing is lost
// and, with transactions, nothing counted twice.
func TestRecordsFinishedOutOfOrderAreCommittedAsAPrefix(t *testing.T) {
	for guarantee, g := range guarantees {
		t.Run(guarantee, func(t *testing.T) {
			d := newDesk(t, 1)
			for range 915 {
				d.in.Send("x", 0)
			}
			app := d.start("app", nil, processor.WithGuarantee(g))
			d.committed(915)
			d.send("abcd", 915)
			d.tt.Settle()
			d.finish(918, 916, 915)
			d.tt.Advance(time.Minute)
			d.committed(915)
			app.Crash()
			d.log = nil
			app.Restart()
			equal(t, "runs", d.took(), "run 915, run 916, run 917, run 918")
			d.finish(917, 918, 915, 916)
			d.committed(919)
			d.rows("[a:915 b:916 c:917 d:918 x:0]")
			want := "917 918 915 916"
			if g != processor.ExactlyOnce {
				want = "918 916 915 " + want
			}
			d.tt.Settle()
			equal(t, "outputs", join(tester.Output(d.tt, echoes).Values()[915:]), want)
		})
	}
}

func TestRecordsOfOneKeyTakeEffectInOrder(t *testing.T) {
	d := newDesk(t, 1)
	d.send("aabaab", 1)
	d.in.Send("c", 0)
	d.in.Send("a", -1)
	d.start("app", nil)
	equal(t, "began", d.took(), "run 1, run 3, end 0")
	d.finish(3)
	equal(t, "after 3", d.took(), "end 3, run 6")
	d.finish(1)
	equal(t, "after 1", d.took(), "end 1, run 2")
	d.finish(2, 4)
	equal(t, "after 2 and 4", d.took(), "end 2, run 4, end 4, run 5")
	equal(t, "unfinished", d.p.Stats().Partitions[0].Unfinished, 3)
	d.committed(0)
	d.finish(5, 6)
	equal(t, "after all", d.took(), "end 5, end -1, end 6")
	d.committed(8)
	d.rows("[a:11 b:9 c:0]")
	d.echoes("0 3 1 2 4 5 -1 6")
	s := d.p.Stats().Partitions[0]
	equal(t, "unfinished", s.Unfinished, 0)
	equal(t, "records", s.Records, 8)
}

// A key waits over all inputs, and rows of a joined table wait with it: the
// record sees the table as of its own time.
func TestOneKeyWaitsOverAllInputsAndJoinedTables(t *testing.T) {
	prices, more := reka.NewTable("prices", codec.Int64Text()), reka.NewStream("more", codec.Int64Text())
	d := newDesk(t, 1)
	tester.Input(d.tt, prices)
	tester.Input(d.tt, more)
	at := func(topic, key, value string, time int64) {
		d.tt.SendRaw(topic, 0, kafka.Record{Key: []byte(key), Value: []byte(value), Timestamp: time})
	}
	at("prices", "a", "10", 1)
	at("numbers", "a", "1", 2)
	at("prices", "a", "20", 3)
	at("prices", "b", "30", 3)
	at("more", "a", "2", 4)
	at("more", "b", "3", 5)
	at("numbers", "a", "4", 6)
	run(d.tt, "app", func() []processor.Edge {
		price := processor.Join(prices)
		callback := func(ctx *processor.Context, n int64) error {
			d.notef("run %d", n)
			d.leave(n, slip{ctx.Defer(), func(ctx *processor.Context) error {
				p, _ := price.Get(ctx)
				d.notef("%s@%d %s %d at %d", ctx.Topic(), ctx.Offset(), ctx.Key(), n, p)
				return nil
			}})
			return nil
		}
		return []processor.Edge{price, processor.Input(numbers, callback), processor.Input(more, callback)}
	})
	equal(t, "began", d.took(), "run 1, run 3")
	d.finish(3, 1)
	equal(t, "then", d.took(), "more@1 b 3 at 30, numbers@0 a 1 at 10, run 2")
	d.finish(2, 4)
	equal(t, "at last", d.took(), "more@0 a 2 at 20, run 4, numbers@1 a 4 at 20")
	d.committed(2)
}

func TestRecordsWithoutAKeyWaitForNobody(t *testing.T) {
	d := newDesk(t, 1)
	for n := range 3 {
		d.tt.SendRaw("numbers", 0, kafka.Record{Value: fmt.Append(nil, n+1), Timestamp: 1})
	}
	run(d.tt, "app", func() []processor.Edge {
		out := processor.Output(echoes)
		return []processor.Edge{out, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
			d.leave(n, slip{ctx.Defer(), func(ctx *processor.Context) error {
				out.Emit(ctx, fmt.Sprint(ctx.NullKey()), n)
				return nil
			}})
			return nil
		}, processor.NullKeys())}
	})
	d.tt.Settle()
	d.finish(2, 3, 1)
	d.committed(3)
	d.echoes("2 3 1")
}

func TestUnfinishedRecordsAreBounded(t *testing.T) {
	for what, tuning := range map[string]processor.Tuning{"by number": {Unfinished: 3}, "by bytes": {EpochBytes: 250}} {
		t.Run(what, func(t *testing.T) {
			d := newDesk(t, 1)
			d.send("aabcdefgh", 1)
			d.start("app", nil, processor.WithTuning(tuning))
			equal(t, "began", d.took(), "run 1, run 3") // 2 is parked
			d.finish(3, 1)
			equal(t, "then", d.took(), "end 3, end 1, run 2")
			d.finish(2)
			equal(t, "after the commit", d.took(), "end 2, run 4, run 5, run 6")
			d.committed(3)
			d.finish(6, 5, 4)
			d.committed(6)
			d.finish(8, 7, 9)
			d.committed(9)
			d.rows("[a:3 b:3 c:4 d:5 e:6 f:7 g:8 h:9]")
		})
	}
}

// A commit that is due is waited for: nothing is started before it.
func TestCommitThatIsDueWaitsForWhatIsUnfinished(t *testing.T) {
	d := newDesk(t, 1)
	d.start("app", nil)
	d.send("ab", 1)
	equal(t, "began", d.took(), "run 1, run 2")
	d.send("ca", 3)
	d.tt.Advance(time.Minute)
	equal(t, "while they are open", d.took(), "")
	d.finish(2)
	equal(t, "while one is open", d.took(), "end 2")
	d.committed(0)
	d.finish(1)
	equal(t, "then", d.took(), "end 1, run 3, run 4")
	d.committed(2)
	d.finish(3, 4)
	d.committed(4)
	d.rows("[a:5 b:2 c:3]")
}

func TestOnlyTheFirstCallCounts(t *testing.T) {
	d := newDesk(t, 1)
	d.send("abc", 1)
	d.start("app", nil)
	d.tt.Settle()
	for n, calls := range map[int64]func(slip){
		1: func(s slip) { s.Finish(s.apply); s.Finish(s.apply); s.Fail(errBad) },
		2: func(s slip) { s.Finish(nil); s.Finish(s.apply) },
		3: func(s slip) { s.Finish(s.apply) },
	} {
		s := d.slip(n)
		calls(s)
		d.tt.Settle()
		s.Fail(errBad)
		s.Finish(s.apply)
	}
	d.committed(3)
	d.rows("[a:1 c:3]")
}

// The function may be called before its callback has returned, and from it.
func TestFinishBeforeTheCallbackReturns(t *testing.T) {
	d := newDesk(t, 1)
	out := processor.Output(echoes)
	d.send("aab", 1)
	run(d.tt, "app", func() []processor.Edge {
		return []processor.Edge{out, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
			one, other := ctx.Defer(), ctx.Defer()
			other.Finish(func(ctx *processor.Context) error {
				out.Emit(ctx, ctx.Key(), n)
				return nil
			})
			one.Fail(errBad) // too late
			return nil
		})}
	})
	d.committed(3)
	d.tt.Settle()
	equal(t, "outputs", len(tester.Output(d.tt, echoes).All()), 3)
}

func TestFinishMayDeferAgain(t *testing.T) {
	d := newDesk(t, 1)
	d.send("ab", 1)
	app := d.start("app", nil)
	d.tt.Settle()
	s := d.slip(1)
	s.Finish(func(ctx *processor.Context) error {
		d.leave(1, slip{ctx.Defer(), s.apply})
		return nil
	})
	d.tt.Settle()
	d.slip(2).Finish(func(ctx *processor.Context) error {
		ctx.Defer()
		return d.slip(2).apply(ctx)
	})
	d.committed(0)
	d.finish(1)
	d.tt.Settle()
	if err := app.Err(); err == nil || !contains(err, "numbers/0@1", "defers") {
		t.Errorf("effects of a function that deferred: %v", err)
	}
}

func TestEffectsOfACallbackThatDefersAreRefused(t *testing.T) {
	sum, out := processor.Persist(sums), processor.Output(echoes)
	for what, callback := range map[string]func(*processor.Context) error{
		"set before":  func(ctx *processor.Context) error { sum.Set(ctx, 1); ctx.Defer(); return nil },
		"set after":   func(ctx *processor.Context) error { ctx.Defer(); sum.Set(ctx, 1); return nil },
		"delete":      func(ctx *processor.Context) error { ctx.Defer(); sum.Delete(ctx); return nil },
		"emit before": func(ctx *processor.Context) error { out.Emit(ctx, "k", 1); ctx.Defer(); return nil },
		"emit after":  func(ctx *processor.Context) error { ctx.Defer(); out.Emit(ctx, "k", 1); return nil },
		"read":        func(ctx *processor.Context) error { sum.Get(ctx); ctx.Defer().Finish(nil); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			d := newDesk(t, 1)
			app := run(d.tt, "app", func() []processor.Edge {
				return []processor.Edge{sum, out, processor.Input(numbers, func(ctx *processor.Context, _ int64) error { return callback(ctx) })}
			})
			d.send("a", 1)
			d.tt.Settle()
			d.rows("[]")
			d.echoes("")
			switch err := app.Err(); {
			case what == "read":
				equal(t, "error", err, nil)
				d.committed(1)
			case err == nil || !contains(err, "numbers/0@0", "defers", "Finish"):
				t.Errorf("ended with %v", err)
			}
		})
	}
}

func TestDeferWhereThereIsNoRecord(t *testing.T) {
	t.Run("outside its callback", func(t *testing.T) {
		d := newDesk(t, 1)
		var kept atomic.Pointer[processor.Context]
		d.callback = func(ctx *processor.Context, _ int64) error {
			kept.Store(ctx)
			return nil
		}
		app := d.start("app", nil)
		d.send("a", 1)
		d.tt.Settle()
		kept.Load().Defer().Finish(func(*processor.Context) error { t.Error("it ran"); return nil })
		d.tt.Settle()
		if err := app.Err(); !errors.Is(err, processor.ErrInactive) {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("in a visitor", func(t *testing.T) {
		d := newDesk(t, 1)
		visits := processor.Visitor("defers", func(ctx *processor.Context, _ int) error {
			ctx.Defer().Finish(func(*processor.Context) error { t.Error("it ran"); return nil })
			return nil
		})
		app := d.start("app", visits)
		d.send("a", 0) // is summed at once
		d.tt.Settle()
		done := make(chan error, 1)
		go func() { // ends with the visit; waited for below
			_, err := visits.Run(context.Background(), d.p, 0)
			done <- err
		}()
		if err := <-done; !errors.Is(err, processor.ErrVisitAborted) {
			t.Errorf("visit: %v", err)
		}
		if err := app.Err(); err == nil || !contains(err, "visitor", "cannot defer") {
			t.Errorf("ended with %v", err)
		}
	})
}

// Visitors do not wait for a key's unfinished record; their effects come
// before its.
func TestVisitorsSeeKeysWithUnfinishedRecords(t *testing.T) {
	d := newDesk(t, 1)
	d.in.Send("a", -5)
	d.in.Send("a", 1)
	visits := processor.Visitor("see", func(ctx *processor.Context, _ int) error {
		d.notef("visit %s", ctx.Key())
		return nil
	})
	d.start("app", visits)
	d.tt.Settle()
	done := make(chan error, 1)
	go func() { // ends with the visit; waited for below
		_, err := visits.Run(context.Background(), d.p, 0)
		done <- err
	}()
	d.finish(1)
	if err := <-done; err != nil {
		t.Errorf("visit: %v", err)
	}
	d.committed(2)
	d.rows("[a:-4]")
}
