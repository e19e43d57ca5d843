package assign

import (
	"cmp"
	"slices"

	"github.com/rekastream/reka/kafka"
)

// fullClaims is up to how many partitions a member's claims are listed in
// full. Beyond, one partition stands for each task: the group's metadata is
// bounded.
const fullClaims = 1024

// Subscription returns what a member joins with: its data, and the tasks that
// it runs as claimed partitions.
func Subscription(d MemberData, running []Task) kafka.Subscription {
	s := kafka.Subscription{UserData: d.Append(nil), Owned: partitionsOf(running, d.Subgraphs)}
	if len(s.Owned) > fullClaims {
		s.Owned = partitionsOf(running, thin(d.Subgraphs))
	}
	for _, g := range d.Subgraphs {
		s.Topics = append(s.Topics, g.Topics...)
	}
	slices.Sort(s.Topics)
	s.Topics = slices.Compact(s.Topics)
	return s
}

// MembersOf reads what the group's members joined with.
func MembersOf(group []kafka.GroupMember) []Member {
	members := make([]Member, len(group))
	readers := map[string]string{} // topic → subgraph, over all members
	for i := range group {
		m := &members[i]
		m.ID, m.InstanceID, m.Generation = group[i].ID, group[i].InstanceID, group[i].Generation
		m.bytes = subscriptionBytes(&group[i])
		m.MemberData, m.Broken = DecodeMember(group[i].UserData)
		for _, s := range m.Subgraphs {
			for _, t := range s.Topics {
				if old, ok := readers[t]; !ok || s.Name < old {
					readers[t] = s.Name
				}
			}
		}
	}
	for i := range group {
		members[i].Claims = claimsOf(group[i].Owned, members[i].Subgraphs, readers)
	}
	return members
}

