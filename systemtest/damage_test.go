package systemtest

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/badgerstore"
)

// storeFiles returns the files of a store that match, the newest last.
func storeFiles(t *testing.T, s service, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir, "rows", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s in the store: %v", pattern, err)
	}
	slices.Sort(files)
	return files
}

func cutFile(t *testing.T, path string, bytes int64) {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, st.Size()-bytes); err != nil {
		t.Fatal(err)
	}
}

func scribble(t *testing.T, path string, bytes int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range bytes {
		data[(len(data)-bytes)/2+i] ^= byte(1 + rand.IntN(255))
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// After each kill files are damaged too. Every start goes well by itself,
// with one warning where rows had to be set aside, and ends with the rows of
// the changelog.
func TestStoreDamagedAfterAKillIsOpenedOrBuiltAnew(t *testing.T) {
	b := onFake(t)
	c, s := b.client(t), newService(t, b)
	b.topics(t, c, 3, s.Input)
	l := newLoad(t, c, s.Input)
	r := s.start(t, c)
	l.emit(t, 20_000)
	l.counted(t, c, s.Group)
	r.stop(t)
	for _, damage := range []struct {
		what     string
		do       func(t *testing.T)
		warnings int
	}{
		{"nothing but the kill", func(*testing.T) {}, 0},
		{"newest log cut", func(t *testing.T) { cutFile(t, slices.Max(storeFiles(t, s, "*.mem")), 100) }, 0},
		{"value log cut", func(t *testing.T) { cutFile(t, slices.Max(storeFiles(t, s, "*.vlog")), 100) }, 0},
		{"value log gone", func(t *testing.T) {
			if err := os.Remove(storeFiles(t, s, "*.vlog")[0]); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"table scribbled over", func(t *testing.T) { scribble(t, storeFiles(t, s, "*.sst")[0], 1024) }, 1},
	} {
		child := spawn(t, s)
		child.awaitReady(t)
		l.emit(t, 300)
		moment(t, time.Duration(rand.IntN(1500))*time.Millisecond)
		child.kill()
		damage.do(t)
		log, logs := warned()
		r := s.start(t, c, processor.WithLogger(log), processor.WithStorage(badgerstore.In(s.Dir, badgerstore.WithLogger(log))))
		l.counted(t, c, s.Group)
		r.stop(t)
		if n := logs.Len(); n != damage.warnings {
			t.Errorf("%s: warnings %v, want %d", damage.what, logs.All(), damage.warnings)
		}
		sameAsStore(t, c, s)
	}
}

func TestSecondProcessOnAStateDirectoryIsRefusedAndHarmsNothing(t *testing.T) {
	b := onFake(t)
	c, s := b.client(t), newService(t, b)
	b.topics(t, c, 3, s.Input)
	l := newLoad(t, c, s.Input)
	child := spawn(t, s)
	child.awaitReady(t)
	l.emit(t, 500)
	for range 3 {
		p, err := s.processor(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Run(t.Context()); !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), s.Dir) {
			t.Fatalf("Run of the second one: %v, want ErrLocked that names the directory", err)
		}
		l.emit(t, 500)
	}
	l.counted(t, c, s.Group)
	child.stop(t)
	sameAsStore(t, c, s)
}
