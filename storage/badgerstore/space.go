package badgerstore

import (
	"fmt"
	"sync"

	"github.com/rekastream/reka/storage"
)

// Badger writes through memory maps, and a write to a map that finds the disk
// full ends the process. So there must be room for what may be written before
// the next look: memtables that are filled and flushed meanwhile, and what a
// compaction needs while its old tables are still there.
const (
	spaceMemtables  = 4 * memtable
	spaceCompaction = 8 * memtable // at most, and no more than there are tables
	spaceStep       = 4 * mib      // bytes between two looks
)

// space watches the free space of a directory.
type space struct {
	dir    string
	free   func(dir string) (uint64, error)
	tables func() int64 // bytes in tables; nil: none

	mu      sync.Mutex
	written int64 // since tables was asked
	size    int64 // what it said
}

// check returns ErrFull if there may be too little room to write n bytes.
func (s *space) check(n int64) error {
	free, err := s.free(s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.written += n; s.tables != nil && (s.size == 0 || s.written > memtable) {
		s.size, s.written = s.tables(), 0
	}
	need := spaceMemtables + min(s.size, spaceCompaction) + n
	s.mu.Unlock()
	if free >= uint64(need) {
		return nil
	}
	return fmt.Errorf("%w in %s: %d MiB free, %d MiB needed", storage.ErrFull, s.dir, free/mib, (need+mib-1)/mib)
}
