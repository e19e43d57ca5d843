package assign

import "slices"

// Fingerprint is a hash of what a program declares.
type Fingerprint [8]byte

// MemberData is what a member tells the leader when it joins.
type MemberData struct {
	// ProcessID identifies the process, and its state directory if it has
	// one.
	ProcessID string

	// Fingerprint of the member's graph.
	Fingerprint Fingerprint

	// Nonce makes the bytes differ from those of the last join, so that the
	// broker starts a rebalance.
	Nonce uint64

	// Endpoint is where the member answers queries, empty for nowhere.
	Endpoint string

	// Lanes is how many lanes the process has ever used.
	Lanes int32

	// Subgraphs are those that the member can run.
	Subgraphs []Subgraph

	// Stored are tasks whose state is on the member's disk and which it does
	// not run, each once. Those of subgraphs that it no longer declares are
	// welcome: they show the leader what is left over.
	Stored []Stored
}

// Append appends the encoding of d to dst.
func (d *MemberData) Append(dst []byte) []byte {
	var e encoder
	e.body = append(e.body, d.Fingerprint[:]...)
	e.ref(d.ProcessID)
	e.uint(d.Nonce)
	e.ref(d.Endpoint)
	e.int(int64(d.Lanes))
	e.count(len(d.Subgraphs))
	for _, s := range d.Subgraphs {
		e.ref(s.Name)
		e.refList(s.Topics)
		e.refList(s.Keeps)
	}
	stored := slices.Clone(d.Stored)
	slices.SortFunc(stored, func(a, b Stored) int { return compareTasks(a.Task, b.Task) })
	tasks := make([]Task, len(stored))
	for i := range stored {
		tasks[i] = stored[i].Task
	}
	e.tasks(tasks, func(i int) { e.int(stored[i].Position) })
	return e.appendTo(append(dst, wireVersion, wireReadable))
}

// DecodeMember decodes what Append wrote. It keeps none of b. The error is an
// ErrMalformed or a *VersionError.
func DecodeMember(b []byte) (MemberData, error) {
	d, newer, err := header(b)
	if err != nil {
		return MemberData{}, err
	}
	d.dictionary()
	var m MemberData
	m.Fingerprint = d.fingerprint()
	m.ProcessID = d.ref()
	m.Nonce = d.uint()
	m.Endpoint = d.ref()
	m.Lanes = d.int32()
	for range d.count() {
		m.Subgraphs = append(m.Subgraphs, Subgraph{Name: d.ref(), Topics: d.refList(), Keeps: d.refList()})
		if d.err != nil {
			break
		}
	}
	d.tasks(func(t Task) {
		m.Stored = append(m.Stored, Stored{Task: t, Position: d.int()})
	})
	if err := d.end(newer); err != nil {
		return MemberData{}, err
	}
	return m, nil
}
