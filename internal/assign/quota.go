package assign

// Weights of what quotas trades off, in this order: equal totals, tasks that
// stay where they are claimed, tasks that go where their state is.
const (
	storedWeight  = 1
	claimedWeight = 1 << 20
	loadWeight    = 1 << 40
)

// quotas says how many tasks of each subgraph each of its members runs:
// count/n, and one more for count%n of them. Who gets one more is a
// transport problem with convex costs: subgraphs send their extra tasks to
// members, and a member's cost grows with the square of its total. The
// cheapest answer is also the one whose largest difference is smallest. It
// starts from a good guess and is improved along negative cycles until there
// is none, which for a group that is balanced already takes one pass.
func quotas(chosen []*variant, at []homes, members int) [][]int {
	t := &transport{subgraphs: chosen, load: make([]int, members)}
	base := make([]int, len(chosen))
	for s, v := range chosen {
		n := len(v.members)
		base[s] = int(v.count) / n
		gain := make([]int64, n)
		claimed, stored := make([]int, n), make([]int, n)
		for p := range v.count {
			if m := at[s].claimed[p]; m >= 0 {
				claimed[m]++
			} else if m := at[s].stored[p]; m >= 0 {
				stored[m]++
			}
		}
		for m := range n {
			switch {
			case claimed[m] > base[s]:
				gain[m] = claimedWeight
			case claimed[m]+stored[m] > base[s]:
				gain[m] = storedWeight
			}
		}
		t.gain = append(t.gain, gain)
		t.extra = append(t.extra, make([]bool, n))
		for _, i := range v.members {
			t.load[i] += base[s]
		}
	}
	t.guess()
	for t.improve() {
	}
	out := make([][]int, len(chosen))
	for s := range chosen {
		out[s] = make([]int, len(t.extra[s]))
		for m, x := range t.extra[s] {
			out[s][m] = base[s]
			if x {
				out[s][m]++
			}
		}
	}
	return out
}

// transport is the problem of the extra tasks. Members are counted as in
// their subgraph (m) or as in the group (i).
type transport struct {
	subgraphs []*variant
	gain      [][]int64 // [subgraph][m]: what an extra task there is worth
	extra     [][]bool  // [subgraph][m]: has one
	load      []int     // [i]: tasks in all
}

// guess hands out the extra tasks of one subgraph after the other, each to
// the member with the smallest total and, among those, the largest gain.
func (t *transport) guess() {
	for s, v := range t.subgraphs {
		for range int(v.count) % len(v.members) {
			best, cost := -1, int64(0)
			for m, i := range v.members {
				if t.extra[s][m] {
					continue
				}
				if c := t.up(i) - t.gain[s][m]; best < 0 || c < cost {
					best, cost = m, c
				}
			}
			t.extra[s][best] = true
			t.load[v.members[best]]++
		}
	}
}

// up is what one more task on member i costs; down what one less saves.
func (t *transport) up(i int) int64   { return loadWeight * int64(2*t.load[i]+1) }
func (t *transport) down(i int) int64 { return loadWeight * int64(2*t.load[i]-1) }

// edge of the residual graph. Nodes: subgraphs, then members, then the sink.
type edge struct {
	from, to int
	cost     int64
	s, m     int // the extra task that it gives or takes; s is -1 at the sink
}

func (t *transport) edges() []edge {
	sink := len(t.subgraphs) + len(t.load)
	var out []edge
	removable := make([]bool, len(t.load))
	for s, v := range t.subgraphs {
		for m, i := range v.members {
			node := len(t.subgraphs) + i
			if t.extra[s][m] {
				removable[i] = true
				out = append(out, edge{node, s, t.gain[s][m], s, m})
			} else {
				out = append(out, edge{s, node, -t.gain[s][m], s, m})
			}
		}
	}
	for i := range t.load {
		node := len(t.subgraphs) + i
		out = append(out, edge{node, sink, t.up(i), -1, -1})
		if removable[i] {
			out = append(out, edge{sink, node, -t.down(i), -1, -1})
		}
	}
	return out
}

// improve finds a cycle of negative cost (Bellman and Ford) and turns it
// around. It reports false when there is none: the answer is the cheapest.
func (t *transport) improve() bool {
	edges := t.edges()
	nodes := len(t.subgraphs) + len(t.load) + 1
	dist := make([]int64, nodes)
	via := make([]int, nodes) // edge that leads to the node, -1: none
	for i := range via {
		via[i] = -1
	}
	last := -1
	for range nodes {
		last = -1
		for e, x := range edges {
			if d := dist[x.from] + x.cost; d < dist[x.to] {
				dist[x.to], via[x.to], last = d, e, x.to
			}
		}
		if last < 0 {
			return false
		}
	}
	// A node that still improves after so many passes hangs on a cycle; going
	// back as often as there are nodes ends inside it.
	for range nodes {
		last = edges[via[last]].from
	}
	for n := last; ; {
		x := edges[via[n]]
		t.turn(x)
		if n = x.from; n == last {
			return true
		}
	}
}

func (t *transport) turn(x edge) {
	if x.s < 0 {
		return
	}
	i := t.subgraphs[x.s].members[x.m]
	if t.extra[x.s][x.m] {
		t.load[i]--
	} else {
		t.load[i]++
	}
	t.extra[x.s][x.m] = !t.extra[x.s][x.m]
}
