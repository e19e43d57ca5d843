package kafka

import (
	"cmp"
	"slices"

	"github.com/IBM/sarama"
)

// groupProtocolType is that of consumers: Kafka's tools show members, shares
// and lag of such groups.
const groupProtocolType = "consumer"

// subscriptionVersion is the first that tells the generation of the owned
// partitions.
const subscriptionVersion = 2

// encodeSubscription is deterministic: a broker compares bytes to see
// whether a member has changed.
func encodeSubscription(s Subscription, generation int32) *sarama.ConsumerGroupMemberMetadata {
	return &sarama.ConsumerGroupMemberMetadata{
		Version: subscriptionVersion, Topics: s.Topics, UserData: s.UserData,
		OwnedPartitions: encodePartitions(s.Owned), GenerationID: generation,
	}
}

func encodePartitions(tps []TopicPartition) []*sarama.OwnedPartition {
	var topics []*sarama.OwnedPartition
	for _, tp := range sortedPartitions(tps) {
		if n := len(topics); n == 0 || topics[n-1].Topic != tp.Topic {
			topics = append(topics, &sarama.OwnedPartition{Topic: tp.Topic})
		}
		last := topics[len(topics)-1]
		last.Partitions = append(last.Partitions, tp.Partition)
	}
	return topics
}

func sortedPartitions(tps []TopicPartition) []TopicPartition {
	sorted := slices.Clone(tps)
	slices.SortFunc(sorted, func(a, b TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return sorted
}

// decodeMembers reads what the members of a group joined with. One whose
// bytes make no sense counts as subscribed to nothing: it must not keep the
// others from their work.
func decodeMembers(raw []sarama.GroupMember) []GroupMember {
	members := make([]GroupMember, 0, len(raw))
	for _, r := range raw {
		member := GroupMember{ID: r.MemberId, Generation: -1}
		if r.GroupInstanceId != nil {
			member.InstanceID = *r.GroupInstanceId
		}
		one := sarama.JoinGroupResponse{Members: []sarama.GroupMember{r}}
		if decoded, err := one.GetMembers(); err == nil {
			meta := decoded[r.MemberId]
			member.Topics, member.UserData = meta.Topics, meta.UserData
			for _, o := range meta.OwnedPartitions {
				for _, p := range o.Partitions {
					member.Owned = append(member.Owned, TopicPartition{o.Topic, p})
				}
			}
			if meta.Version >= subscriptionVersion {
				member.Generation = meta.GenerationID
			}
		}
		members = append(members, member)
	}
	return members
}

func encodeShare(s Share) *sarama.ConsumerGroupMemberAssignment {
	topics := map[string][]int32{}
	for _, tp := range s.Partitions {
		topics[tp.Topic] = append(topics[tp.Topic], tp.Partition)
	}
	return &sarama.ConsumerGroupMemberAssignment{Topics: topics, UserData: s.UserData}
}

// decodeShare returns the partitions in order of topic and number.
func decodeShare(answer *sarama.SyncGroupResponse) (Share, error) {
	if len(answer.MemberAssignment) == 0 { // what a leader left out
		return Share{}, nil
	}
	decoded, err := answer.GetMemberAssignment()
	if err != nil {
		return Share{}, err
	}
	share := Share{UserData: decoded.UserData}
	for topic, partitions := range decoded.Topics {
		for _, p := range partitions {
			share.Partitions = append(share.Partitions, TopicPartition{topic, p})
		}
	}
	share.Partitions = sortedPartitions(share.Partitions)
	return share, nil
}
