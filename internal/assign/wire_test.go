package assign

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/rekastream/reka/kafka"
)

func sampleMember() MemberData {
	return MemberData{
		ProcessID: "9f86d081884c7d65", Fingerprint: Fingerprint{1, 2, 3, 4, 5, 6, 7, 8}, Nonce: 1 << 63,
		Endpoint: "10.0.0.7:8080", Lanes: 2,
		Subgraphs: []Subgraph{{Name: "main", Topics: []string{"clicks", "users"}}, {Name: "by-region", Topics: []string{"g-by-region-repartition"}, Keeps: []string{"g-by-region-table"}}, {}},
		Stored:    []Stored{{Task{"by-region", 7}, -1}, {Task{"main", 0}, 1 << 40}, {Task{"main", 1<<31 - 1}, 0}},
	}
}

func sampleShare() ShareData {
	return ShareData{
		Generation: 41, Leader: Fingerprint{9}, For: Fingerprint{8}, Rejoin: true,
		Releasing: []Task{{"main", 0}, {"main", 3}}, Awaiting: []Task{{"by-region", 2}},
		Refused: []Refusal{
			{"a", &MissingTopicsError{"a", []string{"x", "y"}}},
			{"b", &MismatchError{"b", []string{"x", "y"}, []int32{10, 12}}},
			{"c", &NarrowError{"c", []string{"x"}, []string{"g-table"}}},
			{"d", &ConflictError{"d", []string{"x"}, nil, "e", []string{"y", "z"}, []string{"g-table"}}},
			{"f", &OtherError{"f", "a reason"}},
		},
		Routes: &Routes{
			Processes: []Process{{"p1", "10.0.0.7:1"}, {"p2", ""}},
			Owners:    []Owners{{"by-region", []int32{0, 1, -1}}, {"main", []int32{1, 1, 1, -1}}},
		},
	}
}

func TestMemberDataComesBackAsItWas(t *testing.T) {
	want := sampleMember()
	got, err := DecodeMember(want.Append(nil))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if n := strings.Count(string(want.Append(nil)), "main"); n != 1 {
		t.Errorf("a name stands %d times in the bytes", n)
	}
}

func TestShareDataComesBackAsItWas(t *testing.T) {
	want := sampleShare()
	got, err := DecodeShare(want.Append(nil))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	want.Routes, want.present = nil, []uint64{hashID("p1"), hashID("p2")}
	if want.present[0] > want.present[1] {
		want.present[0], want.present[1] = want.present[1], want.present[0]
	}
	got, err = DecodeShare(want.Append(nil))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestPresentAndOwner(t *testing.T) {
	d := sampleShare()
	if !d.Present("p2") || d.Present("p3") {
		t.Error("presence by table")
	}
	if p, ok := d.Routes.Owner(Task{"main", 2}); !ok || p.ID != "p2" {
		t.Errorf("owner of main/2: %v %v", p, ok)
	}
	for _, task := range []Task{{"main", 3}, {"main", 9}, {"main", -1}, {"nothing", 0}} {
		if p, ok := d.Routes.Owner(task); ok {
			t.Errorf("owner of %v: %v", task, p)
		}
	}
	r := plan(t, map[string]int32{"in": 2}, member("a"), member("b"))
	_, got, err := ReadShare(r.Encode(Fingerprint{}, 1).Shares["a"], nil)
	if err != nil || got.Routes != nil {
		t.Fatalf("routes %v beyond the budget, %v", got.Routes, err)
	}
	if !got.Present("process-b") || got.Present("process-c") {
		t.Error("presence without a table")
	}
	if _, ok := got.Routes.Owner(Task{"s", 0}); ok {
		t.Error("an owner without a table")
	}
}

func TestLaterVersionsAreReadAsFarAsTheySay(t *testing.T) {
	m := sampleMember()
	b := append(m.Append(nil), "what version 2 adds"...)
	if _, err := DecodeMember(b); !errors.Is(err, ErrMalformed) {
		t.Errorf("bytes left over: %v", err)
	}
	b[0] = 2
	if got, err := DecodeMember(b); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%+v, %v", got, err)
	}
	b[1] = 2
	var version *VersionError
	if _, err := DecodeMember(b); !errors.As(err, &version) || version.Version != 2 {
		t.Errorf("error %v", err)
	}
}

