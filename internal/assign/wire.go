package assign

import (
	"encoding/binary"
	"fmt"
)

// wireVersion is the version that this package writes; wireReadable the
// lowest one that can read what it writes.
const (
	wireVersion  = 1
	wireReadable = 1
)

// encoder writes one message. Strings go into a dictionary, which stands in
// front of the body.
type encoder struct {
	body  []byte
	names []string
	refs  map[string]int
}

func (e *encoder) uint(v uint64) { e.body = binary.AppendUvarint(e.body, v) }
func (e *encoder) int(v int64)   { e.body = binary.AppendVarint(e.body, v) }
func (e *encoder) count(n int)   { e.uint(uint64(n)) }

func (e *encoder) ref(s string) {
	i, ok := e.refs[s]
	if !ok {
		if e.refs == nil {
			e.refs = map[string]int{}
		}
		i = len(e.names)
		e.refs[s] = i
		e.names = append(e.names, s)
	}
	e.count(i)
}

func (e *encoder) refList(list []string) {
	e.count(len(list))
	for _, s := range list {
		e.ref(s)
	}
}

// tasks writes tasks, grouped by subgraph, with partitions as differences.
// They must be sorted. each, if not nil, writes what stands beside a task.
func (e *encoder) tasks(list []Task, each func(i int)) {
	groups := 0
	for i := range list {
		if i == 0 || list[i].Subgraph != list[i-1].Subgraph {
			groups++
		}
	}
	e.count(groups)
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].Subgraph == list[from].Subgraph {
			to++
		}
		e.ref(list[from].Subgraph)
		e.count(to - from)
		last := int32(0)
		for i := from; i < to; i++ {
			e.uint(uint64(list[i].Partition - last))
			last = list[i].Partition
			if each != nil {
				each(i)
			}
		}
		from = to
	}
}

// appendTo appends dictionary and body to dst.
func (e *encoder) appendTo(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(e.names)))
	for _, s := range e.names {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	return append(dst, e.body...)
}

// decoder reads one message. The first error sticks, and everything read
// after it is zero. What it allocates is bounded by the message's length:
// each element that a count promises takes at least a byte.
type decoder struct {
	rest  string
	names []string
	err   error
}

// header starts a decoder behind the versions. newer reports that a later
// version wrote the message, which may then go on behind what is known.
func header(b []byte) (d *decoder, newer bool, err error) {
	if len(b) < 2 {
		return nil, false, fmt.Errorf("%w: %d bytes", ErrMalformed, len(b))
	}
	if b[0] < 1 || b[1] < 1 || b[1] > b[0] {
		return nil, false, fmt.Errorf("%w: version %d, readable from %d", ErrMalformed, b[0], b[1])
	}
	if b[1] > wireVersion {
		return nil, false, &VersionError{Version: b[0], Readable: b[1]}
	}
	return &decoder{rest: string(b[2:])}, b[0] > wireVersion, nil
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s, %d bytes before the end", ErrMalformed, what, len(d.rest))
	}
	d.rest = ""
}

func (d *decoder) uint() uint64 {
	var v uint64
	for i := 0; i < len(d.rest) && i < binary.MaxVarintLen64; i++ {
		c := d.rest[i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			break
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	d.fail("bad number")
	return 0
}

func (d *decoder) int() int64 {
	u := d.uint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *decoder) int32() int32 {
	v := d.int()
	if int64(int32(v)) != v {
		d.fail("number out of range")
		return 0
	}
	return int32(v)
}

func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail("count beyond the end")
		return 0
	}
	return int(n)
}

func (d *decoder) take(n int) string {
	if n > len(d.rest) {
		d.fail("cut short")
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) dictionary() {
	n := d.count()
	d.names = make([]string, 0, n)
	for range n {
		d.names = append(d.names, d.take(d.count()))
	}
}

func (d *decoder) ref() string {
	i := d.uint()
	if i >= uint64(len(d.names)) {
		d.fail("unknown name")
		return ""
	}
	return d.names[i]
}

func (d *decoder) refList() []string {
	n := d.count()
	if n == 0 {
		return nil
	}
	out := make([]string, 0, n)
	for range n {
		out = append(out, d.ref())
	}
	return out
}

func (d *decoder) fingerprint() (f Fingerprint) {
	copy(f[:], d.take(len(f)))
	return f
}

// tasks reads what encoder.tasks wrote.
func (d *decoder) tasks(each func(Task)) {
	for range d.count() {
		name := d.ref()
		last := uint64(0)
		for range d.count() {
			step := d.uint()
			if last += step; step > 1<<31-1 || last > 1<<31-1 {
				d.fail("partition out of range")
			}
			if d.err != nil {
				return
			}
			each(Task{Subgraph: name, Partition: int32(last)})
		}
	}
}

func (d *decoder) taskList() []Task {
	var out []Task
	d.tasks(func(t Task) { out = append(out, t) })
	return out
}

// end checks that nothing is left that this version should know.
func (d *decoder) end(newer bool) error {
	if d.err == nil && !newer && len(d.rest) > 0 {
		d.fail("bytes left over")
	}
	return d.err
}
