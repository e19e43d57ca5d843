package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// cut is what the leader says of the leader epoch of a checkpoint: up to
// where its log is the one that the checkpoint was read from. The zero value
// knows nothing.
type cut struct {
	asked int32 // the checkpoint's epoch + 1, 0: none was asked about
	epoch int32 // -1: the leader knows nothing of it
	end   int64
}

func (c cut) unsound(pos int64) string {
	switch {
	case c.asked == 0 || c.epoch >= 0 && pos <= c.end:
		return ""
	case c.epoch < 0:
		return fmt.Sprintf("its position %d was read in leader epoch %d, which the log has not come to", pos, c.asked-1)
	}
	return fmt.Sprintf("its position %d was read in leader epoch %d, and the log was cut off at %d since", pos, c.asked-1, c.end)
}

// AskCut completes the bounds of one partition: it asks the leader whether
// the log still has what a checkpoint stands for. A log that was cut off and
// has grown again looks like one that was never cut, but for its leader
// epochs. Nothing is asked about a checkpoint that does not tell an epoch, or
// is of another topic; and where the brokers cannot or may not tell, the
// bounds stay as they are. Other errors are returned.
func (b *Bounds) AskCut(ctx context.Context, a kafka.Admin, tp kafka.TopicPartition, cp storage.Checkpoint) error {
	b.cut = cut{}
	if cp.LeaderEpoch < 0 || changed(cp.TopicID, b.TopicID) {
		return nil
	}
	epoch, end, err := a.EpochEnd(ctx, tp, cp.LeaderEpoch)
	switch {
	case errors.Is(err, kafka.ErrNotAuthorized), errors.Is(err, kafka.ErrUnsupported):
		return nil
	case err != nil:
		return fmt.Errorf("ask %s for the end of leader epoch %d: %w", tp, cp.LeaderEpoch, err)
	}
	b.cut = cut{cp.LeaderEpoch + 1, epoch, end}
	return nil
}

// Epochs asks for leader epochs on behalf of tables whose rows are written, not
// read: nothing else tells the epoch of what was written. All methods may be
// called from any goroutine, and on nil, which knows nothing.
type Epochs struct {
	admin kafka.Admin
	clock kafka.Clock

	mu   sync.Mutex
	next time.Time // nobody is asked before; guarded by mu
}

// Times of Epochs: how long a question may take, and how long none is asked
// after one that was not answered. Flushes wait for the answer, also when
// everything ends because the brokers are gone.
const (
	epochPatience = time.Second
	epochSilence  = 30 * time.Second
)

// NewEpochs returns an Epochs over a driver.
func NewEpochs(d kafka.Driver) *Epochs { return &Epochs{admin: d.Admin(), clock: d.Clock()} }

// Cut completes bounds as Bounds.AskCut does.
func (e *Epochs) Cut(ctx context.Context, b *Bounds, tp kafka.TopicPartition, cp storage.Checkpoint) error {
	if e == nil {
		return nil
	}
	return b.AskCut(ctx, e.admin, tp, cp)
}

// Newest returns the epoch of a partition's leader, -1 if it is not told soon,
// or there is no topic (a table without a log).
// It suits the checkpoint of what was acknowledged before: that may tell an
// epoch that began after its last record.
func (e *Epochs) Newest(tp kafka.TopicPartition) int32 {
	if e == nil || tp.Topic == "" || e.silent() {
		return -1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := e.clock.AfterFunc(epochPatience, cancel)
	defer timer.Stop()
	epoch, _, err := e.admin.EpochEnd(ctx, tp, kafka.NewestEpoch)
	if err != nil && !errors.Is(err, kafka.ErrUnknownTopic) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.next = e.clock.Now().Add(epochSilence)
	}
	return epoch
}

func (e *Epochs) silent() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.clock.Now().Before(e.next)
}
