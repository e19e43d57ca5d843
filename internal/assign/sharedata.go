package assign

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// ShareData is what the leader tells a member beside its partitions.
type ShareData struct {
	// Generation numbers the plan. It may be below the generation in which
	// the member gets it, and rises from plan to plan.
	Generation int32

	// Leader is the fingerprint of the leader's graph, and For that of the
	// member's own graph as the leader knew it. A static member that comes
	// back gets its last share without a new plan: if For is not what it runs
	// now, the plan was made for another program.
	Leader, For Fingerprint

	// Releasing, Awaiting, Rejoin and Refused are those of Share.
	Releasing []Task
	Awaiting  []Task
	Rejoin    bool
	Refused   []Refusal

	// Routes says which process owns which task in this generation; nil
	// where it did not fit.
	Routes *Routes

	present []uint64 // hashes of the process ids of all members, sorted; nil if Routes is there
}

// Routes is the routing table of a group.
type Routes struct {
	Processes []Process
	Owners    []Owners // sorted by subgraph
}

// Process is one member's process.
type Process struct {
	ID, Endpoint string
}

// Owners are the owners of one subgraph's tasks.
type Owners struct {
	Subgraph string
	// ByPartition has for each partition the index in Routes.Processes, -1:
	// nobody owns it in this generation.
	ByPartition []int32
}

// Present reports whether a process was a member when the plan was made. In
// one case of 2^64 it says so of one that was not.
func (d *ShareData) Present(processID string) bool {
	if d.Routes != nil {
		return slices.ContainsFunc(d.Routes.Processes, func(p Process) bool { return p.ID == processID })
	}
	_, ok := slices.BinarySearch(d.present, hashID(processID))
	return ok
}

// Owner returns the process that owns a task, if the table is there and
// somebody does.
func (r *Routes) Owner(t Task) (Process, bool) {
	if r == nil {
		return Process{}, false
	}
	for _, o := range r.Owners {
		if o.Subgraph != t.Subgraph || t.Partition < 0 || int(t.Partition) >= len(o.ByPartition) {
			continue
		}
		if i := o.ByPartition[t.Partition]; i >= 0 {
			return r.Processes[i], true
		}
	}
	return Process{}, false
}

// Count returns how many partitions a subgraph has in the plan, 0 if the table
// does not tell.
func (r *Routes) Count(subgraph string) int32 {
	if r == nil {
		return 0
	}
	for _, o := range r.Owners {
		if o.Subgraph == subgraph {
			return int32(len(o.ByPartition))
		}
	}
	return 0
}

func hashID(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // a hash.Hash returns no error
	return h.Sum64()
}

// Flags of a message.
const (
	flagRejoin = 1 << iota
	flagRoutes
)

// Append appends the encoding of d to dst.
func (d *ShareData) Append(dst []byte) []byte {
	e := d.own()
	if d.Routes == nil {
		e.body = append(e.body, encodePresent(d.present)...)
	} else {
		e.body = append(e.body, d.Routes.encode()...)
	}
	return e.appendTo(append(dst, wireVersion, wireReadable))
}

// own encodes what concerns the member alone.
func (d *ShareData) own() *encoder {
	e := &encoder{}
	var flags byte
	if d.Rejoin {
		flags |= flagRejoin
	}
	if d.Routes != nil {
		flags |= flagRoutes
	}
	e.body = append(append(append(e.body, flags), d.Leader[:]...), d.For[:]...)
	e.int(int64(d.Generation))
	e.tasks(d.Releasing, nil)
	e.tasks(d.Awaiting, nil)
	e.count(len(d.Refused))
	for _, r := range d.Refused {
		e.refusal(r)
	}
	return e
}

