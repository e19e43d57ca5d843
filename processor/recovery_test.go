package processor_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/badgerstore"
	"github.com/rekastream/reka/tester"
)

// changelog writes records of a group table before the group's first start.
// A nil value is a delete.
func changelog(tt *tester.Tester, records ...kafka.Record) {
	tt.CreateTopic("g-table", 1, "cleanup.policy", "compact")
	tt.SendRaw("g-table", 0, records...)
}

func put(key, value string) kafka.Record {
	return kafka.Record{Key: []byte(key), Value: []byte(value), Timestamp: 1}
}

func del(key string) kafka.Record { return kafka.Record{Key: []byte(key), Timestamp: 1} }

// rows is a processor that keeps words and tells what it has in its store.
type rows struct {
	p      *processor.Processor
	visits *processor.Visits[*found]
}

// found is what the tasks of a processor have, each on its own goroutine.
type found struct {
	mu  sync.Mutex
	all map[string]string // guarded by mu
}

func (f *found) add(key, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[key] = value
}

func (r *rows) build(i *tester.Instance, opts ...processor.Option) ([]reka.Runner, error) {
	st := processor.Persist(table)
	r.visits = processor.Visitor("collect", func(ctx *processor.Context, f *found) error {
		v, _ := st.Get(ctx)
		f.add(ctx.Key(), v)
		return nil
	})
	var err error
	r.p, err = build(i, []processor.Edge{st, r.visits, processor.Input(words, func(ctx *processor.Context, w string) error {
		if w == "-" {
			st.Delete(ctx)
		} else {
			st.Set(ctx, w)
		}
		return nil
	})}, opts...)
	return []reka.Runner{r.p}, err
}

// all returns the rows that the processor's callbacks see.
func (r *rows) all(t *testing.T, tt *tester.Tester) map[string]string {
	t.Helper()
	tt.Settle()
	f := &found{all: map[string]string{}}
	if _, err := r.visits.Run(t.Context(), r.p, f); err != nil {
		t.Fatal(err)
	}
	return f.all
}

func (r *rows) want(t *testing.T, tt *tester.Tester, want map[string]string) {
	t.Helper()
	if got := r.all(t, tt); !maps.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}

// restored is how many rows the processor's tasks read from changelogs.
func (r *rows) restored() (n int64) {
	for _, part := range r.p.Stats().Partitions {
		n += part.RestoredRows
	}
	return n
}

// anyway lets a group start that has a table and no offsets.
var anyway = processor.WithLostOffsets(processor.RestartEarliest)

// onBothStores runs a test with the store in memory and on disk.
func onBothStores(t *testing.T, f func(t *testing.T, store func(*tester.Instance) processor.Option)) {
	t.Run("memory", func(t *testing.T) {
		f(t, func(i *tester.Instance) processor.Option { return processor.WithStorage(i.Storage()) })
	})
	t.Run("badger", func(t *testing.T) {
		dir := badgerstore.In(t.TempDir())
		f(t, func(i *tester.Instance) processor.Option { return processor.WithStorage(i.Guard(dir)) })
	})
}

func TestChangelogThatRetentionEmptiedIsRestoredToItsEnd(t *testing.T) {
	onBothStores(t, func(t *testing.T, store func(*tester.Instance) processor.Option) {
		tt := tester.New(t, tester.WithPartitions(1))
		in := tester.Input(tt, words)
		old := make([]kafka.Record, 500)
		for i := range old {
			old[i] = put(fmt.Sprint("old", i), "x")
		}
		changelog(tt, old...)
		tt.DeleteRecords("g-table", 0, 500)
		var r rows
		app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return r.build(i, store(i)) })
		r.want(t, tt, map[string]string{})
		in.Send("k", "v")
		log := tt.Raw("g-table", 0)
		if len(log) != 1 || log[0].Offset != 500 {
			t.Errorf("changelog %v, want one record at 500", log)
		}
		if err := app.Stop(); err != nil {
			t.Fatal(err)
		}
		app.Restart()
		r.want(t, tt, map[string]string{"k": "v"})
	})
}

