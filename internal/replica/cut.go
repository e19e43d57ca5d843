package replica

import (
	"context"
	"errors"
	"fmt"
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

// NewestEpoch returns the leader epoch of a partition, for the checkpoint of
// rows that were not read but written: such a checkpoint may tell an epoch that
// began after its last record. It gives up after a while, and returns -1 when
// it learned nothing.
func NewestEpoch(ctx context.Context, a kafka.Admin, tp kafka.TopicPartition) int32 {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	epoch, _, err := a.EpochEnd(ctx, tp, kafka.NewestEpoch)
	if err != nil {
		return -1
	}
	return epoch
}