func encodePresent(hashes []uint64) []byte {
	b := binary.AppendUvarint(nil, uint64(len(hashes)))
	for _, h := range hashes {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	return b
}

func (r *Routes) encode() []byte {
	e := &encoder{}
	e.count(len(r.Processes))
	for _, p := range r.Processes {
		e.ref(p.ID)
		e.ref(p.Endpoint)
	}
	e.count(len(r.Owners))
	for _, o := range r.Owners {
		e.ref(o.Subgraph)
		e.count(len(o.ByPartition))
		for _, i := range o.ByPartition {
			e.uint(uint64(i + 1))
		}
	}
	return e.appendTo(nil)
}

// DecodeShare decodes what Append wrote. It keeps none of b. The error is an
// ErrMalformed or a *VersionError.
func DecodeShare(b []byte) (ShareData, error) {
	d, newer, err := header(b)
	if err != nil {
		return ShareData{}, err
	}
	d.dictionary()
	var flags byte
	if f := d.take(1); f != "" {
		flags = f[0]
	}
	s := ShareData{Rejoin: flags&flagRejoin != 0}
	s.Leader, s.For = d.fingerprint(), d.fingerprint()
	s.Generation = d.int32()
	s.Releasing = d.taskList()
	s.Awaiting = d.taskList()
	for range d.count() {
		s.Refused = append(s.Refused, d.refusal())
		if d.err != nil {
			break
		}
	}
	if flags&flagRoutes != 0 {
		s.Routes = d.routes()
	} else {
		s.present = d.presentHashes()
	}
	if err := d.end(newer); err != nil {
		return ShareData{}, err
	}
	return s, nil
}

func (d *decoder) presentHashes() []uint64 {
	n := d.count()
	if n > len(d.rest)/8 {
		d.fail("count beyond the end")
		return nil
	}
	out := make([]uint64, 0, n)
	for range n {
		out = append(out, binary.BigEndian.Uint64([]byte(d.take(8))))
	}
	if !slices.IsSorted(out) {
		d.fail("hashes out of order")
	}
	return out
}

func (d *decoder) routes() *Routes {
	d.dictionary()
	r := &Routes{}
	n := d.count()
	r.Processes = make([]Process, 0, n)
	for range n {
		r.Processes = append(r.Processes, Process{ID: d.ref(), Endpoint: d.ref()})
	}
	for range d.count() {
		o := Owners{Subgraph: d.ref()}
		partitions := d.count()
		o.ByPartition = make([]int32, 0, partitions)
		for range partitions {
			i := d.uint()
			if i > uint64(n) {
				d.fail("unknown process")
				return nil
			}
			o.ByPartition = append(o.ByPartition, int32(i)-1)
		}
		if d.err != nil {
			return nil
		}
		r.Owners = append(r.Owners, o)
	}
	return r
}

// Kinds of refusals.
const (
	refusedOther = iota
	refusedMissing
	refusedMismatch
	refusedNarrow
	refusedConflict
)

func (e *encoder) refusal(r Refusal) {
	e.ref(r.Subgraph)
	switch err := r.Err.(type) { //nolint:errorlint // Plan and DecodeShare wrap none of them
	case *MissingTopicsError:
		e.count(refusedMissing)
		e.refList(err.Topics)
	case *MismatchError:
		e.count(refusedMismatch)
		e.refList(err.Topics)
		for _, n := range err.Counts {
			e.int(int64(n))
		}
	case *NarrowError:
		e.count(refusedNarrow)
		e.refList(err.Topics)
		e.refList(err.Keeps)
	case *ConflictError:
		e.count(refusedConflict)
		e.refList(err.Topics)
		e.refList(err.Keeps)
		e.ref(err.Other)
		e.refList(err.OtherTopics)
		e.refList(err.OtherKeeps)
	case *OtherError:
		e.count(refusedOther)
		e.ref(err.Reason)
	default:
		e.count(refusedOther)
		e.ref(r.Err.Error())
	}
}

func (d *decoder) refusal() Refusal {
	r := Refusal{Subgraph: d.ref()}
	switch kind := d.uint(); kind {
	case refusedMissing:
		r.Err = &MissingTopicsError{Subgraph: r.Subgraph, Topics: d.refList()}
	case refusedMismatch:
		err := &MismatchError{Subgraph: r.Subgraph, Topics: d.refList()}
		for range err.Topics {
			err.Counts = append(err.Counts, d.int32())
		}
		r.Err = err
	case refusedNarrow:
		r.Err = &NarrowError{Subgraph: r.Subgraph, Topics: d.refList(), Keeps: d.refList()}
	case refusedConflict:
		r.Err = &ConflictError{
			Subgraph: r.Subgraph, Topics: d.refList(), Keeps: d.refList(),
			Other: d.ref(), OtherTopics: d.refList(), OtherKeeps: d.refList(),
		}
	case refusedOther:
		r.Err = &OtherError{Subgraph: r.Subgraph, Reason: d.ref()}
	default:
		d.fail("unknown kind of refusal")
	}
	return r
}
