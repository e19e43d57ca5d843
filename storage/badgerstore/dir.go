package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/storage"
)

// What lies in a state directory.
const (
	formatFile  = "FORMAT"  // says that the directory is ours, and the version
	processFile = "PROCESS" // the process id; written before FORMAT
	lockName    = "LOCK"    // locked while open
	damagedFile = "DAMAGED" // left by a reader: set the rows aside at the next open
	rowsDir     = "rows"    // Badger's own

	formatName    = "reka state "
	formatVersion = 1

	tempSuffix = ".tmp"
)

// directory is a state directory that this process has locked.
type directory struct {
	path string
	lock *os.File
	id   string // process id
	log  *zap.Logger
}

// openDirectory checks that the directory is ours or empty, locks it, and
// gives it its identity if it has none. What is not ours is not touched.
func openDirectory(path string, log *zap.Logger) (*directory, error) {
	if _, err := inspect(path); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(path, lockName))
	if err != nil {
		return nil, err
	}
	d := &directory{path: path, lock: lock, log: log}
	if err := d.identify(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// inspect reports whether a directory is ours; false with no error means that
// it is empty.
func inspect(path string) (bool, error) {
	b, err := os.ReadFile(filepath.Join(path, formatFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, onlyOurs(path)
	}
	if err != nil {
		return false, err
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(string(b)), formatName)
	version, err := strconv.Atoi(text)
	switch {
	case !ok || err != nil || version < 1:
		return false, storage.ErrForeign
	case version > formatVersion:
		return false, fmt.Errorf("%w: %d, known is %d", storage.ErrNewer, version, formatVersion)
	}
	return true, nil
}

// onlyOurs accepts a directory without FORMAT if it holds nothing but what a
// first open that was interrupted leaves, or what a fresh file system has.
func onlyOurs(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case lockName, processFile, processFile + tempSuffix, formatFile + tempSuffix, "lost+found":
		default:
			return fmt.Errorf("%w: it holds %q", storage.ErrForeign, e.Name())
		}
	}
	return nil
}

func (d *directory) identify() error {
	ours, err := inspect(d.path)
	if err != nil {
		return err
	}
	id, err := os.ReadFile(d.file(processFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	d.id = strings.TrimSpace(string(id))
	if d.id == "" {
		d.id = storage.NewProcessID()
		if err := d.write(processFile, d.id+"\n"); err != nil {
			return err
		}
	}
	if !ours {
		return d.write(formatFile, formatName+strconv.Itoa(formatVersion)+"\n")
	}
	return nil
}

// prepare sets the rows aside if they were found damaged, and makes the
// directory for them.
func (d *directory) prepare() error {
	if why, err := os.ReadFile(d.file(damagedFile)); err == nil {
		if err := d.setAside(strings.TrimSpace(string(why))); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(d.rows(), 0o700); err != nil {
		return err
	}
	return os.Chmod(d.rows(), 0o700) //nolint:gosec // a directory
}

// setAside renames the rows and starts with none. The process id stays.
func (d *directory) setAside(why string) error {
	to := d.rows() + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000000")
	if err := os.Rename(d.rows(), to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Remove(d.file(damagedFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	d.log.Warn("local state is damaged: set aside, to be rebuilt from the log",
		zap.String("directory", d.path), zap.String("moved_to", to), zap.String("cause", why))
	if err := os.Mkdir(d.rows(), 0o700); err != nil {
		return err
	}
	return syncDir(d.path)
}

// markDamaged makes the next open set the rows aside.
func (d *directory) markDamaged(why error) {
	if err := d.write(damagedFile, why.Error()+"\n"); err != nil {
		d.log.Warn("cannot mark the local state as damaged", zap.String("directory", d.path), zap.Error(err))
	}
}

// write makes a small file, whole or not at all.
func (d *directory) write(name, text string) error {
	tmp := d.file(name + tempSuffix)
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, d.file(name))
	}
	if err != nil {
		return err
	}
	return syncDir(d.path)
}

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

func (d *directory) rows() string { return d.file(rowsDir) }

func (d *directory) unlock() error { return d.lock.Close() }

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
