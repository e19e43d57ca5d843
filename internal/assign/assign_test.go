package assign

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// member returns a member of generation 1 that declares one subgraph "s" with
// topic "in" and claims partitions of it.
func member(id string, claims ...int32) Member {
	return Member{
		ID: id, Generation: 1, Claims: tasks("s", claims...),
		MemberData: MemberData{ProcessID: "process-" + id, Subgraphs: []Subgraph{{Name: "s", Topics: []string{"in"}}}},
	}
}

func tasks(name string, partitions ...int32) []Task {
	out := make([]Task, 0, len(partitions))
	for _, p := range partitions {
		out = append(out, Task{name, p})
	}
	return out
}

func plan(t *testing.T, partitions map[string]int32, members ...Member) Result {
	t.Helper()
	r, err := Plan(Input{Members: members, Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checkTasks(t *testing.T, what string, got []Task, want ...Task) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestFirstMemberGetsEverything(t *testing.T) {
	r := plan(t, map[string]int32{"in": 3}, member("a"))
	checkTasks(t, "a", r.Shares["a"].Tasks, tasks("s", 0, 1, 2)...)
	if r.Again || len(r.Moves) != 0 || r.Err() != nil {
		t.Errorf("again %v, moves %v, error %v", r.Again, r.Moves, r.Err())
	}
	if r.Counts["s"] != 3 {
		t.Errorf("counts %v", r.Counts)
	}
}

func TestTaskMovesInTwoRounds(t *testing.T) {
	in := map[string]int32{"in": 4}
	r := plan(t, in, member("a", 0, 1, 2, 3), member("b"))
	a, b := r.Shares["a"], r.Shares["b"]
	checkTasks(t, "a keeps", a.Tasks, tasks("s", 0, 1)...)
	checkTasks(t, "a releases", a.Releasing, tasks("s", 2, 3)...)
	checkTasks(t, "b has", b.Tasks)
	checkTasks(t, "b awaits", b.Awaiting, tasks("s", 2, 3)...)
	if !r.Again || !a.Rejoin || b.Rejoin {
		t.Errorf("again %v, rejoin a %v b %v", r.Again, a.Rejoin, b.Rejoin)
	}
	if want := []Move{{Task{"s", 2}, "a", "b"}, {Task{"s", 3}, "a", "b"}}; !slices.Equal(r.Moves, want) {
		t.Errorf("moves %v, want %v", r.Moves, want)
	}
	r = plan(t, in, member("a", 0, 1), member("b"))
	checkTasks(t, "b in the second round", r.Shares["b"].Tasks, tasks("s", 2, 3)...)
	if r.Again {
		t.Error("a third round")
	}
}

func TestMemberThatLeavesMovesNothingElse(t *testing.T) {
	r := plan(t, map[string]int32{"in": 6}, member("a", 0, 1), member("c", 4, 5))
	checkTasks(t, "a", r.Shares["a"].Tasks, tasks("s", 0, 1, 2)...)
	checkTasks(t, "c", r.Shares["c"].Tasks, tasks("s", 3, 4, 5)...)
	if r.Again {
		t.Error("another round although nobody claims what moved")
	}
}

func TestHigherGenerationWinsADoubleClaim(t *testing.T) {
	a, b := member("a", 0, 1), member("b", 1, 2, 3)
	a.Generation, b.Generation = 3, 7
	r := plan(t, map[string]int32{"in": 4}, a, b)
	if !slices.Contains(r.Shares["b"].Tasks, Task{"s", 1}) {
		t.Errorf("the newer claim lost: %+v", r.Shares)
	}
	checkTasks(t, "a releases", r.Shares["a"].Releasing)
	if slices.Contains(r.Shares["a"].Tasks, Task{"s", 1}) {
		t.Error("both own s/1")
	}
}

func TestEqualDoubleClaimBelongsToNobodyForARound(t *testing.T) {
	r := plan(t, map[string]int32{"in": 2}, member("a", 0, 1), member("b", 1))
	for id, s := range r.Shares {
		if slices.Contains(s.Tasks, Task{"s", 1}) || slices.Contains(s.Releasing, Task{"s", 1}) {
			t.Errorf("%s may still write for s/1: %+v", id, s)
		}
		if !s.Rejoin {
			t.Errorf("%s does not join again", id)
		}
	}
	r = plan(t, map[string]int32{"in": 2}, member("a", 0), member("b"))
	checkTasks(t, "b afterwards", r.Shares["b"].Tasks, Task{"s", 1})
}

func TestUnclaimedTaskGoesWhereItsStateIs(t *testing.T) {
	a, b, c := member("a"), member("b"), member("c")
	b.Stored = []Stored{{Task{"s", 0}, 10}, {Task{"s", 1}, 500}, {Task{"s", 2}, 7}}
	c.Stored = []Stored{{Task{"s", 0}, 90}, {Task{"s", 1}, 499}}
	r := plan(t, map[string]int32{"in": 3}, a, b, c)
	checkTasks(t, "c", r.Shares["c"].Tasks, Task{"s", 0})
	checkTasks(t, "b", r.Shares["b"].Tasks, Task{"s", 1})
	checkTasks(t, "a", r.Shares["a"].Tasks, Task{"s", 2})
}

func TestRestartOfAllKeepsEveryTaskOnItsDisk(t *testing.T) {
	var members []Member
	want := map[string][]Task{}
	for i, id := range []string{"c", "a", "b"} {
		m := member(id)
		for p := int32(i); p < 7; p += 3 {
			m.Stored = append(m.Stored, Stored{Task{"s", p}, 100})
			want[id] = append(want[id], Task{"s", p})
		}
		members = append(members, m)
	}
	r := plan(t, map[string]int32{"in": 7}, members...)
	for id, w := range want {
		checkTasks(t, id, r.Shares[id].Tasks, w...)
	}
}

func TestTopicsOfASubgraphStayTogether(t *testing.T) {
	m := func(id string) Member {
		x := member(id)
		x.Subgraphs = []Subgraph{{Name: "s", Topics: []string{"in2", "in1"}}, {Name: "t", Topics: []string{"re"}}}
		return x
	}
	r := plan(t, map[string]int32{"in1": 4, "in2": 4, "re": 3}, m("a"), m("b"))
	for id, s := range r.Encode(Fingerprint{}, 0).Shares {
		var in1, in2 []int32
		for _, tp := range s.Partitions {
			switch tp.Topic {
			case "in1":
				in1 = append(in1, tp.Partition)
			case "in2":
				in2 = append(in2, tp.Partition)
			}
		}
		if !slices.Equal(in1, in2) || len(in1) != 2 {
			t.Errorf("%s: in1 %v, in2 %v", id, in1, in2)
		}
	}
}

func TestMismatchNamesTopicsAndCounts(t *testing.T) {
	m := member("a", 0)
	m.Subgraphs = []Subgraph{{Name: "s", Topics: []string{"orders", "users"}}, {Name: "t", Topics: []string{"in"}}}
	r := plan(t, map[string]int32{"orders": 10, "users": 12, "in": 2}, m)
	var mismatch *MismatchError
	if err := r.Err(); !errors.As(err, &mismatch) {
		t.Fatalf("error %v", err)
	}
	for _, s := range []string{"orders has 10", "users has 12"} {
		if !strings.Contains(mismatch.Error(), s) {
			t.Errorf("%q lacks %q", mismatch, s)
		}
	}
	s := r.Shares["a"]
	checkTasks(t, "other subgraph", s.Tasks, tasks("t", 0, 1)...)
	if len(s.Refused) != 1 || s.Refused[0].Err != error(mismatch) {
		t.Errorf("refused %v", s.Refused)
	}
	if r.Again {
		t.Error("another round that nobody waits for")
	}
}

func TestRollingUpgradeThatAddsATopic(t *testing.T) {
	old, fresh := member("old", 0, 1, 2, 3), member("new")
	fresh.Subgraphs = []Subgraph{{Name: "s", Topics: []string{"in", "in2"}}}
	counts := map[string]int32{"in": 4, "in2": 4}
	r := plan(t, counts, old, fresh)
	checkTasks(t, "old releases", r.Shares["old"].Releasing, tasks("s", 0, 1, 2, 3)...)
	var narrow *NarrowError
	if x := r.Shares["old"].Refused; len(x) != 1 || !errors.As(x[0].Err, &narrow) || !slices.Equal(narrow.Topics, []string{"in2"}) {
		t.Errorf("refused %v", x)
	}
	if r.Err() != nil {
		t.Errorf("the group runs, but: %v", r.Err())
	}
	old.Claims = nil
	r = plan(t, counts, old, fresh)
	checkTasks(t, "new", r.Shares["new"].Tasks, tasks("s", 0, 1, 2, 3)...)
	if r.Again {
		t.Error("rebalance without end")
	}

	// The added topic does not exist: who does not need it goes on.
	r = plan(t, map[string]int32{"in": 4}, member("old", 0, 1, 2, 3), fresh)
	checkTasks(t, "old", r.Shares["old"].Tasks, tasks("s", 0, 1, 2, 3)...)
	var missing *MissingTopicsError
	if x := r.Shares["new"].Refused; len(x) != 1 || !errors.As(x[0].Err, &missing) || !slices.Equal(missing.Topics, []string{"in2"}) {
		t.Errorf("refused %v", x)
	}
}

// A table that is added has every record only if nobody processes without it.
func TestRollingUpgradeThatAddsATable(t *testing.T) {
	keeping := func(id string, keeps []string, claims ...int32) Member {
		m := member(id, claims...)
		m.Subgraphs = []Subgraph{{Name: "s", Topics: []string{"in"}, Keeps: keeps}}
		return m
	}
	counts := map[string]int32{"in": 2}
	r := plan(t, counts, keeping("old", []string{"g-table"}, 0, 1), keeping("new", []string{"g-table", "g-more"}))
	checkTasks(t, "old releases", r.Shares["old"].Releasing, tasks("s", 0, 1)...)
	var narrow *NarrowError
	if x := r.Shares["old"].Refused; len(x) != 1 || !errors.As(x[0].Err, &narrow) || len(narrow.Topics) != 0 || !slices.Equal(narrow.Keeps, []string{"g-more"}) {
		t.Errorf("refused %v", x)
	}

	// Neither is the other with something added: who runs goes on.
	r = plan(t, counts, keeping("old", []string{"g-a"}, 0, 1), keeping("new", []string{"g-b"}))
	checkTasks(t, "old", r.Shares["old"].Tasks, tasks("s", 0, 1)...)
	x := r.Shares["new"].Refused
	if len(x) != 1 {
		t.Fatalf("refused %v", x)
	}
	if want := "subgraph s would read in and keep g-b, but other members of the group run subgraph s: read in and keep g-a"; x[0].Err.Error() != want {
		t.Errorf("%q, want %q", x[0].Err, want)
	}
}

// A member is told what it was known as, so that one that came back as
// another program notices.
func TestShareSaysForWhatProgramItWasMade(t *testing.T) {
	a, b := member("a"), member("b")
	a.Fingerprint, b.Fingerprint = Fingerprint{1}, Fingerprint{2}
	r := plan(t, map[string]int32{"in": 2}, a, b)
	for id, want := range map[string]Fingerprint{"a": {1}, "b": {2}} {
		_, d, err := ReadShare(r.Encode(Fingerprint{1}, 0).Shares[id], a.Subgraphs)
		if err != nil || d.For != want || d.Leader != (Fingerprint{1}) {
			t.Errorf("%s: for %v by %v, %v", id, d.For, d.Leader, err)
		}
	}
}

func TestStrangerWithTheSameGroupNameStopsNobody(t *testing.T) {
	a, b := member("b", 0, 1), member("a")
	b.Subgraphs = []Subgraph{{Name: "s", Topics: []string{"other"}}}
	r := plan(t, map[string]int32{"in": 2, "other": 2}, a, b)
	checkTasks(t, "incumbent", r.Shares["b"].Tasks, tasks("s", 0, 1)...)
	var conflict *ConflictError
	if x := r.Shares["a"].Refused; len(x) != 1 || !errors.As(x[0].Err, &conflict) {
		t.Errorf("refused %v", x)
	}
}

func TestOneTopicNeverHasTwoSubgraphs(t *testing.T) {
	a, b := member("a", 0, 1), member("b")
	b.Subgraphs = []Subgraph{{Name: "renamed", Topics: []string{"in"}}}
	r := plan(t, map[string]int32{"in": 2}, a, b)
	checkTasks(t, "incumbent", r.Shares["a"].Tasks, tasks("s", 0, 1)...)
	var conflict *ConflictError
	if x := r.Shares["b"].Refused; len(x) != 1 || !errors.As(x[0].Err, &conflict) || conflict.Other != "s" {
		t.Errorf("refused %v", x)
	}
}

func TestOneStoreNeverHasTwoSubgraphs(t *testing.T) {
	old := Member{ID: "old", MemberData: MemberData{Subgraphs: []Subgraph{{Name: "a", Topics: []string{"x"}, Keeps: []string{"g-s-changelog"}}, {Name: "b", Topics: []string{"y"}}}}}
	moved := Member{ID: "moved", MemberData: MemberData{Subgraphs: []Subgraph{{Name: "a", Topics: []string{"x"}}, {Name: "b", Topics: []string{"y"}, Keeps: []string{"g-s-changelog"}}}}}
	r, err := Plan(Input{Members: []Member{old, moved}, Partitions: map[string]int32{"x": 1, "y": 1}})
	if err != nil {
		t.Fatal(err)
	}
	var conflict *ConflictError
	if x := r.Shares["moved"].Refused; !slices.ContainsFunc(x, func(r Refusal) bool { return errors.As(r.Err, &conflict) }) {
		t.Fatalf("two subgraphs keep one store, refused %v", x)
	}
	checkTasks(t, "member that moved the store", r.Shares["moved"].Tasks)
}

func TestSubgraphThatNobodyDeclaresIsReported(t *testing.T) {
	m := member("a")
	m.Stored = []Stored{{Task{"gone", 3}, 9}}
	r := plan(t, map[string]int32{"in": 1}, m)
	if !slices.Equal(r.Orphaned, []string{"gone"}) {
		t.Errorf("orphaned %v", r.Orphaned)
	}
}

func TestUnreadableMemberGetsNothingAndKeepsItsClaimsBlocked(t *testing.T) {
	a, b := member("a", 0), member("b")
	a.MemberData, a.Broken = MemberData{}, ErrMalformed
	r := plan(t, map[string]int32{"in": 2}, a, b)
	checkTasks(t, "a releases", r.Shares["a"].Releasing, Task{"s", 0})
	checkTasks(t, "b", r.Shares["b"].Tasks, Task{"s", 1})
	checkTasks(t, "b awaits", r.Shares["b"].Awaiting, Task{"s", 0})
}

func TestPlanRefusesWhatNoGroupHas(t *testing.T) {
	if _, err := Plan(Input{}); err == nil {
		t.Error("no members accepted")
	}
	if _, err := Plan(Input{Members: []Member{member("a"), member("a")}}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("equal ids: %v", err)
	}
}

func TestPlanDoesNotDependOnTheOrderOfMembersNorChangeThem(t *testing.T) {
	build := func() []Member {
		out := make([]Member, 0, 7)
		for i := range 7 {
			m := member(fmt.Sprint("m", i), int32(i), int32(i+7))
			m.Stored = []Stored{{Task{"s", int32(i + 20)}, 5}}
			out = append(out, m)
		}
		return out
	}
	counts := map[string]int32{"in": 31}
	one := plan(t, counts, build()...)
	turned := build()
	slices.Reverse(turned)
	before := slices.Clone(turned)
	two := plan(t, counts, turned...)
	if !reflect.DeepEqual(one, two) {
		t.Error("another order gives another plan")
	}
	if !reflect.DeepEqual(before, turned) {
		t.Error("the input was changed")
	}
}
