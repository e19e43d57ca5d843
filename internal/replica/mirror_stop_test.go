package replica

import (
	"errors"
	"testing"
	"time"

	"github.com/rekastream/reka/storage"
)

// stuckStorage is a storage whose writes wait until they are let go.
type stuckStorage struct {
	storage.Builder
	free chan struct{} // closed by the test
}

type stuckStore struct {
	storage.Store
	free chan struct{}
}

type stuckTable struct {
	storage.Table
	free chan struct{}
}

func (b stuckStorage) Open() (storage.Store, error) {
	s, err := b.Builder.Open()
	return stuckStore{s, b.free}, err
}

func (s stuckStore) Table(name string, p int32) (storage.Table, error) {
	t, err := s.Store.Table(name, p)
	if err != nil {
		return nil, err
	}
	return stuckTable{t, s.free}, nil
}

func (t stuckTable) Apply(rows []storage.Row, cp *storage.Checkpoint) error {
	<-t.free
	return t.Table.Apply(rows, cp)
}

func TestStopTimeoutBoundsAStorageThatHangs(t *testing.T) {
	inBubble(t, 1, func(x *mirrorTest) {
		x.fill(10)
		stuck := stuckStorage{x.builder, make(chan struct{})}
		x.start(func(c *MirrorConfig) { c.Store, c.StopTimeout = stuck, 5*time.Second })
		x.ready()
		x.cancel()
		x.cancel = nil
		before := time.Now()
		if err := <-x.done; !errors.Is(err, ErrStopTimeout) {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(before); took != 5*time.Second {
			t.Errorf("took %s", took)
		}
		close(stuck.free)
	})
}
