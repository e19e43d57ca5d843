package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rekastream/reka/kafka"
)

// bench is what all parts share.
type bench struct {
	options
	brokers []string
	dir     string
	prefix  string // of all names, so that runs on one cluster do not meet
	client  *kafka.Client
	wire    *kgo.Client // of admin
	admin   *kadm.Client
	node    int32  // the broker that leads all partitions
	addr    string // of it
	names   int
	loaded  map[string]string // topic by what is in it
}

func newBench(ctx context.Context, o options, brokers []string, dir string) (*bench, error) {
	b := &bench{options: o, brokers: brokers, dir: dir, loaded: map[string]string{},
		prefix: "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-"}
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, err
	}
	b.wire, b.admin = cl, kadm.NewClient(cl)
	meta, err := b.admin.BrokerMetadata(ctx)
	if err != nil {
		return nil, err
	}
	first := meta.Brokers[0]
	b.node, b.addr = first.NodeID, fmt.Sprintf("%s:%d", first.Host, first.Port)
	b.client, err = kafka.NewClient(brokers)
	return b, err
}

func (b *bench) close() {
	b.admin.Close()
	_ = b.client.Close() // nothing of it runs any more
}

// name returns a name that nothing has yet.
func (b *bench) name(what string) string {
	b.names++
	return fmt.Sprintf("%s%s-%d", b.prefix, what, b.names)
}

// folder returns an empty state directory. It is left to be removed with
// everything else, so that no run pays for another one's removal.
func (b *bench) folder() (string, error) { return os.MkdirTemp(b.dir, "state-*") }

// create makes a topic whose partitions are all led by one broker, as the raw
// loops need it.
func (b *bench) create(ctx context.Context, topic string, configs ...string) error {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, -1, -1
	for p := range b.partitions {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(p), []int32{b.node}
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	for _, c := range configs {
		k, v, _ := strings.Cut(c, "=")
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = k, &v
		t.Configs = append(t.Configs, config)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 30_000
	resp, err := req.RequestWith(ctx, b.wire)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if t.ErrorCode != 0 {
			return fmt.Errorf("create topic %s: %w", t.Topic, kerr.ErrorForCode(t.ErrorCode))
		}
	}
	return b.settled(ctx, topic)
}

// settled waits until the broker leads all partitions of a new topic: the raw
// loops do not ask twice.
func (b *bench) settled(ctx context.Context, topic string) error {
	for {
		ends, err := b.admin.ListEndOffsets(ctx, topic)
		if err == nil && ends.Error() == nil && len(ends[topic]) == b.partitions {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// output makes a topic to write to, which keeps little of it.
func (b *bench) output(ctx context.Context, what string) (string, error) {
	topic := b.name(what)
	return topic, b.create(ctx, topic, "segment.bytes=33554432", "retention.bytes=33554432")
}

// drop deletes topics of a run that is over; failing at it harms nobody.
func (b *bench) drop(ctx context.Context, topics ...string) {
	_, _ = b.admin.DeleteTopics(ctx, topics...)
}
