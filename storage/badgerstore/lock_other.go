//go:build !unix || aix || solaris

package badgerstore

import "os"

// badgerLocks says whether Badger must lock its directory itself.
const badgerLocks = true

// lockFile leaves the locking to Badger.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
