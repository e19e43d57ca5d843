package kafkatest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
)

// Env is what one case runs on. A case gets an Env of its own; drivers in it
// are closed by whoever made them (testing.T.Cleanup).
type Env struct {
	// Driver is the driver of the first process.
	Driver kafka.Driver

	// Second is a driver of another process on the same cluster.
	Second kafka.Driver

	// Advance lets time pass: a virtual clock is moved, real time is waited
	// for.
	Advance func(d time.Duration)

	// Session is the shortest session timeout that the brokers accept.
	// Default 6 s.
	Session time.Duration

	// Control writes one control record (the end of a transaction) behind
	// everything in a partition. Nil: the environment cannot.
	Control func(t *testing.T, tp kafka.TopicPartition)

	// Compact runs the log cleaner over a topic now. Nil: the environment
	// cannot.
	Compact func(t *testing.T, topic string)

	// Elect makes a partition's leader begin a new epoch, another broker or
	// the same one, without losing a record. Nil: the environment cannot.
	Elect func(t *testing.T, tp kafka.TopicPartition)

	// Truncate elects a leader that lacks everything from an offset on, and
	// writes records to it before anybody can look. Nil: the environment
	// cannot.
	Truncate func(t *testing.T, tp kafka.TopicPartition, offset int64, records ...kafka.Record)

	// Lacks says what the environment does differently from a real broker,
	// each with the reason. Cases that need it are skipped with that reason.
	Lacks map[Capability]string
}

// Capability is something that a real broker does and a stand-in may not.
type Capability string

// The capabilities that an Env can lack.
const (
	// TopicIDs: topics have identities.
	TopicIDs Capability = "topic ids"
	// RecordChecks: a record without a key is refused by a compacted topic.
	RecordChecks Capability = "record checks"
	// TopicNameChecks: names that are not legal are refused.
	TopicNameChecks Capability = "topic name checks"
	// MetadataLimit: commit metadata over 4,096 bytes is refused.
	MetadataLimit Capability = "commit metadata limit"
	// StableLogStart: compaction leaves the log start where it is.
	StableLogStart Capability = "stable log start"
	// MessageLimit: max.message.bytes is enforced.
	MessageLimit Capability = "message size limit"
	// InitFencing: an owner of a transactional id cannot renew its epoch once
	// another one was given out.
	InitFencing Capability = "fencing at initialisation"
	// PendingByPartition: a pending offset of one partition does not hold back
	// the stable offsets of another.
	PendingByPartition Capability = "pending offsets by partition"
	// OffsetsTopic: the topic of groups' offsets can be asked about.
	OffsetsTopic Capability = "topic of groups' offsets"
	// EmptyEpochs: a leader knows of epochs in which nothing was written.
	EmptyEpochs Capability = "empty leader epochs"
)

// need skips the case if the environment lacks c.
func (e Env) need(t *testing.T, c Capability) {
	t.Helper()
	if why, ok := e.Lacks[c]; ok {
		t.Skipf("no %s: %s", c, why)
	}
}

// names makes topic and group names unique: a cluster may outlive many runs.
var names atomic.Int64

func (e Env) name(kind string) string {
	return fmt.Sprintf("kafkatest-%s-%d-%d", kind, time.Now().UnixNano(), names.Add(1))
}

// topic creates a topic and returns its name.
func (e Env) topic(t *testing.T, partitions int32, configs ...string) string {
	t.Helper()
	name := e.name("topic")
	spec := kafka.TopicSpec{Name: name, Partitions: partitions, Configs: map[string]string{}}
	for i := 0; i+1 < len(configs); i += 2 {
		spec.Configs[configs[i]] = configs[i+1]
	}
	if err := e.Driver.Admin().CreateTopics(ctx(t), spec); err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	return name
}

// patience is how long a condition may take on the slowest environment.
const patience = 30 * time.Second

// ctx returns a context that ends with the case, or after patience.
func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return c
}

type testCase struct {
	name string
	run  func(*testing.T, Env)
}

// Run runs the whole suite. open is called for each case.
func Run(t *testing.T, open func(t *testing.T) Env) {
	subjects := []struct {
		name  string
		cases []testCase
	}{
		{"admin", adminCases},
		{"produce", produceCases},
		{"fetch", fetchCases},
		{"follow", followCases},
		{"fetch errors", fetchErrorCases},
		{"member", memberCases},
		{"static member", staticCases},
		{"commit", commitCases},
		{"transactor", transactorCases},
		{"transactor offsets", transactorOffsetsCases},
		{"transactor fence", transactorFenceCases},
		{"writers", writersCases},
		{"epochs", epochCases},
		{"client", clientCases},
	}
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.cases {
				t.Run(c.name, func(t *testing.T) {
					e := open(t)
					if e.Session == 0 {
						e.Session = 6 * time.Second
					}
					c.run(t, e)
				})
			}
		})
	}
}
