package kafka

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/IBM/sarama"
)

func groupMember(t *testing.T, id string, s Subscription, generation int32) sarama.GroupMember {
	t.Helper()
	req := &sarama.JoinGroupRequest{}
	if err := req.AddGroupProtocolMetadata("p", encodeSubscription(s, generation)); err != nil {
		t.Fatal(err)
	}
	return sarama.GroupMember{MemberId: id, Metadata: req.OrderedGroupProtocols[0].Metadata}
}

func TestSubscriptionComesBackAsItWas(t *testing.T) {
	sub := Subscription{
		Topics: []string{"b", "a"}, UserData: []byte{0, 1, 2},
		Owned: []TopicPartition{{"b", 2}, {"a", 1}, {"a", 0}},
	}
	instance := "i"
	raw := groupMember(t, "m", sub, 7)
	raw.GroupInstanceId = &instance
	want := sub
	want.Owned = []TopicPartition{{"a", 0}, {"a", 1}, {"b", 2}}
	got := decodeMembers([]sarama.GroupMember{raw})
	if !reflect.DeepEqual(got, []GroupMember{{ID: "m", InstanceID: "i", Subscription: want, Generation: 7}}) {
		t.Fatalf("%+v", got)
	}
}

func TestSubscriptionBytesDoNotDependOnTheOrderOfPartitions(t *testing.T) {
	a := Subscription{Topics: []string{"t"}, Owned: []TopicPartition{{"t", 1}, {"s", 0}, {"t", 0}}}
	b := Subscription{Topics: []string{"t"}, Owned: []TopicPartition{{"t", 0}, {"t", 1}, {"s", 0}}}
	if x, y := groupMember(t, "", a, 1).Metadata, groupMember(t, "", b, 1).Metadata; !bytes.Equal(x, y) {
		t.Fatalf("%x and %x", x, y)
	}
}

func TestAMemberThatCannotBeReadHidesNoOther(t *testing.T) {
	good := groupMember(t, "good", Subscription{Topics: []string{"t"}}, -1)
	got := decodeMembers([]sarama.GroupMember{{MemberId: "bad", Metadata: []byte{0, 1, 0xff}}, good})
	if len(got) != 2 || got[0].ID != "bad" || got[0].Topics != nil || got[0].Generation != -1 || len(got[1].Topics) != 1 {
		t.Fatalf("%+v", got)
	}
}

func TestShareComesBackInOrder(t *testing.T) {
	req := &sarama.SyncGroupRequest{}
	share := Share{Partitions: []TopicPartition{{"b", 0}, {"a", 11}, {"a", 2}}, UserData: []byte("routes")}
	if err := req.AddGroupAssignmentMember("m", encodeShare(share)); err != nil {
		t.Fatal(err)
	}
	got, err := decodeShare(&sarama.SyncGroupResponse{MemberAssignment: req.GroupAssignments[0].Assignment})
	want := Share{Partitions: []TopicPartition{{"a", 2}, {"a", 11}, {"b", 0}}, UserData: share.UserData}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
}

func FuzzDecodeMember(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 0})
	f.Add([]byte{0, 2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		got := decodeMembers([]sarama.GroupMember{{MemberId: "m", Metadata: data}})
		if len(got) != 1 || got[0].ID != "m" {
			t.Fatalf("%+v", got)
		}
	})
}

func FuzzDecodeShare(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		share, err := decodeShare(&sarama.SyncGroupResponse{MemberAssignment: data})
		if err != nil && share.Partitions != nil {
			t.Fatalf("%+v with %v", share, err)
		}
	})
}
