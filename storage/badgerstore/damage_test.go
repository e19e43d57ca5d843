package badgerstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/storagetest"
)

const damageRows = 20_000

// filled returns a directory with tables and, as after a kill, a memtable's
// log. The checkpoint, and it alone, is the newest thing in the log.
func filled(t *testing.T) (dir, id string) {
	t.Helper()
	live := t.TempDir()
	s, tab := mustOpen(t, live)
	storagetest.Apply(t, tab, randomRows(damageRows, 1<<40, 1000)...)
	mustClose(t, s)
	s, tab = mustOpen(t, live)
	defer s.Close()
	storagetest.Apply(t, tab, storagetest.Set("a", "1"), storagetest.Set("z", string(make([]byte, 1<<20))))
	if err := tab.Apply(nil, &storage.Checkpoint{Position: 7, Owner: make([]byte, 200)}); err != nil {
		t.Fatal(err)
	}
	return copyTree(t, live), s.ProcessID()
}

func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, rowsDir, pattern))
	if err != nil || len(all) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	slices.Sort(all)
	return all
}

func change(t *testing.T, path string, f func(data []byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, f(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func garbage(data []byte, at, n int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		data[at+i] ^= byte(1 + rnd.IntN(255))
	}
	return data
}

// TestDamageIsSetAside breaks files in many ways. Each time the directory
// opens by itself, empty, with the old process id and one warning, and the
// broken rows are kept beside.
func TestDamageIsSetAside(t *testing.T) {
	dir, id := filled(t)
	for name, breakIt := range map[string]func(t *testing.T, dir string){
		"garbage in the middle of a table": func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.sst")[0], func(b []byte) []byte { return garbage(b, len(b)/2, 1024) })
		},
		"garbage at the end of a table": func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.sst")[0], func(b []byte) []byte { return garbage(b, len(b)-1024, 1024) })
		},
		"one bit of a block": func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.sst")[0], func(b []byte) []byte { b[100] ^= 1; return b })
		},
		"short table": func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.sst")[0], func(b []byte) []byte { return b[:len(b)-100] })
		},
		"table without a beginning": func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.sst")[0], func(b []byte) []byte { return b[4096:] })
		},
		"empty table": func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.sst")[0], func(b []byte) []byte { return nil })
		},
		"missing table": func(t *testing.T, dir string) {
			os.Remove(files(t, dir, "*.sst")[0])
		},
		"missing manifest": func(t *testing.T, dir string) {
			os.Remove(files(t, dir, "MANIFEST")[0])
		},
		"short manifest": func(t *testing.T, dir string) {
			change(t, files(t, dir, "MANIFEST")[0], func(b []byte) []byte { return b[:len(b)-3] })
		},
		"garbage in the manifest": func(t *testing.T, dir string) {
			change(t, files(t, dir, "MANIFEST")[0], func(b []byte) []byte { return garbage(b, 4, 20) })
		},
		"garbage in the key registry": func(t *testing.T, dir string) {
			change(t, files(t, dir, "KEYREGISTRY")[0], func(b []byte) []byte { return garbage(b, 0, len(b)) })
		},
		"garbage in front of a log": func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.mem")[0], func(b []byte) []byte { return garbage(b, 0, 8) })
		},
		"log before the newest": func(t *testing.T, dir string) {
			path := files(t, dir, "*.mem")[0]
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(filepath.Dir(path), "00099.mem"), string(whole))
			change(t, path, func(b []byte) []byte { return garbage(b, 500, 100) })
		},
		"mark of a reader": func(t *testing.T, dir string) {
			writeFile(t, filepath.Join(dir, damagedFile), "seen by a reader\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyTree(t, dir)
			breakIt(t, dir)
			core, logs := observer.New(zap.WarnLevel)
			s, tab := mustOpen(t, dir, WithLogger(zap.New(core)))
			defer s.Close()
			if s.ProcessID() != id {
				t.Errorf("process id %q became %q", id, s.ProcessID())
			}
			if _, ok, err := tab.Checkpoint(); ok || err != nil {
				t.Errorf("checkpoint of an empty table: %v %v", ok, err)
			}
			if rows := storagetest.Dump(t, tab, storage.Range{}); len(rows) != 0 {
				t.Errorf("%d rows", len(rows))
			}
			if logs.FilterMessageSnippet("set aside").Len() != 1 {
				t.Errorf("warnings: %v", logs.All())
			}
			if aside, _ := filepath.Glob(dir + "/rows.damaged-*"); len(aside) != 1 {
				t.Errorf("set aside: %v", aside)
			}
			storagetest.Apply(t, tab, storagetest.Set("a", "1"))
		})
	}
}

