package kafka

import (
	"context"
	"fmt"
	"maps"
)

// TopicSpec describes a topic that must exist.
type TopicSpec struct {
	Name string

	// Partitions is the count wanted; 0: the broker's default when created,
	// any when it exists.
	Partitions int32

	// Replicas is the replication factor for creation; 0: the broker's
	// default. It is not checked on a topic that exists.
	Replicas int16

	// Configs are settings to create the topic with.
	Configs map[string]string

	// Require names those of Configs that an existing topic must have too.
	Require []string
}

// TopicMismatchError says that an existing topic is not as it must be.
// Nothing was changed.
type TopicMismatchError struct {
	Topic, Setting, Found, Wanted string
}

// Error names topic, setting, what was found and what was wanted.
func (e *TopicMismatchError) Error() string {
	return fmt.Sprintf("topic %s: %s is %s, want %s", e.Topic, e.Setting, e.Found, e.Wanted)
}

// ChangelogConfigs returns the settings of a compacted changelog topic. The
// map is the caller's.
func ChangelogConfigs() map[string]string { return maps.Clone(changelogConfigs) }

// LoopConfigs returns the settings of a topic whose records are deleted by
// its consumer once it has committed them, and by nothing else. The map is
// the caller's.
func LoopConfigs() map[string]string { return maps.Clone(loopConfigs) }

var (
	changelogConfigs = map[string]string{
		"cleanup.policy":            "compact",
		"min.cleanable.dirty.ratio": "0.3",
		"delete.retention.ms":       "86400000",
		"min.compaction.lag.ms":     "60000",
		"segment.bytes":             "104857600",
	}
	loopConfigs = map[string]string{
		"cleanup.policy":  "delete",
		"retention.ms":    "-1",
		"retention.bytes": "-1",
		"segment.bytes":   "52428800",
	}
)

// EnsureTopics creates the topics that do not exist and checks those that
// do. What is wrong with any of them is returned together, each as a
// *TopicMismatchError or a broker's error. Another process may create the
// same topics at the same time.
func (c *Client) EnsureTopics(ctx context.Context, specs ...TopicSpec) error {
	return ensureTopics(ctx, c.driver.Admin(), specs)
}
