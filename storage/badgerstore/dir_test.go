package badgerstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/storagetest"
)

// openFails opens a directory, checks the error, and that nothing in the
// directory changed.
func openFails(t *testing.T, dir string, want error) error {
	t.Helper()
	before := listing(t, dir)
	_, err := In(dir).Open()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("got %v, want %v that names %s", err, want, dir)
	}
	if after := listing(t, dir); after != before {
		t.Fatalf("directory changed:\n%s\n%s", before, after)
	}
	return err
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		b.WriteString(path + ":" + string(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoryInUseByAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, "hold", dir)
	if _, err := In(dir).Open(); !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("got %v, want ErrLocked that names the directory", err)
	}
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	s, _ := mustOpen(t, dir)
	mustClose(t, s)
}

func TestForeignDirectoryIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/precious", "data")
	openFails(t, dir, storage.ErrForeign)

	dir = t.TempDir()
	writeFile(t, dir+"/"+formatFile, "something else 1\n")
	openFails(t, dir, storage.ErrForeign)
}

func TestNewerFormatIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustClose(t, s)
	writeFile(t, dir+"/"+formatFile, formatName+"2\n")
	openFails(t, dir, storage.ErrNewer)
}

func TestFileInPlaceOfDirectory(t *testing.T) {
	path := t.TempDir() + "/file"
	writeFile(t, path, "x")
	var e *storage.Error
	if _, err := In(path).Open(); !errors.As(err, &e) || e.Place != path || errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
}

func TestFirstOpenThatWasInterrupted(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/"+lockName, "")
	writeFile(t, dir+"/"+processFile, "abc\n")
	writeFile(t, dir+"/"+formatFile+tempSuffix, "re")
	if err := os.Mkdir(dir+"/lost+found", 0o700); err != nil {
		t.Fatal(err)
	}
	s, _ := mustOpen(t, dir)
	if s.ProcessID() != "abc" {
		t.Fatalf("process id %q", s.ProcessID())
	}
	mustClose(t, s)
}

func TestNobodyElseCanReadTheState(t *testing.T) {
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	dir := t.TempDir() + "/a/state"
	s, tab := mustOpen(t, dir)
	storagetest.Apply(t, tab, storagetest.Set("a", "1"))
	defer s.Close()
	for _, d := range []string{dir, dir + "/" + rowsDir} {
		if st, err := os.Stat(d); err != nil || st.Mode().Perm() != 0o700 {
			t.Fatalf("%s: %v %v", d, st.Mode(), err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if st, err := e.Info(); err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Fatalf("%s: %v %v", e.Name(), st.Mode(), err)
		}
	}
}

func TestSameDirectoryUnderTwoNamesIsOneStore(t *testing.T) {
	dir := t.TempDir() + "/d"
	s1, tab := mustOpen(t, dir)
	defer s1.Close()
	link := t.TempDir() + "/link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir + "/../d/", link} {
		s2, err := In(name).Open()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := s2.Table("t", 0); !errors.Is(err, storage.ErrBusy) {
			t.Fatalf("%s: got %v, want ErrBusy", name, err)
		}
		mustClose(t, s2)
	}
	storagetest.Apply(t, tab, storagetest.Set("a", "1"))
}

func TestCopyOfAStoppedDirectoryKeepsProcessIDAndRows(t *testing.T) {
	dir := t.TempDir()
	s, tab := mustOpen(t, dir)
	storagetest.Apply(t, tab, storagetest.Set("a", "1"))
	id := s.ProcessID()
	mustClose(t, s)
	s, tab = mustOpen(t, copyTree(t, dir))
	defer s.Close()
	if s.ProcessID() != id {
		t.Fatalf("process id %q became %q", id, s.ProcessID())
	}
	if got := storagetest.Dump(t, tab, storage.Range{}); len(got) != 1 {
		t.Fatalf("rows: %q", got)
	}
}