// DeclaredTopics returns all topics that members declare, whose partition
// counts Plan needs, in order.
func DeclaredTopics(members []Member) []string {
	var out []string
	for i := range members {
		for _, s := range members[i].Subgraphs {
			out = append(out, s.Topics...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// claimsOf turns partitions into tasks: one that is claimed in part is
// claimed. A topic that nobody declares stands for itself.
func claimsOf(owned []kafka.TopicPartition, declared []Subgraph, readers map[string]string) []Task {
	own := map[string]string{}
	for _, s := range declared {
		for _, t := range s.Topics {
			own[t] = s.Name
		}
	}
	out := make([]Task, 0, len(owned))
	for _, tp := range owned {
		if tp.Partition < 0 {
			continue
		}
		out = append(out, Task{cmp.Or(own[tp.Topic], readers[tp.Topic], tp.Topic), tp.Partition})
	}
	slices.SortFunc(out, compareTasks)
	return slices.Compact(out)
}

// partitionsOf returns the partitions that tasks read, in order. Tasks of
// subgraphs that are not declared are left out.
func partitionsOf(tasks []Task, declared []Subgraph) []kafka.TopicPartition {
	topics := map[string][]string{}
	for _, s := range declared {
		topics[s.Name] = s.Topics
	}
	var out []kafka.TopicPartition
	for _, t := range tasks {
		for _, topic := range topics[t.Subgraph] {
			out = append(out, kafka.TopicPartition{Topic: topic, Partition: t.Partition})
		}
	}
	slices.SortFunc(out, func(a, b kafka.TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return slices.Compact(out)
}

// thin returns the declarations with one topic each: a task is named by any
// of its partitions.
func thin(declared []Subgraph) []Subgraph {
	out := slices.Clone(declared)
	for i := range out {
		if len(out[i].Topics) > 1 {
			out[i].Topics = []string{slices.Min(out[i].Topics)}
		}
	}
	return out
}

// ReadShare reads an assignment on the member's side: the tasks that are its
// own, and what the leader says beside.
func ReadShare(s kafka.Share, declared []Subgraph) ([]Task, ShareData, error) {
	d, err := DecodeShare(s.UserData)
	if err != nil {
		return nil, ShareData{}, err
	}
	return claimsOf(s.Partitions, declared, nil), d, nil
}

// GroupBytes is what all subscriptions and assignments of a group may take
// together. A broker keeps them in one record, whose limit is 1,048,588 bytes
// by default; the rest is for what the broker adds.
const GroupBytes = 1_000_000

// memberOverhead is what a broker keeps beside: ids, host, timeouts.
const memberOverhead = 300

// Encoded are the shares of a group as its leader answers them.
type Encoded struct {
	Shares map[string]kafka.Share // by member id

	// Bytes is what subscriptions and assignments take together. Above the
	// budget the broker may refuse the group.
	Bytes int

	// Routes reports whether the routing table fitted.
	Routes bool

	// Thin reports that only one partition of each task is listed, because
	// all of them did not fit. Members are not affected; Kafka's own tools
	// show less.
	Thin bool
}

// Encode returns the plan in bytes. What would take more than budget bytes
// (0: GroupBytes) is done without, for all members alike: first the routing
// table, then the partitions that a task has beside its first one.
func (r *Result) Encode(leader Fingerprint, budget int) Encoded {
	if budget <= 0 {
		budget = GroupBytes
	}
	out := r.encode(leader, r.routes(), false)
	if out.Bytes > budget {
		out = r.encode(leader, nil, false)
	}
	if out.Bytes > budget {
		out = r.encode(leader, nil, true)
	}
	return out
}

func (r *Result) encode(leader Fingerprint, routes *Routes, narrow bool) Encoded {
	out := Encoded{Shares: make(map[string]kafka.Share, len(r.members)), Routes: routes != nil, Thin: narrow}
	var shared []byte
	if routes != nil {
		shared = routes.encode()
	} else {
		shared = encodePresent(r.present())
	}
	for i := range r.members {
		m := &r.members[i]
		s := r.Shares[m.ID]
		d := ShareData{
			Generation: r.Generation, Leader: leader, For: m.Fingerprint,
			Releasing: s.Releasing, Awaiting: s.Awaiting, Rejoin: s.Rejoin, Refused: s.Refused,
			Routes: routes,
		}
		e := d.own()
		e.body = append(e.body, shared...)
		declared := m.Subgraphs
		if narrow {
			declared = thin(declared)
		}
		share := kafka.Share{
			Partitions: partitionsOf(s.Tasks, declared),
			UserData:   e.appendTo([]byte{wireVersion, wireReadable}),
		}
		out.Shares[m.ID] = share
		out.Bytes += memberOverhead + m.bytes + 6 + partitionsBytes(share.Partitions) + 4 + len(share.UserData)
	}
	return out
}

func (r *Result) present() []uint64 {
	out := make([]uint64, 0, len(r.members))
	for i := range r.members {
		if r.members[i].Broken == nil {
			out = append(out, hashID(r.members[i].ProcessID))
		}
	}
	slices.Sort(out)
	return out
}

func (r *Result) routes() *Routes {
	t := &Routes{}
	index := make([]int32, len(r.members))
	for i := range r.members {
		index[i] = -1
		if m := &r.members[i]; m.Broken == nil {
			index[i] = int32(len(t.Processes))
			t.Processes = append(t.Processes, Process{m.ProcessID, m.Endpoint})
		}
	}
	owners := map[string][]int32{}
	for name, n := range r.Counts {
		owners[name] = slices.Repeat([]int32{-1}, int(n))
		t.Owners = append(t.Owners, Owners{name, owners[name]})
	}
	slices.SortFunc(t.Owners, func(a, b Owners) int { return cmp.Compare(a.Subgraph, b.Subgraph) })
	for i := range r.members {
		for _, task := range r.Shares[r.members[i].ID].Tasks {
			owners[task.Subgraph][task.Partition] = index[i]
		}
	}
	return t
}

// subscriptionBytes is the size of a subscription in Kafka's own format.
func subscriptionBytes(m *kafka.GroupMember) int {
	n := 2 + 4 + 4 + len(m.UserData) + 4 + 4 + 2 + len(m.InstanceID) + len(m.ID)
	for _, t := range m.Topics {
		n += 2 + len(t)
	}
	return n + partitionsBytes(m.Owned)
}

// partitionsBytes is the size of partitions in Kafka's own format, which
// groups them by topic.
func partitionsBytes(list []kafka.TopicPartition) int {
	topics := map[string]bool{}
	n := 4 * len(list)
	for _, tp := range list {
		if !topics[tp.Topic] {
			topics[tp.Topic] = true
			n += 2 + len(tp.Topic) + 4
		}
	}
	return n
}
