package soak

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// diskMiB is the size of a disk that can be filled: enough for a store and
// two more that were set aside.
const diskMiB = 384

// disk is a small file system with a state directory on it.
type disk struct {
	root string
}

// mountDisk returns a disk below root, or an error where mounting is not
// allowed.
func mountDisk(root string) (*disk, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	if err := mountTmpfs(root, diskMiB<<20); err != nil {
		return nil, fmt.Errorf("mount a tmpfs: %w", err)
	}
	return &disk{root: root}, nil
}

func (d *disk) state() string  { return filepath.Join(d.root, "state") }
func (d *disk) filler() string { return filepath.Join(d.root, "filler") }

// fill leaves so many MiB free.
func (d *disk) fill(leave int) error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	chunk := make([]byte, 1<<20)
	for {
		if _, err = f.Write(chunk); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	return f.Truncate(max(0, size-int64(leave)<<20))
}

// free gives the space back, and that of rows which a store set aside.
func (d *disk) free() error {
	err := os.Remove(d.filler())
	found, globErr := filepath.Glob(filepath.Join(d.state(), "rows.damaged-*"))
	for _, f := range found {
		err = errors.Join(err, os.RemoveAll(f))
	}
	return errors.Join(err, globErr)
}

// unmount ends the disk.
func (d *disk) unmount() error { return unmount(d.root) }

// wipe removes what is in a state directory, and the directory itself.
func wipe(dir string) error {
	if dir == "" || !strings.Contains(dir, "state") {
		return fmt.Errorf("%q is not a state directory", dir)
	}
	return os.RemoveAll(dir)
}
