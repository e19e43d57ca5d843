package badgerstore

import (
	"fmt"
	"sync"

	"github.com/rekastream/reka/storage"
)

// Badger writes through memory maps, and a write to a map that finds the disk
// full ends the process. So there must be room for all that may be written
// before the next look: the rest of a request, every memtable that is not yet
// a table, and what compactions write while their old tables are still there.
const (
	spaceBase       = 8 * mib
	spaceMemtables  = 4 * memtable // at most, and no more than twice what was written
	spaceCompaction = 8 * memtable // at most, and no more than there are tables
	spaceStep       = 4 * mib      // bytes between two looks
)

// space watches the free space of a directory.
type space struct {
	dir  string
	free func(dir string) (uint64, error)
	ask  func() int64 // bytes in tables; nil: not open yet

	mu      sync.Mutex
	written int64 // bytes since the directory was empty of logs
	tables  int64 // bytes in tables, when last asked
	asked   int64 // what written was then
}

// wrote counts bytes that were written without a look of their own.
func (s *space) wrote(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written += n
}

// check returns ErrFull if there may be too little room to write n bytes,
// which count as written.
func (s *space) check(n int64) error {
	free, err := s.free(s.dir)
	if err != nil {
		return err
	}
	if need := s.need(n); free < uint64(need) {
		return fmt.Errorf("%w in %s: %d MiB free, %d MiB needed", storage.ErrFull, s.dir, free/mib, (need+mib-1)/mib)
	}
	return nil
}

func (s *space) need(n int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written += n
	if s.ask != nil && s.written-s.asked > memtable/2 {
		s.tables, s.asked = s.ask(), s.written
	}
	return spaceBase + min(2*s.written, spaceMemtables) + min(s.tables, spaceCompaction) + n
}
