package badgerstore

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/storagetest"
)

// onDisk returns the bytes that a directory takes.
func onDisk(t testing.TB, dir string) (n int64) {
	t.Helper()
	entries := 0
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			entries++
			if st, e := e.Info(); e == nil {
				n += st.Sys().(*syscall.Stat_t).Blocks * 512
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a file may vanish meanwhile
		}
		return err
	})
	if err != nil || entries == 0 {
		t.Fatalf("%s: %d files, %v", dir, entries, err)
	}
	return n
}

func TestFullDiskIsAnErrorBeforeTheWrite(t *testing.T) {
	var free atomic.Uint64
	free.Store(math.MaxUint64)
	dir := t.TempDir()
	s, tab := mustOpen(t, dir, func(c *config) {
		c.free = func(string) (uint64, error) { return free.Load(), nil }
	})
	defer func() { s.Close() }()
	cp := &storage.Checkpoint{Position: 1}
	if err := tab.Apply([]storage.Row{storagetest.Set("a", "1")}, cp); err != nil {
		t.Fatal(err)
	}
	free.Store(5 * mib)
	for _, rows := range [][]storage.Row{{storagetest.Set("a", "2")}, randomRows(10_000, 1<<40, 100)} {
		err := tab.Apply(rows, &storage.Checkpoint{Position: 2})
		if !errors.Is(err, storage.ErrFull) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "5 MiB free") {
			t.Fatalf("got %v, want ErrFull that names directory and sizes", err)
		}
	}
	if v, ok, err := tab.Get(nil, []byte("a")); string(v) != "1" || !ok || err != nil {
		t.Fatalf("reads go on: %q %v %v", v, ok, err)
	}
	if got, _, _ := tab.Checkpoint(); got.Position != 1 {
		t.Fatalf("checkpoint moved to %d", got.Position)
	}
	if err := tab.Clear(); !errors.Is(err, storage.ErrFull) {
		t.Fatalf("clear: %v", err)
	}
	mustClose(t, s)
	if _, err := In(dir, func(c *config) { c.free = func(string) (uint64, error) { return 1 * mib, nil } }).Open(); !errors.Is(err, storage.ErrFull) {
		t.Fatalf("open: %v", err)
	}
	s, tab = mustOpen(t, dir)
	storagetest.Apply(t, tab, storagetest.Set("a", "2"))
}

func TestDiskFillsInTheMiddleOfAnApply(t *testing.T) {
	var looks atomic.Int64
	s, tab := mustOpen(t, t.TempDir(), func(c *config) {
		c.free = func(string) (uint64, error) {
			if looks.Add(1) > 4 {
				return 5 * mib, nil
			}
			return math.MaxUint64, nil
		}
	})
	defer s.Close()
	err := tab.Apply(randomRows(100_000, 1<<40, 1000), &storage.Checkpoint{Position: 1})
	if !errors.Is(err, storage.ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	if _, ok, err := tab.Checkpoint(); ok || err != nil {
		t.Fatalf("checkpoint of a part: %v %v", ok, err)
	}
	looks.Store(math.MinInt64)
	if err := tab.Apply(randomRows(100_000, 1<<40, 1000), &storage.Checkpoint{Position: 1}); err != nil {
		t.Fatal(err)
	}
	if rows := storagetest.Dump(t, tab, storage.Range{}); len(rows) != 100_000 {
		t.Fatalf("%d rows", len(rows))
	}
}

// childFill writes until an error, says it, and frees what the test left.
func childFill(dir string) {
	s, err := In(dir).Open()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	tab, err := s.Table("t", 0)
	fmt.Println("ready")
	for i := int64(1); err == nil; i++ {
		rows := randomRows(1000+int(i), 1<<40, 1000)
		err = tab.Apply(rows, &storage.Checkpoint{Position: i})
	}
	fmt.Println(errors.Is(err, storage.ErrFull), err)
	fmt.Println(s.Close())
}

// TestSmallFileSystemFills fills real file systems. The child would die of
// SIGBUS if the looks at the free space were not enough.
func TestSmallFileSystemFills(t *testing.T) {
	for _, size := range []int{64, 256} {
		t.Run(fmt.Sprint(size, " MiB"), func(t *testing.T) { fillFileSystem(t, size) })
	}
}

func fillFileSystem(t *testing.T, size int) {
	mount := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", size), "tmpfs", mount).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", mount).Run() })
	dir := mount + "/state"
	for range 3 {
		c := startChild(t, "fill", dir)
		if line := c.line(t); !strings.HasPrefix(line, "true") || !strings.Contains(line, dir) {
			t.Fatalf("at full: %s", line)
		}
		if line := c.line(t); line != "<nil>" {
			t.Fatalf("close: %s", line)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d MiB of %d are used", onDisk(t, mount)/mib, size)
	if out, err := exec.Command("mount", "-o", "remount,size=1g", mount).CombinedOutput(); err != nil {
		t.Skipf("cannot remount: %v: %s", err, out)
	}
	s, tab := mustOpen(t, dir)
	defer s.Close()
	cp, ok, err := tab.Checkpoint()
	if err != nil || !ok {
		t.Fatalf("checkpoint: %v %v", ok, err)
	}
	for i := int64(1); i <= cp.Position; i++ {
		for _, row := range randomRows(1000+int(i), 1<<40, 1000)[:10] {
			if _, ok, err := tab.Get(nil, row.Key); err != nil || !ok {
				t.Fatalf("row of batch %d of %d: %v %v", i, cp.Position, ok, err)
			}
		}
	}
	storagetest.Apply(t, tab, storagetest.Set("a", "1"))
}

// TestSpaceIsGivenBack rewrites the same keys and watches the directory. The
// bound holds at all times, without a reopen.
func TestSpaceIsGivenBack(t *testing.T) {
	const fixed int64 = 6 * memtable // logs and tables that wait for compaction
	for name, test := range map[string]struct {
		rows   func(rnd *rand.Rand) []storage.Row
		writes int
		live   int64
	}{
		"10,000 rows of 1 KiB": {func(rnd *rand.Rand) []storage.Row {
			rows := randomRows(10_000, 1<<40, 1024)
			for _, r := range rows {
				r.Value[0] = byte(rnd.Int())
			}
			return rows
		}, 30, 10_000 * 1100},
		"a value of 2 MiB": {func(rnd *rand.Rand) []storage.Row {
			v := make([]byte, 2*mib)
			v[rnd.IntN(len(v))] = 1
			return []storage.Row{{Key: []byte("k"), Value: v}}
		}, 150, 2 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, tab := mustOpen(t, dir)
			defer s.Close()
			rnd := rand.New(rand.NewPCG(1, 1))
			var most int64
			for i := range test.writes {
				storagetest.Apply(t, tab, test.rows(rnd)...)
				if i%5 == 0 {
					most = max(most, onDisk(t, dir))
				}
			}
			t.Logf("%d MiB written, at most %d MiB on disk", int64(test.writes)*test.live/mib, most/mib)
			if limit := fixed + 10*test.live; most > limit {
				t.Fatalf("directory grew to %d MiB, limit %d", most/mib, limit/mib)
			}
		})
	}
}
