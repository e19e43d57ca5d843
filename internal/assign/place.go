package assign

import "slices"

// homes says where a subgraph's tasks are at home: with the member that
// claims them, else with the one whose stored state is furthest.
type homes struct {
	claimed []int // by partition: index into the variant's members, -1: none
	stored  []int // likewise, only where claimed is -1
}

// place returns the target: for each task of the chosen subgraphs the index
// of the member that shall run it.
func (d *declarations) place(members []Member, holders map[Task][]int) map[Task]int {
	at := make([]homes, len(d.chosen))
	stored := storedCopies(members)
	for s, v := range d.chosen {
		at[s] = v.homes(holders, stored)
	}
	quota := quotas(d.chosen, at, len(members))
	target := map[Task]int{}
	for s, v := range d.chosen {
		for p, m := range v.fill(at[s], quota[s], stored) {
			target[Task{v.name, int32(p)}] = v.members[m]
		}
	}
	return target
}

// copyOf is a member's stored state of a task.
type copyOf struct {
	member   int
	position int64
}

func storedCopies(members []Member) map[Task][]copyOf {
	copies := map[Task][]copyOf{}
	for i := range members {
		for _, s := range members[i].Stored {
			copies[s.Task] = append(copies[s.Task], copyOf{i, s.Position})
		}
	}
	return copies
}

func (v *variant) homes(holders map[Task][]int, stored map[Task][]copyOf) homes {
	h := homes{claimed: make([]int, v.count), stored: make([]int, v.count)}
	for p := range v.count {
		t := Task{v.name, p}
		h.claimed[p], h.stored[p] = -1, -1
		for _, i := range holders[t] {
			if m, ok := slices.BinarySearch(v.members, i); ok {
				h.claimed[p] = m
				break
			}
		}
		if h.claimed[p] < 0 {
			h.stored[p] = v.bestCopy(stored[t], func(int) bool { return true })
		}
	}
	return h
}

// bestCopy returns the member with the furthest copy among those that may
// take it, or -1.
func (v *variant) bestCopy(copies []copyOf, may func(m int) bool) int {
	best, position := -1, int64(0)
	for _, c := range copies {
		m, ok := slices.BinarySearch(v.members, c.member)
		if !ok || !may(m) {
			continue
		}
		if best < 0 || c.position > position {
			best, position = m, c.position
		}
	}
	return best
}

// fill gives out the partitions: first to those who claim them, then to those
// who have them stored, then to whoever has the most room, never more than a
// member's quota. It returns the member of each partition.
func (v *variant) fill(h homes, quota []int, stored map[Task][]copyOf) []int {
	room := slices.Clone(quota)
	owner := make([]int, v.count)
	for p := range owner {
		owner[p] = -1
	}
	give := func(p, m int) {
		if owner[p] < 0 && m >= 0 && room[m] > 0 {
			owner[p] = m
			room[m]--
		}
	}
	for p, m := range h.claimed {
		give(p, m)
	}
	for p, m := range h.stored {
		give(p, m)
	}
	for p := range owner {
		if owner[p] < 0 {
			give(p, v.bestCopy(stored[Task{v.name, int32(p)}], func(m int) bool { return room[m] > 0 }))
		}
	}
	for p := range owner {
		if owner[p] < 0 {
			give(p, slices.Index(room, slices.Max(room)))
		}
	}
	return owner
}
