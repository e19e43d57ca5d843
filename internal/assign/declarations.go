package assign

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// variant is one way in which a subgraph is declared, with the members who
// declare it so.
type variant struct {
	name    string
	topics  []string // sorted
	keeps   []string // sorted
	count   int32
	members []int // indexes, ascending
	claimed int   // tasks of that name that its members claim
	err     error // why nobody can run it
}

type declarations struct {
	chosen     []*variant // by name
	refused    [][]Refusal
	unassigned map[string]error
	declared   map[string]bool // names of subgraphs and topics that somebody declares
}

// settleDeclarations chooses for each subgraph the declaration that counts.
// Wider ones come before narrower ones of the same name; among the others
// those who already run it come first, so that a stranger with the same group
// name stops nobody.
func settleDeclarations(members []Member, partitions map[string]int32) *declarations {
	d := &declarations{
		refused:    make([][]Refusal, len(members)),
		unassigned: map[string]error{},
		declared:   map[string]bool{},
	}
	variants := d.collect(members)
	waiting := variants[:0:0]
	for _, v := range variants {
		v.check(partitions)
		if v.err != nil {
			d.refuse(v, v.err)
			continue
		}
		waiting = append(waiting, v)
	}
	taken := map[string]*variant{} // by subgraph
	reads := map[string]*variant{} // by topic, read or kept
	for len(waiting) > 0 {
		i := slices.IndexFunc(waiting, func(v *variant) bool { return !dominated(v, waiting) })
		v := waiting[i]
		waiting = slices.Delete(waiting, i, i+1)
		if err := v.against(taken, reads); err != nil {
			d.refuse(v, err)
			continue
		}
		taken[v.name] = v
		for _, t := range slices.Concat(v.topics, v.keeps) {
			reads[t] = v
		}
		d.chosen = append(d.chosen, v)
	}
	for name := range taken {
		delete(d.unassigned, name)
	}
	slices.SortFunc(d.chosen, func(a, b *variant) int { return cmp.Compare(a.name, b.name) })
	return d
}

// collect groups equal declarations, those with the most claims first.
func (d *declarations) collect(members []Member) []*variant {
	byKey := map[string]*variant{}
	var all []*variant
	for i := range members {
		m := &members[i]
		if m.Broken != nil {
			continue
		}
		for _, s := range m.Subgraphs {
			d.declared[s.Name] = true
			topics := slices.Compact(slices.Sorted(slices.Values(s.Topics)))
			for _, t := range topics {
				d.declared[t] = true
			}
			keeps := slices.Compact(slices.Sorted(slices.Values(s.Keeps)))
			key := s.Name + "\x00" + strings.Join(topics, "\x00") + "\x00\x00" + strings.Join(keeps, "\x00")
			v := byKey[key]
			if v == nil {
				v = &variant{name: s.Name, topics: topics, keeps: keeps}
				byKey[key] = v
				all = append(all, v)
			}
			if n := len(v.members); n > 0 && v.members[n-1] == i {
				continue
			}
			v.members = append(v.members, i)
			for _, t := range m.Claims {
				if t.Subgraph == s.Name {
					v.claimed++
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b *variant) int {
		return cmp.Or(-cmp.Compare(a.claimed, b.claimed), -cmp.Compare(len(a.members), len(b.members)),
			cmp.Compare(a.name, b.name), slices.Compare(a.topics, b.topics), slices.Compare(a.keeps, b.keeps))
	})
	return all
}

// check finds the partition count, or why there is none.
func (v *variant) check(partitions map[string]int32) {
	var missing []string
	counts := make([]int32, 0, len(v.topics))
	same := true
	for _, t := range v.topics {
		n := partitions[t]
		if n <= 0 {
			missing = append(missing, t)
			continue
		}
		counts = append(counts, n)
		same = same && n == counts[0]
	}
	switch {
	case len(missing) > 0 || len(v.topics) == 0:
		v.err = &MissingTopicsError{Subgraph: v.name, Topics: missing}
	case !same:
		v.err = &MismatchError{Subgraph: v.name, Topics: v.topics, Counts: counts}
	default:
		v.count = counts[0]
	}
}

func dominated(v *variant, by []*variant) bool {
	return slices.ContainsFunc(by, func(w *variant) bool {
		return w != v && w.name == v.name && w.includes(v)
	})
}

// includes reports whether v has all that w has. Two variants of one name
// that include each other are one.
func (v *variant) includes(w *variant) bool {
	return len(lacking(v.topics, w.topics)) == 0 && len(lacking(v.keeps, w.keeps)) == 0
}

// lacking returns those of want that have lacks. Both are sorted.
func lacking(have, want []string) []string {
	var out []string
	for _, t := range want {
		if _, ok := slices.BinarySearch(have, t); !ok {
			out = append(out, t)
		}
	}
	return out
}

// against returns why v cannot run beside what is chosen already.
func (v *variant) against(taken, reads map[string]*variant) error {
	if w := taken[v.name]; w != nil {
		if w.includes(v) {
			return &NarrowError{Subgraph: v.name, Topics: lacking(v.topics, w.topics), Keeps: lacking(v.keeps, w.keeps)}
		}
		return v.conflict(w)
	}
	// Nor may two subgraphs keep one store: it has one writer a partition.
	for _, t := range slices.Concat(v.topics, v.keeps) {
		if w := reads[t]; w != nil {
			return v.conflict(w)
		}
	}
	return nil
}

func (v *variant) conflict(w *variant) error {
	return &ConflictError{Subgraph: v.name, Topics: v.topics, Keeps: v.keeps, Other: w.name, OtherTopics: w.topics, OtherKeeps: w.keeps}
}

func (d *declarations) refuse(v *variant, err error) {
	for _, i := range v.members {
		d.refused[i] = append(d.refused[i], Refusal{Subgraph: v.name, Err: err})
	}
	if d.unassigned[v.name] == nil {
		d.unassigned[v.name] = err
	}
}

// orphaned returns the names that members have state of or claim and that
// nobody declares.
func (d *declarations) orphaned(members []Member) []string {
	names := map[string]bool{}
	for i := range members {
		for _, s := range members[i].Stored {
			names[s.Subgraph] = true
		}
		for _, t := range members[i].Claims {
			names[t.Subgraph] = true
		}
	}
	maps.DeleteFunc(names, func(n string, _ bool) bool { return d.declared[n] })
	return slices.Sorted(maps.Keys(names))
}
