package processor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// puts are puts of keys k<from> to k<to-1>.
func puts(from, to int, value string) []kafka.Record {
	out := make([]kafka.Record, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, put(fmt.Sprint("k", i), value))
	}
	return out
}

// threeRows is a group that has three rows, flushed, and is stopped.
func threeRows(t *testing.T, tt *tester.Tester, r *rows, opts ...processor.Option) *tester.Instance {
	t.Helper()
	in := tester.Input(tt, words)
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return r.build(i, opts...) })
	for i := range 3 {
		in.Send(fmt.Sprint("k", i+1), fmt.Sprint(i+1))
	}
	tt.Settle()
	if err := app.Stop(); err != nil {
		t.Fatal(err)
	}
	return app
}

// The group's offsets rest on rows that the new topic does not have. So it
// ends, and touches nothing, until somebody has decided.
func TestChangelogThatWasRecreatedUnderALocalStoreEndsTheProcessorByName(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	var r rows
	app := threeRows(t, tt, &r)
	tt.DeleteTopic("g-table")
	tt.CreateTopic("g-table", 1, "cleanup.policy", "compact")
	for range 2 { // it stays so
		app.Restart()
		err := app.Err()
		var at *kafka.Error
		if !errors.Is(err, kafka.ErrTopicChanged) || !errors.As(err, &at) || at.Topic != "g-table" || at.Partition != 0 || at.Offset < 3 {
			t.Fatalf("error %v", err)
		}
		if !strings.Contains(err.Error(), "ends at 0") {
			t.Errorf("the end of the new topic is not in %q", err)
		}
	}
	if n := len(tt.Raw("g-table", 0)); n != 0 {
		t.Errorf("%d records were written to the new topic", n)
	}
}

// The same while the restore runs.
func TestChangelogThatIsRecreatedUnderARunningRestoreEndsTheProcessor(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	tester.Input(tt, words)
	changelog(tt, puts(0, 100, "v")...)
	tt.Fail(tester.Fault{Op: tester.OpFetch, Topic: "g-table", Do: tester.Delay(time.Minute)})
	var r rows
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return r.build(i, anyway) })
	tt.Settle()
	tt.DeleteTopic("g-table")
	tt.CreateTopic("g-table", 1, "cleanup.policy", "compact")
	tt.Advance(2 * time.Minute)
	if err := app.Err(); !errors.Is(err, kafka.ErrTopicChanged) || !strings.Contains(err.Error(), "g-table") {
		t.Errorf("error %v", err)
	}
}

// An unclean election loses the end of the changelog, and it grows again: no
// offset tells that the local rows are not its fold any more.
func TestChangelogThatWasCutAndGrewAgainIsRestoredAnew(t *testing.T) {
	onBothStores(t, func(t *testing.T, store func(*tester.Instance) processor.Option) {
		log, logs := warnings()
		tt := tester.New(t, tester.WithPartitions(1), tester.WithLogger(log))
		in := tester.Input(tt, words)
		var r rows
		app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return r.build(i, store(i)) })
		for i := range 20 {
			in.Send(fmt.Sprint("k", i), "old")
			tt.Settle()
		}
		end := tt.Raw("g-table", 0)[19].Offset + 1
		cut := tt.Raw("g-table", 0)[5].Offset
		if err := app.Stop(); err != nil {
			t.Fatal(err)
		}
		app.Restart()
		equal(t, "rows", len(r.all(t, tt)), 20)
		equal(t, "rows read again", r.restored(), 0)
		if err := app.Stop(); err != nil {
			t.Fatal(err)
		}
		equal(t, "warnings", logs.Len(), 0)
		tt.Truncate("g-table", 0, cut, puts(100, 100+int(end), "new")...) // beyond where it was
		app.Restart()
		all := r.all(t, tt)
		if len(all) != 5+int(end) || all["k4"] != "old" || all["k5"] != "" || all["k100"] != "new" {
			t.Errorf("%d rows, k4 %q, k5 %q, k100 %q", len(all), all["k4"], all["k5"], all["k100"])
		}
		if logs.FilterMessageSnippet("was cut off at").Len() != 1 {
			t.Errorf("logged %v", logs.All())
		}
		if err := app.Stop(); err != nil {
			t.Fatal(err)
		}
		app.Restart()
		equal(t, "rows", len(r.all(t, tt)), len(all))
		equal(t, "rows read again", r.restored(), 0)
	})
}

