package processor

import (
	"cmp"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/assign"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

// slot is one partition of a subgraph that this member has, gets, or gives up.
type slot struct {
	id       assign.Task
	of       *subgraph
	task     *task.Task // nil while it is being taken over
	running  bool
	closing  bool
	written  bool
	since    time.Time // of closing
	wanted   bool      // closing, and assigned again meanwhile
	takeover *takeover // as long as there is no task
}

// partition returns the slot's partition of a topic of its subgraph.
func (sl *slot) partition(topic string) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: topic, Partition: sl.id.Partition}
}

// fields say in a log which slot it is.
func (sl *slot) fields(more ...zap.Field) []zap.Field {
	return append([]zap.Field{
		zap.String("group", sl.of.spec.Group), zap.String("subgraph", sl.id.Subgraph), zap.Int32("partition", sl.id.Partition),
	}, more...)
}

// placed says of which subgraph an error is, where there are several.
func (sl *slot) placed(err error) error {
	if sl.id.Subgraph == mainPart {
		return err
	}
	return fmt.Errorf("subgraph %s: %w", sl.id.Subgraph, err)
}

// liveTask is a task that runs or is restored.
type liveTask struct {
	of   *part
	task *task.Task
}

// compareTasks orders by subgraph, in order of the graph, then by partition.
func (s *session) compareTasks(a, b assign.Task) int {
	if a.Subgraph != b.Subgraph {
		for _, sg := range s.subgraphs {
			switch sg.spec.Subgraph {
			case a.Subgraph:
				return -1
			case b.Subgraph:
				return 1
			}
		}
	}
	return cmp.Compare(a.Partition, b.Partition)
}