func TestEveryCutIsAnError(t *testing.T) {
	m, s := sampleMember(), sampleShare()
	member, share := m.Append(nil), s.Append(nil)
	for n := range member {
		if _, err := DecodeMember(member[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("member cut to %d bytes: %v", n, err)
		}
	}
	for n := range share {
		if _, err := DecodeShare(share[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("share cut to %d bytes: %v", n, err)
		}
	}
}

func TestHugeCountsAllocateLittle(t *testing.T) {
	hostile := append([]byte{1, 1}, bytes.Repeat([]byte{0xff, 0xff, 0xff, 0xff, 0x07}, 200)...)
	for _, decode := range []func([]byte) error{
		func(b []byte) error { _, err := DecodeMember(b); return err },
		func(b []byte) error { _, err := DecodeShare(b); return err },
	} {
		const rounds = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			if err := decode(hostile); err == nil {
				t.Fatal("no error")
			}
		}
		runtime.ReadMemStats(&after)
		if n := (after.TotalAlloc - before.TotalAlloc) / rounds; n > 20<<10 {
			t.Errorf("%d bytes allocated for a message of %d", n, len(hostile))
		}
	}
}

func FuzzDecodeMember(f *testing.F) {
	m := sampleMember()
	f.Add(m.Append(nil))
	f.Add([]byte{1, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMember(b)
		if err != nil {
			var version *VersionError
			if !errors.Is(err, ErrMalformed) && !errors.As(err, &version) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if again, err := DecodeMember(m.Append(nil)); err != nil || len(again.Stored) != len(m.Stored) || again.Nonce != m.Nonce {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}

func FuzzDecodeShare(f *testing.F) {
	s := sampleShare()
	f.Add(s.Append(nil))
	s.Routes = nil
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeShare(b)
		if err != nil {
			var version *VersionError
			if !errors.Is(err, ErrMalformed) && !errors.As(err, &version) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		s.Present("p1")
		s.Routes.Owner(Task{"main", 1})
		for _, r := range s.Refused {
			if r.Err.Error() == "" {
				t.Fatal("a refusal without words")
			}
		}
	})
}

// groupOf returns what n members with perMember tasks each join with, on
// topics with names of 60 characters.
func groupOf(n, topics, perMember int) ([]kafka.GroupMember, map[string]int32) {
	counts := map[string]int32{}
	names := make([]string, topics)
	for i := range names {
		names[i] = fmt.Sprintf("%-60s", fmt.Sprint("topic-", i, "-"))
		names[i] = strings.ReplaceAll(names[i], " ", "x")
		counts[names[i]] = int32(n * perMember)
	}
	group := make([]kafka.GroupMember, n)
	for i := range group {
		var running []Task
		for k := range perMember {
			running = append(running, Task{"main", int32(i + k*n)})
		}
		d := MemberData{
			ProcessID: fmt.Sprintf("%032x", i*7919), Nonce: 1 << 60, Lanes: 1,
			Endpoint:  fmt.Sprintf("service-%d.namespace.example.internal:8080", i),
			Subgraphs: []Subgraph{{Name: "main", Topics: names}},
		}
		group[i] = kafka.GroupMember{
			ID: fmt.Sprintf("reka-%036d", i), InstanceID: d.ProcessID, Generation: 7,
			Subscription: Subscription(d, running),
		}
	}
	return group, counts
}

func TestFiftyMembersStayBelowOneMegabyte(t *testing.T) {
	for _, c := range []struct {
		name              string
		topics, perMember int
		routes, thin      bool
	}{
		{"1,000 tasks in all, 10 topics", 10, 20, true, false},
		{"1,000 tasks each, one topic", 1, 1000, false, false},
		{"1,000 tasks each, two topics", 2, 1000, false, false},
		{"1,000 tasks each, 20 topics", 20, 1000, false, true},
	} {
		members, counts := groupOf(50, c.topics, c.perMember)
		r, err := Plan(Input{Members: MembersOf(members), Partitions: counts})
		if err != nil {
			t.Fatal(err)
		}
		out := r.Encode(Fingerprint{1}, 0)
		used := 0
		for _, m := range members {
			used += subscriptionBytes(&m) + partitionsBytes(out.Shares[m.ID].Partitions) + len(out.Shares[m.ID].UserData)
		}
		t.Logf("%s: %d bytes in all, %d without what is reserved for the broker, routes %v", c.name, out.Bytes, used, out.Routes)
		if out.Bytes >= 1<<20 || out.Routes != c.routes || out.Thin != c.thin || len(r.Moves) != 0 {
			t.Errorf("%s: %d bytes, routes %v, thin %v, moves %d", c.name, out.Bytes, out.Routes, out.Thin, len(r.Moves))
		}
		for _, m := range members {
			own, d, err := ReadShare(out.Shares[m.ID], []Subgraph{{Name: "main", Topics: m.Topics}})
			if err != nil || len(own) != c.perMember || !d.Present(m.InstanceID) {
				t.Fatalf("%s: %s reads %d tasks, %v", c.name, m.ID, len(own), err)
			}
		}
	}
}

func TestGroupRoundTripOverKafkaTypes(t *testing.T) {
	data := MemberData{ProcessID: "p", Subgraphs: []Subgraph{{Name: "main", Topics: []string{"users", "clicks"}}, {Name: "re", Topics: []string{"again"}}}}
	s := Subscription(data, []Task{{"main", 1}, {"re", 0}})
	if want := []string{"again", "clicks", "users"}; !reflect.DeepEqual(s.Topics, want) {
		t.Errorf("topics %v", s.Topics)
	}
	members := MembersOf([]kafka.GroupMember{
		{ID: "a", Subscription: s, Generation: 4},
		{ID: "b", Subscription: kafka.Subscription{UserData: []byte("?"), Owned: []kafka.TopicPartition{{Topic: "clicks", Partition: 0}, {Topic: "strange", Partition: 0}}}},
	})
	checkTasks(t, "claims of a", members[0].Claims, Task{"main", 1}, Task{"re", 0})
	checkTasks(t, "claims of b", members[1].Claims, Task{"main", 0}, Task{"strange", 0})
	if !errors.Is(members[1].Broken, ErrMalformed) {
		t.Errorf("broken %v", members[1].Broken)
	}
	if got := DeclaredTopics(members); !reflect.DeepEqual(got, s.Topics) {
		t.Errorf("declared %v", got)
	}
	r, err := Plan(Input{Members: members, Partitions: map[string]int32{"users": 2, "clicks": 2, "again": 1}})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Orphaned, []string{"strange"}) || r.Generation != 5 {
		t.Errorf("orphaned %v, generation %d", r.Orphaned, r.Generation)
	}
	own, d, err := ReadShare(r.Encode(Fingerprint{5}, 0).Shares["a"], data.Subgraphs)
	if err != nil {
		t.Fatal(err)
	}
	checkTasks(t, "a gets", own, Task{"main", 1}, Task{"re", 0})
	checkTasks(t, "a awaits", d.Awaiting, Task{"main", 0})
	if p, ok := d.Routes.Owner(Task{"main", 1}); !ok || p.ID != "p" {
		t.Errorf("owner %v %v", p, ok)
	}
}