// After ordinary elections nothing is read again.
func TestElectionsOfTheChangelogsLeaderCostNoRestore(t *testing.T) {
	log, logs := warnings()
	tt := tester.New(t, tester.WithPartitions(1), tester.WithLogger(log))
	in := tester.Input(tt, words)
	var r rows
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return r.build(i) })
	elect := func() {
		ends, err := tt.Client().Driver().Admin().Offsets(t.Context(), kafka.HighWatermark, kafka.TopicPartition{Topic: "g-table"})
		if err != nil {
			t.Fatal(err)
		}
		tt.Truncate("g-table", 0, ends[kafka.TopicPartition{Topic: "g-table"}])
	}
	for i := range 10 {
		in.Send(fmt.Sprint("k", i), "v")
		tt.Settle()
		elect()
		if i%4 == 3 {
			elect()
			if err := app.Stop(); err != nil {
				t.Fatal(err)
			}
			elect()
			app.Restart()
			equal(t, "rows", len(r.all(t, tt)), i+1)
			equal(t, "rows read again", r.restored(), 0)
		}
	}
	equal(t, "warnings", logs.Len(), 0)
}

// No record's offset comes near the end: markers stand there, and compaction
// leaves gaps.
func TestChangelogThatEndsInMarkersIsRestored(t *testing.T) {
	onBothStores(t, func(t *testing.T, store func(*tester.Instance) processor.Option) {
		tt := tester.New(t, tester.WithPartitions(1))
		tester.Input(tt, words)
		changelog(tt, puts(0, 91, "v")...)
		for range 3 {
			tt.WriteControl("g-table", 0)
		}
		tt.Compact("g-table")
		var r rows
		app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return r.build(i, store(i), anyway) })
		equal(t, "rows", len(r.all(t, tt)), 91)
		equal(t, "rows read", r.restored(), 91)
		if err := app.Stop(); err != nil {
			t.Fatal(err)
		}
		app.Restart()
		equal(t, "rows", len(r.all(t, tt)), 91)
		equal(t, "rows read again", r.restored(), 0)
	})
}

func TestChangelogThatBeginsFarAboveZeroIsRestoredFromItsStart(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	tester.Input(tt, words)
	changelog(tt, puts(0, 19477, "v")...)
	tt.DeleteRecords("g-table", 0, 17091)
	var r rows
	tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return r.build(i, anyway) })
	all := r.all(t, tt)
	if len(all) != 2386 || all["k17091"] != "v" || all["k17090"] != "" {
		t.Errorf("%d rows, want 2386", len(all))
	}
	equal(t, "rows read", r.restored(), 2386)
}