// TestHarmlessLossOpensWithRows leaves what a kill or a careful hand leaves:
// rows up to a point in time, and never a checkpoint ahead of them.
func TestHarmlessLossOpensWithRows(t *testing.T) {
	dir, id := filled(t)
	all := damageRows + 2
	for name, test := range map[string]struct {
		breakIt    func(t *testing.T, dir string)
		rows       int
		checkpoint bool
	}{
		"nothing": {func(*testing.T, string) {}, all, true},
		"empty logs": {func(t *testing.T, dir string) {
			writeFile(t, filepath.Join(dir, rowsDir, "00099.mem"), "")
			writeFile(t, filepath.Join(dir, rowsDir, "000099.vlog"), "")
		}, all, true},
		"missing value log": {func(t *testing.T, dir string) {
			os.Remove(files(t, dir, "*.vlog")[0])
		}, all, true},
		"short value log": {func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.vlog")[0], func(b []byte) []byte { return b[:len(b)-100] })
		}, all, true},
		"garbage in the value log and its statistics": {func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.vlog")[0], func(b []byte) []byte { return garbage(b, 0, 1024) })
			writeFile(t, filepath.Join(dir, rowsDir, "DISCARD"), "x")
		}, all, true},
		"file of the newest log 100 bytes short": {func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.mem")[0], func(b []byte) []byte { return b[:len(b)-100] })
		}, all, true},
		"newest log loses its last 100 bytes": {func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.mem")[0], func(b []byte) []byte { return b[:logEnd(b)-100] })
		}, all, false},
		"garbage in the newest log": {func(t *testing.T, dir string) {
			change(t, files(t, dir, "*.mem")[0], func(b []byte) []byte { return garbage(b, logEnd(b)/2, 1024) })
		}, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyTree(t, dir)
			test.breakIt(t, dir)
			core, logs := observer.New(zap.WarnLevel)
			s, tab := mustOpen(t, dir, WithLogger(zap.New(core)))
			defer s.Close()
			if logs.Len() != 0 || s.ProcessID() != id {
				t.Errorf("process id %q for %q, warnings: %v", s.ProcessID(), id, logs.All())
			}
			_, ok, err := tab.Checkpoint()
			if err != nil || ok != test.checkpoint {
				t.Errorf("checkpoint: %v %v", ok, err)
			}
			if rows := len(storagetest.Dump(t, tab, storage.Range{})); rows != test.rows && test.rows >= 0 || rows < damageRows {
				t.Errorf("%d rows", rows)
			}
		})
	}
}

