package assign

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Task is one partition of one subgraph.
type Task struct {
	Subgraph  string
	Partition int32
}

// String returns subgraph/partition.
func (t Task) String() string { return t.Subgraph + "/" + strconv.Itoa(int(t.Partition)) }

func compareTasks(a, b Task) int {
	return cmp.Or(cmp.Compare(a.Subgraph, b.Subgraph), cmp.Compare(a.Partition, b.Partition))
}

// Subgraph is what a member declares: a name, the topics that must be
// co-partitioned, and the changelogs of the state that its tasks keep. Topics
// and Keeps have each name once, in any order.
type Subgraph struct {
	Name   string
	Topics []string
	Keeps  []string
}

// Stored is a task whose state a member has on disk, up to a position in the
// task's main changelog. Only the order of positions counts.
type Stored struct {
	Task
	Position int64
}

// Member is one member of the group as Plan sees it.
type Member struct {
	ID         string // of the membership, unique
	InstanceID string // of a static member, else empty
	MemberData

	// Claims are the tasks that the member runs, adopted in Generation (-1:
	// unknown).
	Claims     []Task
	Generation int32

	// Broken says why the member's data cannot be read. Such a member gets
	// nothing; its claims count.
	Broken error

	bytes int // what the member's subscription takes in the group's metadata
}

// Input is everything that Plan looks at. Plan changes none of it.
type Input struct {
	Members []Member

	// Partitions are the partition counts of all declared topics. A topic
	// that is not in it does not exist.
	Partitions map[string]int32

	// Generation numbers the plan for those who read it. Zero: one more than
	// the highest generation claimed.
	Generation int32
}

// Share is what one member gets.
type Share struct {
	// Tasks are the member's own in this generation, in order.
	Tasks []Task

	// Releasing are tasks that the member claims and must give up. Nobody
	// owns them in this generation.
	Releasing []Task

	// Awaiting are tasks that the member will get once their claimants have
	// released them.
	Awaiting []Task

	// Rejoin says that somebody waits for this member to give up a task: it
	// joins again as soon as it has.
	Rejoin bool

	// Refused are the subgraphs that the member declares and cannot get.
	Refused []Refusal
}

// Move is a task that leaves the member who claims it.
type Move struct {
	Task
	From, To string // member ids; To is empty if nobody can run it
}

// Result is a plan.
type Result struct {
	Generation int32

	// Shares has an entry for each member, by member id.
	Shares map[string]Share

	// Again says that tasks are held back and another round follows.
	Again bool

	// Moves are the tasks that change hands, in order.
	Moves []Move

	// Counts are the partition counts of the subgraphs that run, by name.
	Counts map[string]int32

	// Unassigned are the subgraphs that somebody declares and nobody can
	// run, with the reason for each.
	Unassigned map[string]error

	// Orphaned are the subgraphs that members have state of, and the topics
	// that members claim, which nobody declares any more.
	Orphaned []string

	members []Member // sorted by id
	target  map[Task]int
}

// Err joins the reasons of all subgraphs that nobody can run, or is nil.
func (r *Result) Err() error { return joinByName(r.Unassigned) }

// Plan makes a plan. It fails only on input that no group can have: two
// members with one id, or none at all.
func Plan(in Input) (Result, error) {
	if len(in.Members) == 0 {
		return Result{}, errors.New("assign: a group without members")
	}
	members := slices.Clone(in.Members)
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(members); i++ {
		if members[i].ID == members[i-1].ID {
			return Result{}, fmt.Errorf("assign: two members with the id %q", members[i].ID)
		}
	}
	d := settleDeclarations(members, in.Partitions)
	holders := settleClaims(members)
	target := d.place(members, holders)

	r := Result{
		Generation: in.Generation,
		Shares:     make(map[string]Share, len(members)),
		Counts:     make(map[string]int32, len(d.chosen)),
		Unassigned: d.unassigned,
		Orphaned:   d.orphaned(members),
		members:    members,
		target:     target,
	}
	if r.Generation == 0 {
		r.Generation = 1 + highestGeneration(members)
	}
	for _, v := range d.chosen {
		r.Counts[v.name] = v.count
	}
	r.cooperate(holders, d)
	return r, nil
}

// cooperate turns the target into shares: what is claimed by another member
// is held back.
func (r *Result) cooperate(holders map[Task][]int, d *declarations) {
	shares := make([]Share, len(r.members))
	for i := range shares {
		shares[i].Refused = d.refused[i]
	}
	for _, t := range allTasks(r.target, holders) {
		to, wanted := r.target[t]
		from := holders[t]
		if wanted && (len(from) == 0 || len(from) == 1 && from[0] == to) {
			shares[to].Tasks = append(shares[to].Tasks, t)
			continue
		}
		r.Moves = append(r.Moves, r.moves(t, from)...)
		if wanted {
			r.Again = true
			shares[to].Awaiting = append(shares[to].Awaiting, t)
			for _, i := range from {
				shares[i].Rejoin = true
			}
		}
		// Of two members with equal claims neither is known to be the owner,
		// so neither may write for the task any more.
		if len(from) == 1 {
			shares[from[0]].Releasing = append(shares[from[0]].Releasing, t)
		}
	}
	for i := range shares {
		r.Shares[r.members[i].ID] = shares[i]
	}
}

func (r *Result) moves(t Task, from []int) []Move {
	out := make([]Move, 0, len(from))
	to := ""
	if i, ok := r.target[t]; ok {
		to = r.members[i].ID
	}
	for _, i := range from {
		if id := r.members[i].ID; id != to {
			out = append(out, Move{Task: t, From: id, To: to})
		}
	}
	return out
}

// allTasks returns the tasks that somebody shall have or claims, in order.
func allTasks(target map[Task]int, holders map[Task][]int) []Task {
	all := make([]Task, 0, len(target)+len(holders))
	for t := range target {
		all = append(all, t)
	}
	for t := range holders {
		if _, ok := target[t]; !ok {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, compareTasks)
	return all
}

func highestGeneration(members []Member) int32 {
	g := int32(-1)
	for i := range members {
		if len(members[i].Claims) > 0 {
			g = max(g, members[i].Generation)
		}
	}
	return g
}