func TestRestoreAppliesDeletesAlsoOfRowsThatAreNotThere(t *testing.T) {
	for name, test := range map[string]struct {
		log  []kafka.Record
		want map[string]string
	}{
		"deleted later":              {[]kafka.Record{put("a", "1"), put("b", "2"), del("a")}, map[string]string{"b": "2"}},
		"row was compacted away":     {[]kafka.Record{del("x"), put("y", "1")}, map[string]string{"y": "1"}},
		"nothing but deletes":        {[]kafka.Record{del("x"), del("y"), del("x")}, map[string]string{}},
		"deleted, then written anew": {[]kafka.Record{put("a", "1"), del("a"), put("a", "2")}, map[string]string{"a": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, store func(*tester.Instance) processor.Option) {
				tt := tester.New(t, tester.WithPartitions(1))
				tester.Input(tt, words)
				changelog(tt, test.log...)
				var r rows
				app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return r.build(i, store(i), anyway) })
				r.want(t, tt, test.want)
				if err := app.Stop(); err != nil {
					t.Fatal(err)
				}
				app.Restart() // now from the store
				r.want(t, tt, test.want)
			})
		})
	}
}

func TestRestartReadsOnlyTheChangelogThatItsStoreLacks(t *testing.T) {
	onBothStores(t, func(t *testing.T, store func(*tester.Instance) processor.Option) {
		tt := tester.New(t, tester.WithPartitions(1))
		in := tester.Input(tt, words)
		var r rows
		app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return r.build(i, store(i)) })
		for i := range 9 {
			in.Send(fmt.Sprint("k", i), "v")
		}
		tt.Settle()
		tt.Advance(time.Minute) // flushed
		in.Send("k9", "v")
		tt.Settle()
		app.Crash() // k9 is committed and not flushed
		for _, want := range []int64{1, 0} {
			app.Restart()
			equal(t, "rows", len(r.all(t, tt)), 10)
			equal(t, "rows read again", r.restored(), want)
			if err := app.Stop(); err != nil { // flushes
				t.Fatal(err)
			}
		}
	})
}

// Whatever call of the store a crash comes before, into or after, the next
// start has the rows of the changelog: a position is never durable before the
// rows below it.
func TestCrashAtAnyWriteOfTheStoreRestoresTheFoldOfTheChangelog(t *testing.T) {
	for n := range 21 {
		do := []tester.Action{tester.CrashBefore, tester.CrashWithin, tester.CrashAfter}[n%3]
		tt := tester.New(t, tester.WithPartitions(1))
		in, all := tester.Input(tt, words), tester.Table(tt, table)
		var r rows
		tt.Fail(tester.Fault{Op: tester.OpApply, Instance: "app", Nth: n + 1, Do: do})
		app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
			return r.build(i, processor.WithTuning(processor.Tuning{FlushBytes: 1}))
		})
		crashes := 0
		for i := range 1000 {
			w := fmt.Sprint(i)
			if i%7 == 0 {
				w = "-"
			}
			in.Send(fmt.Sprint("k", i*31%97), w)
			if i%20 == 0 {
				tt.Settle()
			}
			if app.Crashed() {
				crashes++
				app.Restart()
				r.want(t, tt, all.All())
			}
		}
		equal(t, "crashes", crashes, 1)
		r.want(t, tt, all.All())
		app.Crash()
		app.Restart()
		r.want(t, tt, all.All())
	}
}

func TestAllRowsDeletedStayDeletedOnAnEmptyDisk(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, words)
	var r rows
	disk := storage.Memory()
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		return r.build(i, processor.WithStorage(i.Guard(disk)))
	})
	for _, w := range []string{"x", "-"} {
		for i := range 1000 {
			in.Send(fmt.Sprint("k", i), w)
		}
		tt.Settle()
	}
	tombstones := 0
	for _, rec := range tt.Raw("g-table", 0) {
		if rec.Value == nil {
			tombstones++
		}
	}
	equal(t, "deletes in the topic", tombstones, 1000)
	if err := app.Stop(); err != nil {
		t.Fatal(err)
	}
	disk = storage.Memory()
	app.Restart()
	r.want(t, tt, map[string]string{})
	tt.Compact("g-table")
	disk = storage.Memory()
	app.Restart()
	r.want(t, tt, map[string]string{})
}
