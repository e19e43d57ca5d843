package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// brokers asks and changes the cluster, directly and without Reka's code.
// Safe for concurrent use.
type brokers struct {
	client *kgo.Client
}

func newBrokers(addrs []string) (*brokers, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ClientID("soak-checker"),
		kgo.MaxVersions(kversion.V3_6_0()), // offsets by name, not by topic id
		kgo.RetryTimeout(10*time.Second), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return &brokers{c}, nil
}

func (b *brokers) close() { b.client.Close() }

// replica is a partition as the metadata has it.
type replica struct {
	topic         string
	partition     int32
	leader        int32
	replicas, isr []int32
}

func (b *brokers) replicas(ctx context.Context) ([]replica, error) {
	req := kmsg.NewPtrMetadataRequest()
	res, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return nil, err
	}
	var out []replica
	for _, t := range res.Topics {
		if t.Topic == nil {
			continue
		}
		for _, p := range t.Partitions {
			out = append(out, replica{*t.Topic, p.Partition, p.Leader, p.Replicas, p.ISR})
		}
	}
	return out, nil
}

// whole waits until every partition has all its replicas in sync.
func (b *brokers) whole(ctx context.Context) error {
	for {
		all, err := b.replicas(ctx)
		lacking := slices.IndexFunc(all, func(r replica) bool { return len(r.isr) < len(r.replicas) || r.leader < 0 })
		if err == nil && len(all) > 0 && lacking < 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if err == nil && lacking >= 0 {
				err = fmt.Errorf("%s/%d has replicas %v, in sync %v", all[lacking].topic, all[lacking].partition, all[lacking].replicas, all[lacking].isr)
			}
			return errors.Join(ctx.Err(), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// moveLeaders makes another replica in sync the leader of some partitions,
// internal topics included. It returns how many were asked to move.
func (b *brokers) moveLeaders(ctx context.Context, pick uint32) (int, error) {
	all, err := b.replicas(ctx)
	if err != nil {
		return 0, err
	}
	assign, elect := kmsg.NewPtrAlterPartitionAssignmentsRequest(), kmsg.NewPtrElectLeadersRequest()
	assign.TimeoutMillis, elect.TimeoutMillis = 10_000, 10_000
	n := 0
	for i, r := range all {
		if (uint32(i)*2654435761^pick)%4 != 0 || len(r.isr) < 2 || len(r.isr) < len(r.replicas) {
			continue
		}
		n++
		order := slices.Clone(r.replicas)
		for order[0] == r.leader {
			order = append(order[1:], order[0])
		}
		p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		p.Partition, p.Replicas = r.partition, order
		t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
		t.Topic, t.Partitions = r.topic, append(t.Partitions, p)
		assign.Topics = append(assign.Topics, t)
		e := kmsg.NewElectLeadersRequestTopic()
		e.Topic, e.Partitions = r.topic, []int32{r.partition}
		elect.Topics = append(elect.Topics, e)
	}
	if n == 0 {
		return 0, nil
	}
	a, err := assign.RequestWith(ctx, b.client)
	if err != nil {
		return 0, err
	}
	if err := kerr.ErrorForCode(a.ErrorCode); err != nil {
		return 0, err
	}
	e, err := elect.RequestWith(ctx, b.client)
	if err != nil {
		return 0, err
	}
	return n, kerr.ErrorForCode(e.ErrorCode)
}

// place names a committed offset.
type place struct {
	group, topic string
	partition    int32
}

// committed returns a group's committed offsets.
func (b *brokers) committed(ctx context.Context, group string) (map[place]int64, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	req.Groups = append(req.Groups, g)
	res, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return nil, err
	}
	out := map[place]int64{}
	for _, g := range res.Groups {
		if err := kerr.ErrorForCode(g.ErrorCode); err != nil {
			return nil, err
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 && p.Offset >= 0 {
					out[place{group, t.Topic, p.Partition}] = p.Offset
				}
			}
		}
	}
	return out, nil
}

// Ends of a log.
const (
	highWatermark int8 = iota
	lastStable
)

// ends returns the end of each partition of topics, of one kind.
func (b *brokers) ends(ctx context.Context, kind int8, topics ...string) (map[string]map[int32]int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, kind
	for _, name := range topics {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = name
		for i := range int32(partitions) {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp = i, -1
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	out := map[string]map[int32]int64{}
	// Each shard is the answer of one node.
	for _, shard := range b.client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return nil, fmt.Errorf("end of %s/%d: %w", t.Topic, p.Partition, err)
				}
				if out[t.Topic] == nil {
					out[t.Topic] = map[int32]int64{}
				}
				out[t.Topic][p.Partition] = p.Offset
			}
		}
	}
	return out, nil
}
