package processor_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/badgerstore"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
)

// smallDisk mounts a file system of some MiB, or skips the test where that is
// not allowed.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	mount := t.TempDir()
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", mib), "tmpfs", mount).CombinedOutput()
	if err != nil {
		t.Skipf("cannot mount a tmpfs here: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", mount).Run() }) // a leftover harms nobody
	return mount
}

func TestFullDiskEndsTheProcessorAndFreeSpaceRepairsIt(t *testing.T) {
	mount := smallDisk(t, 160)
	ballast := filepath.Join(mount, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 90<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	tt := tester.New(t, tester.WithPartitions(1))
	in, all := tester.Input(tt, words), tester.Table(tt, table)
	dir := badgerstore.In(filepath.Join(mount, "state"))
	var r rows
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		return r.build(i, processor.WithStorage(i.Guard(dir)), processor.WithTuning(processor.Tuning{FlushBytes: 1 << 20, CacheBytes: 1 << 20}))
	})
	value := strings.Repeat("x", 1000)
	var err error
	sent := 0
	for ; err == nil; sent++ {
		if sent == 200_000 {
			t.Fatal("the disk does not get full")
		}
		in.Send(fmt.Sprint("k", sent), value+strconv.Itoa(sent))
		if sent%500 == 0 {
			err = app.Err()
		}
	}
	var store *processor.StoreError
	if !errors.Is(err, storage.ErrFull) || !errors.As(err, &store) || !strings.Contains(err.Error(), mount) {
		t.Fatalf("Run: %v, want a store error that names the directory", err)
	}
	app.Restart()
	if err := app.Err(); err != nil && !errors.Is(err, storage.ErrFull) {
		t.Fatalf("started on the full disk: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	app.Restart()
	got, want := r.all(t, tt), all.All()
	if !maps.Equal(got, want) || len(want) != sent {
		t.Errorf("%d rows, the changelog has %d, %d were sent", len(got), len(want), sent)
	}
}

func TestHundredPartitionsOnDiskStayInTheirBudget(t *testing.T) {
	const partitions = 100
	tt := tester.New(t, tester.WithPartitions(partitions), tester.WithLogger(zap.NewNop())) // keys lie where they do not belong
	tester.Input(tt, words)
	before := resident(t)
	dir := badgerstore.In(t.TempDir())
	var r rows
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		return r.build(i, processor.WithStorage(i.Guard(dir)))
	})
	budget := func(when string) {
		t.Helper()
		if n := resident(t) - before; n > 512<<20 {
			t.Errorf("%s: %d MiB of memory", when, n>>20)
		}
		if fds, err := os.ReadDir("/proc/self/fd"); err == nil && len(fds) > 100 {
			t.Errorf("%s: %d file descriptors", when, len(fds))
		}
	}
	tt.Settle()
	budget("empty")
	for p := range int32(partitions) {
		for i := range 10 {
			tt.SendRaw("words", p, put(fmt.Sprint(p, "-", i), "x"))
		}
	}
	tt.Advance(time.Minute)
	budget("ten rows in each")
	equal(t, "rows", len(r.all(t, tt)), 10*partitions)
	if err := app.Stop(); err != nil {
		t.Fatal(err)
	}
}

// resident returns the memory of this process, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc here")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// One transaction of the store takes about 100,000 rows, or 10 MB.
func TestRestoreLargerThanATransactionOfTheStore(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	big := bytes.Repeat([]byte("x"), 1_000_000)
	for name, test := range map[string]struct {
		rows  int
		value []byte
	}{"150,000 tiny rows": {150_000, []byte("v")}, "40 rows of 1 MB": {40, big}} {
		t.Run(name, func(t *testing.T) {
			tt := tester.New(t, tester.WithPartitions(1))
			tester.Input(tt, words)
			tt.CreateTopic("g-table", 1, "cleanup.policy", "compact", "max.message.bytes", "2000000")
			records := make([]kafka.Record, test.rows)
			for i := range records {
				records[i] = kafka.Record{Key: fmt.Append(nil, "k", i), Value: test.value, Timestamp: 1}
			}
			tt.SendRaw("g-table", 0, records...)
			dir := badgerstore.In(t.TempDir())
			var p *processor.Processor
			sum := 0
			count := processor.Visitor("count", func(*processor.Context, int) error { sum++; return nil })
			app := tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
				st := processor.Persist(reka.GroupTable("g", codec.Bytes()))
				p, err = build(i, []processor.Edge{st, count, processor.Input(words, func(*processor.Context, string) error { return nil })},
					anyway, processor.WithStorage(i.Guard(dir)), processor.WithTuning(processor.Tuning{FlushBytes: 256 << 20, CacheBytes: 1 << 20}))
				return []reka.Runner{p}, err
			})
			tt.Settle()
			tt.Advance(time.Minute) // flushed, all at once
			for range 2 {
				sum = 0
				if n, err := count.Run(t.Context(), p, 0); err != nil || n != int64(test.rows) || sum != test.rows {
					t.Fatalf("%d rows, %v", n, err)
				}
				app.Crash()
				app.Restart()
				tt.Settle()
				equal(t, "rows read again", p.Stats().Partitions[0].RestoredRows, 0)
			}
		})
	}
}

// A scan of a view is open while the processor beside it, in the same
// directory, changes and deletes the rows: neither holds the other up, the
// scan sees the table of its beginning, and forgotten it holds up the stop for
// the stop timeout at most.
func TestWritingWhileAScanIsOpen(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	in := tester.Input(tt, words)
	dir := badgerstore.In(t.TempDir())
	var r rows
	var v *view.View[string]
	tester.Table(tt, table)
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		st := i.Guard(dir)
		ps, err := r.build(i, processor.WithStorage(st), processor.WithTuning(processor.Tuning{FlushBytes: 1}))
		var err2 error
		v, err2 = view.New(i.Client(), table, view.WithStorage(st), view.WithFlush(1, time.Hour), view.WithStopTimeout(5*time.Second))
		return append(ps, v), errors.Join(err, err2)
	})
	for i := range 500 {
		in.Send(fmt.Sprintf("k%03d", i), "old")
	}
	tt.Settle()
	n := 0
	for row, err := range v.All() {
		if err != nil || row.Value != "old" {
			t.Fatalf("row %d: %v, %v", n, row, err)
		}
		if n%100 == 0 {
			for i := range 500 {
				in.Send(fmt.Sprintf("k%03d", i), []string{"new", "-"}[i%2])
			}
			tt.Settle()
		}
		n++
	}
	equal(t, "rows of the scan", n, 500)
	if got, ok, err := v.Get("k001"); ok || err != nil {
		t.Errorf("a deleted row: %v, %v, %v", got, ok, err)
	}
	equal(t, "rows", len(r.all(t, tt)), 250)
	for _, err := range v.All() {
		if err != nil {
			t.Fatal(err)
		}
		before := tt.Now()
		if err := app.Stop(); !errors.Is(err, reka.ErrStopTimeout) {
			t.Errorf("stop in an open scan: %v, want ErrStopTimeout", err)
		}
		if took := tt.Now().Sub(before); took > time.Minute {
			t.Errorf("stop took %v", took)
		}
		break
	}
}