// raw writes a row as it is.
func raw(t *testing.T, tab storage.Table, key, value []byte, meta byte) {
	t.Helper()
	tb := tab.(*table)
	err := tb.db.do(func() error {
		return tb.db.write(tb, true, func(w *writer) error { return w.set(key, value, meta) })
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamageFoundByAReaderClosesTheStoreToAll(t *testing.T) {
	for name, read := range map[string]func(storage.Table) error{
		"get": func(tab storage.Table) error {
			_, _, err := tab.Get(nil, []byte("bad"))
			return err
		},
		"scan": func(tab storage.Table) error {
			s, err := tab.Snapshot()
			if err != nil {
				return err
			}
			defer s.Release()
			for _, e := range s.Scan(storage.Range{}) {
				err = errors.Join(err, e)
			}
			return err
		},
		"panic": func(tab storage.Table) error {
			return tab.(*table).db.do(func() error { panic("from below") })
		},
		"fault": func(tab storage.Table) error {
			return tab.(*table).db.do(func() error {
				var nothing *badger.Item
				return nothing.Value(nil)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, tab := mustOpen(t, dir)
			other := storagetest.Table(t, s, "t", 1)
			id := s.ProcessID()
			raw(t, tab, tab.(*table).place.key(nil, kindRow, []byte("bad")), make([]byte, bigIDSize+8-1), metaBig)
			if err := read(tab); !errors.Is(err, storage.ErrDamaged) {
				t.Fatalf("got %v, want ErrDamaged", err)
			}
			var e *storage.Error
			if err := other.Apply([]storage.Row{storagetest.Set("a", "1")}, nil); !errors.Is(err, storage.ErrDamaged) || !errors.As(err, &e) {
				t.Fatalf("apply after damage: %v", err)
			}
			mustClose(t, s)
			s, tab = mustOpen(t, dir)
			defer s.Close()
			if rows := storagetest.Dump(t, tab, storage.Range{}); len(rows) != 0 || s.ProcessID() != id {
				t.Fatalf("after the next open: %d rows, process id %q for %q", len(rows), s.ProcessID(), id)
			}
		})
	}
}

func TestPiecesThatNoRowNamesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	s, tab := mustOpen(t, dir)
	tb := tab.(*table)
	big := bytes.Repeat([]byte("x"), 3*chunkSize)
	storagetest.Apply(t, tab, storage.Row{Key: []byte("a"), Value: big}, storage.Row{Key: []byte("b"), Value: big})
	// As if a crash had left the first part of a write of "c" and of one over "a".
	for i, key := range []string{"c", "a"} {
		id := bigID{1 << 40, uint32(i)}
		row := tb.place.key(nil, kindRow, []byte(key))
		raw(t, tab, tb.place.big(id), append([]byte{0, 0, 0, 2}, row...), 0)
		raw(t, tab, tb.place.chunk(id, 0), big[:100], 0)
	}
	if got := count(t, tab, kindChunk); got != 8 {
		t.Fatalf("%d pieces before", got)
	}
	mustClose(t, s)
	s, tab = mustOpen(t, dir)
	defer s.Close()
	if pieces, entries := count(t, tab, kindChunk), count(t, tab, kindBig); pieces != 6 || entries != 2 {
		t.Fatalf("%d pieces, %d entries", pieces, entries)
	}
	for _, key := range []string{"a", "b"} {
		if v, ok, err := tab.Get(nil, []byte(key)); err != nil || !ok || !bytes.Equal(v, big) {
			t.Fatalf("%s: %d bytes, %v, %v", key, len(v), ok, err)
		}
	}
	storagetest.Apply(t, tab, storagetest.Set("a", "small"), storagetest.Del("b"))
	if pieces, entries := count(t, tab, kindChunk), count(t, tab, kindBig); pieces != 0 || entries != 0 {
		t.Fatalf("%d pieces, %d entries of no row", pieces, entries)
	}
}

// count counts the keys of a kind.
func count(t *testing.T, tab storage.Table, kind byte) (n int) {
	t.Helper()
	tb := tab.(*table)
	err := tb.db.do(func() error {
		it := tb.db.latest.NewIterator(badger.IteratorOptions{Prefix: tb.place.key(nil, kind, nil)})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLongKeysWithTheSameHash(t *testing.T) {
	same := func(c *config) { c.hash = func([]byte) (h [hashSize]byte) { return h } }
	dir := t.TempDir()
	s, tab := mustOpen(t, dir, same)
	defer func() { s.Close() }()
	prefix := string(bytes.Repeat([]byte("k"), maxKey))
	var want []string
	for i := range 9 {
		storagetest.Apply(t, tab, storagetest.Set(fmt.Sprint(prefix, 8-i), fmt.Sprint(i)))
		want = append(want, fmt.Sprint(prefix, i, "=", 8-i))
	}
	check := func() {
		t.Helper()
		if got := storagetest.Dump(t, tab, storage.Range{}); !slices.Equal(got, want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
		for _, kv := range want {
			key, value := kv[:maxKey+1], kv[maxKey+2:]
			if v, ok, err := tab.Get(nil, []byte(key)); err != nil || !ok || string(v) != value {
				t.Fatalf("%s: %q %v %v", key[maxKey:], v, ok, err)
			}
		}
	}
	check()
	storagetest.Apply(t, tab, storagetest.Del(prefix+"3"), storagetest.Set(prefix+"4", "new"), storagetest.Del(prefix+"5"))
	want = slices.Delete(want, 5, 6)
	want = slices.Delete(want, 3, 4)
	want[3] = prefix + "4=new"
	check()
	storagetest.Apply(t, tab, storagetest.Set(prefix+"5", "back"), storagetest.Set(prefix+"x", "one more"))
	want = slices.Insert(want, 4, prefix+"5=back")
	want = append(want, prefix+"x=one more")
	check()
	mustClose(t, s)
	s, tab = mustOpen(t, dir, same)
	check()
}
