package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
)

func (a *saramaAdmin) Group(ctx context.Context, name string) (Group, error) {
	var group *sarama.GroupDescription
	err := a.d.retry(ctx, "describing group "+name, func() error {
		addr, err := a.d.coordinator(ctx, sarama.CoordinatorGroup, name)
		if err != nil {
			return err
		}
		var answer *sarama.DescribeGroupsResponse
		if err := a.conns.do(ctx, addr, func(b *sarama.Broker) (err error) {
			answer, err = b.DescribeGroups(&sarama.DescribeGroupsRequest{Version: 4, Groups: []string{name}})
			return err
		}); err != nil {
			a.d.forgetCoordinator(sarama.CoordinatorGroup, name)
			return err
		}
		if len(answer.Groups) != 1 {
			return sarama.ErrIncompleteResponse
		}
		group = answer.Groups[0]
		if err := kerror(group.Err); err != nil {
			a.d.forgetCoordinator(sarama.CoordinatorGroup, name)
			return err
		}
		return nil
	})
	if err != nil {
		return Group{}, fmt.Errorf("group %q: %w", name, err)
	}
	return describedGroup(name, group)
}

func describedGroup(name string, d *sarama.GroupDescription) (Group, error) {
	g := Group{Name: name, State: d.State, Protocol: d.Protocol, Shares: map[string]Share{}}
	for id, m := range d.Members {
		member := GroupMember{ID: id, Generation: -1}
		if m.GroupInstanceId != nil {
			member.InstanceID = *m.GroupInstanceId
		}
		metadata, err := m.GetMemberMetadata()
		if err != nil {
			return Group{}, fmt.Errorf("group %q: metadata of member %q: %w", name, id, err)
		}
		if metadata != nil {
			member.Topics, member.UserData = metadata.Topics, metadata.UserData
			for _, owned := range metadata.OwnedPartitions {
				for _, p := range owned.Partitions {
					member.Owned = append(member.Owned, TopicPartition{owned.Topic, p})
				}
			}
			if metadata.Version >= 2 {
				member.Generation = metadata.GenerationID
			}
		}
		g.Members = append(g.Members, member)

		assignment, err := m.GetMemberAssignment()
		if err != nil {
			return Group{}, fmt.Errorf("group %q: assignment of member %q: %w", name, id, err)
		}
		if assignment != nil {
			g.Shares[id] = decodedShare(assignment)
		}
	}
	slices.SortFunc(g.Members, func(x, y GroupMember) int { return cmp.Compare(x.ID, y.ID) })
	return g, nil
}

func decodedShare(a *sarama.ConsumerGroupMemberAssignment) Share {
	share := Share{UserData: a.UserData}
	for topic, partitions := range a.Topics {
		for _, p := range partitions {
			share.Partitions = append(share.Partitions, TopicPartition{topic, p})
		}
	}
	slices.SortFunc(share.Partitions, func(x, y TopicPartition) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
	})
	return share
}
