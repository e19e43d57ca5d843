package stream

import "fmt"

// cycle reports an operation that writes to a topic which what it writes comes
// from: its records would go round for ever. A graph may read a topic that it
// writes elsewhere, and processor.Loop is for records that are meant to come
// back.
func (b *Builder) cycle() error {
	behind := map[*node][]*node{} // what a node hands on to
	source := map[string]*node{}
	for _, n := range b.nodes {
		for _, p := range n.parents {
			behind[p] = append(behind[p], n)
		}
		for _, l := range n.links {
			behind[l] = append(behind[l], n)
		}
		switch {
		case n.input != nil:
			source[n.input.spec.Topic] = n
		case n.join != nil:
			source[n.join.spec.Topic] = n
		}
	}
	for _, n := range b.nodes {
		for _, o := range n.outputs {
			from := source[o.topic]
			if from == nil || from.input != nil && from.input.spec.Internal() {
				continue
			}
			if reaches(behind, from, n, map[*node]bool{}) {
				return fmt.Errorf("%s of %s: topic %s is where its records come from: a cycle", n.op, n.base, o.topic)
			}
		}
	}
	return nil
}

// reaches reports whether what leaves a node comes to another one.
func reaches(behind map[*node][]*node, from, to *node, seen map[*node]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	for _, n := range behind[from] {
		if !seen[n] && reaches(behind, n, to, seen) {
			return true
		}
	}
	return false
}
