package badgerstore

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/storagetest"
)

func TestOneApplyOfAMillionRows(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := t.TempDir()
	s, tab := mustOpen(t, dir)
	rows := randomRows(1_000_000, 1<<40, 8)
	if err := tab.Apply(rows, &storage.Checkpoint{Position: 9}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s, tab = mustOpen(t, dir)
	defer s.Close()
	last := map[string][]byte{}
	for _, r := range rows {
		last[string(r.Key)] = r.Value
	}
	snap, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Release()
	n := 0
	for row, err := range snap.Scan(storage.Range{}) {
		if err != nil || !bytes.Equal(last[string(row.Key)], row.Value) {
			t.Fatalf("row %d: %v", n, err)
		}
		n++
	}
	if cp, ok, err := tab.Checkpoint(); n != len(last) || cp.Position != 9 || !ok || err != nil {
		t.Fatalf("%d rows of %d, checkpoint %v %v", n, len(last), cp.Position, err)
	}
}

func TestOneApplyOfTwoHundredRowsOfOneMegabyte(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	s, tab := mustOpen(t, t.TempDir())
	defer s.Close()
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i + 1)}, 1_000_000) }
	rows := make([]storage.Row, 200)
	for i := range rows {
		rows[i] = storage.Row{Key: fmt.Append(nil, i), Value: value(i)}
	}
	if err := tab.Apply(rows, &storage.Checkpoint{Position: 1}); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if v, ok, err := tab.Get(nil, rows[i].Key); err != nil || !ok || !bytes.Equal(v, value(i)) {
			t.Fatalf("row %d: %d bytes %v %v", i, len(v), ok, err)
		}
	}
}

// TestHundredTablesCostLittle holds the budget that doc.go names.
func TestHundredTablesCostLittle(t *testing.T) {
	before := runtime.NumGoroutine()
	b := In(t.TempDir())
	s := storagetest.Open(t, b)
	for i := range int32(100) {
		tab := storagetest.Table(t, s, "t", i)
		if err := tab.Apply([]storage.Row{storagetest.Set("a", "1")}, &storage.Checkpoint{Position: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if n := runtime.NumGoroutine() - before; n > maxGoroutines {
		t.Errorf("%d goroutines", n)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc here")
	}
	if len(fds) > 40 {
		t.Errorf("%d file descriptors", len(fds))
	}
}

const maxGoroutines = 20

func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		s, tab := mustOpen(t, t.TempDir())
		storagetest.Apply(t, tab, randomRows(5000, 1<<40, 100)...)
		mustClose(t, s)
	}
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}

// TestCloseWaitsOnlyForTheRunningBatch closes during a long Apply.
func TestCloseWaitsOnlyForTheRunningBatch(t *testing.T) {
	s, tab := mustOpen(t, t.TempDir())
	rows := randomRows(1_000_000, 1<<40, 8)
	started, result := make(chan struct{}), make(chan error, 1) // 1: nobody may be left to take it
	// Ends with the Apply; the test waits for the result.
	go func() {
		close(started)
		result <- tab.Apply(rows, &storage.Checkpoint{Position: 1})
	}()
	<-started
	mustClose(t, s)
	if err := <-result; err != nil {
		if e := new(storage.Error); !asStorageError(err, &e) || e.Err != storage.ErrClosed {
			t.Fatalf("apply: %v", err)
		}
	}
}

func asStorageError(err error, e **storage.Error) bool {
	var ok bool
	*e, ok = err.(*storage.Error)
	return ok
}
