package processor

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

// placement looks whether the keys of inputs lie where the client's
// partitioner puts them. Rows stay in the partition of their input, so a
// difference breaks nothing here, and views look further when a row is not
// where it should be; but joins need one placement for all their topics, and
// an operator wants to know.
type placement struct {
	place      kafka.Partitioner
	partitions int32
	log        *zap.Logger
	told       atomic.Bool
}

// lookEvery is how many records of a task pass between two looks, less one:
// a power of two less one.
const lookEvery = 63

// look checks a record and warns of the first that lies elsewhere.
func (p *placement) look(r *task.Record) {
	key, at := r.Key(), r.Place()
	if key == nil || r.Source().Offset < 0 || p.told.Load() {
		return
	}
	want := p.place.Partition(key, p.partitions)
	if want == at.Partition || p.told.Swap(true) {
		return
	}
	p.log.Warn("an input's key lies in another partition than the client's partitioner puts it (see kafka.WithPartitioner); its row stays with it",
		zap.String("partition", at.String()), zap.Int64("offset", r.Source().Offset), zap.String("key", kafka.QuoteKey(key)),
		zap.Int32("expected", want))
}