// Where new input begins says nothing of the changelog, which is read from
// its start again.
func TestChangelogTrimmedUnderARunningRestoreIsReadFromItsNewStart(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, words)
	in.Send("old", "not read")
	value := strings.Repeat("v", 60) // more than one fetch
	changelog(tt, puts(0, 100_000, value)...)
	tt.Fail(tester.Fault{Op: tester.OpFetch, Topic: "g-table", Nth: 2, Do: tester.Delay(time.Minute)})
	st := processor.Persist(table)
	var p *processor.Processor
	f := &found{all: map[string]string{}}
	visits := processor.Visitor("collect", func(ctx *processor.Context, f *found) error {
		v, _ := st.Get(ctx)
		f.add(ctx.Key(), v)
		return nil
	})
	tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		p, err = build(i, []processor.Edge{st, visits, processor.Input(words, func(ctx *processor.Context, w string) error {
			st.Set(ctx, w)
			return nil
		}, processor.FromLatest())}, processor.WithLostOffsets(processor.RestartLatest))
		return []reka.Runner{p}, err
	})
	tt.Settle()
	stats := p.Stats().Partitions[0]
	if stats.State != "restoring" || stats.RestoredRows == 0 || stats.RestoredRows >= 60_000 || stats.RestoreRemaining != 100_000-stats.RestoredRows {
		t.Fatalf("%d rows restored, %d remaining, %s: the case needs a restore that is under way", stats.RestoredRows, stats.RestoreRemaining, stats.State)
	}
	tt.DeleteRecords("g-table", 0, 60_000)
	tt.Advance(2 * time.Minute)
	tt.Settle()
	if _, err := visits.Run(t.Context(), p, f); err != nil {
		t.Fatal(err)
	}
	if len(f.all) != 40_000 || f.all["k60000"] != value || f.all["k59999"] != "" || f.all["old"] != "" {
		t.Errorf("%d rows, want 40000", len(f.all))
	}
	stats = p.Stats().Partitions[0]
	equal(t, "rebuilds", stats.Rebuilds, 1)
	equal(t, "remaining", stats.RestoreRemaining, 0)
	in.Send("new", "read")
	tt.Settle()
	equal(t, "records", p.Stats().Partitions[0].Records, 1)
}

// A delete that came while nobody looked has left no trace once its topic's
// time for deletes is over: at the start of a restore, or while it waits for
// its first record.
func TestLocalRowsOlderThanTheirDeletesAreRestoredAnew(t *testing.T) {
	const keep, cleaned = 24 * time.Hour, 24*time.Hour + 30*time.Minute // after the delete
	for name, test := range map[string]struct {
		away     time.Duration
		rebuilds int
	}{
		"young":                         {20 * time.Hour, 0},
		"too old at the start":          {25 * time.Hour, 1},
		"too old when the restore ends": {21 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			log, logs := warnings()
			tt := tester.New(t, tester.WithPartitions(1), tester.WithLogger(log), tester.WithPatience(time.Minute)) // a day of heartbeats
			in, out, table := tester.Input(tt, words), tester.Output(tt, answers), tester.Input(tt, names)
			table.Send("a", "1")
			table.Send("b", "2")
			app := run(tt, "app", func() []processor.Edge {
				l, out := processor.Lookup(names), processor.Output(answers)
				return []processor.Edge{l, out, processor.Input(words, func(ctx *processor.Context, w string) error {
					v, _ := l.Get(ctx, ctx.Key())
					out.Emit(ctx, ctx.Key(), w+v)
					return nil
				})}
			})
			in.Send("a", "x")
			tt.Settle()
			if err := app.Stop(); err != nil {
				t.Fatal(err)
			}
			table.Delete("a")
			table.Send("c", "3")
			tt.Advance(2 * time.Minute)
			tt.Compact("names")
			slow := test.rebuilds == 1 && test.away < keep
			tt.Advance(test.away)
			if slow {
				tt.Fail(tester.Fault{Op: tester.OpFetch, Topic: "names", Do: tester.Delay(keep)})
				app.Restart()
				tt.Advance(cleaned - test.away)
			}
			if test.rebuilds == 1 {
				tt.Compact("names")
				equal(t, "records in the table topic", len(tt.Raw("names", 0)), 2)
			}
			if slow {
				tt.Advance(keep)
			} else {
				app.Restart()
			}
			in.Send("a", "y")
			in.Send("b", "y")
			if got := strings.Join(out.Values(), " "); got != "x1 y y2" {
				t.Errorf("answers %q", got)
			}
			equal(t, "rebuilds", logs.FilterMessageSnippet("built anew").Len(), test.rebuilds)
		})
	}
}
