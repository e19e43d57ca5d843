//go:build unix && !aix && !solaris

package badgerstore

import (
	"errors"
	"os"
	"syscall"

	"github.com/rekastream/reka/storage"
)

// badgerLocks says whether Badger must lock its directory itself.
const badgerLocks = false

// lockFile takes the lock of a directory. It ends with the file's Close, or
// with the process.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, storage.ErrLocked
	}
	return nil, err
}
