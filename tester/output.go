package tester

import (
	"slices"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

// Record is a record of an output topic.
type Record[T any] struct {
	Key     string
	NullKey bool
	Value   T
	// Null says that the record has no value; Value is zero then.
	Null      bool
	Time      time.Time
	Headers   []kafka.Header
	Partition int32
	Offset    int64
}

// Header returns the value of the first header of a name.
func (r Record[T]) Header(name string) ([]byte, bool) {
	for _, h := range r.Headers {
		if h.Key == name {
			return h.Value, true
		}
	}
	return nil, false
}

// OutputTopic reads the records of a topic in the order in which they were
// written, over all partitions. Every method settles first.
type OutputTopic[T any] struct {
	t     *Tester
	topic reka.Topic[T]
	next  cursor // from where Next goes on
}

// Output returns a handle that reads a topic from its beginning, as a reader of
// committed records does. A topic that does not exist is created, as by Input.
func Output[T any](t *Tester, topic reka.Topic[T]) *OutputTopic[T] {
	t.tb.Helper()
	t.enter()
	t.ensure(specOf(topic))
	return &OutputTopic[T]{t: t, topic: topic}
}

// Next returns the next record that this handle has not returned yet, if
// there is one.
func (out *OutputTopic[T]) Next() (Record[T], bool) {
	out.t.tb.Helper()
	raw := out.t.read(out.topic.Name(), &out.next)
	if len(raw) == 0 {
		return Record[T]{}, false
	}
	out.next.pass(raw[0])
	return decode(out.t, out.topic, raw[0]), true
}

// All returns all records that are in the topic, whether Next returned them
// or not.
func (out *OutputTopic[T]) All() []Record[T] {
	out.t.tb.Helper()
	raw := out.t.read(out.topic.Name(), nil)
	rs := make([]Record[T], len(raw))
	for i, r := range raw {
		rs[i] = decode(out.t, out.topic, r)
	}
	return rs
}

// Values returns the values of All; those of records without one are zero.
func (out *OutputTopic[T]) Values() []T {
	out.t.tb.Helper()
	all := out.All()
	vs := make([]T, len(all))
	for i, r := range all {
		vs[i] = r.Value
	}
	return vs
}

// Len returns how many records are in the topic.
func (out *OutputTopic[T]) Len() int {
	out.t.tb.Helper()
	return len(out.t.read(out.topic.Name(), nil))
}

// Raw returns the committed records of one partition of any topic as they
// are. It settles first.
func (t *Tester) Raw(topic string, partition int32) []kafka.Record {
	t.tb.Helper()
	var rs []kafka.Record
	for _, r := range t.read(topic, nil) {
		if r.partition == partition {
			rs = append(rs, r.Record)
		}
	}
	return rs
}

// raw is a record as it is in a log.
type raw struct {
	entry
	partition int32
}

// cursor is how far a topic was read. A topic that was created again is read
// from its beginning.
type cursor struct {
	id   kafka.TopicID
	next map[int32]int64 // offset by partition
}

// pass moves the cursor over a record.
func (c *cursor) pass(r raw) { c.next[r.partition] = r.Offset + 1 }

// enter prepares the cursor for a topic. It reports whether that is another
// one than before.
func (c *cursor) enter(id kafka.TopicID) bool {
	if c.next != nil && c.id == id {
		return false
	}
	c.id, c.next = id, map[int32]int64{}
	return true
}

// read settles and returns the committed records of a topic behind a cursor,
// which may be nil, in the order of writing.
func (t *Tester) read(name string, c *cursor) []raw {
	t.tb.Helper()
	t.Settle()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	tp := t.w.topics[name]
	if tp == nil {
		return nil
	}
	if c == nil {
		c = &cursor{}
	}
	c.enter(tp.id)
	var rs []raw
	for p, l := range tp.logs {
		from, to := l.from(c.next[int32(p)]), l.from(l.stable())
		for _, e := range l.entries[min(from, to):to] {
			if !e.control && !e.aborted() {
				rs = append(rs, raw{e, int32(p)})
			}
		}
	}
	slices.SortFunc(rs, func(a, b raw) int { return int(a.seq - b.seq) })
	return rs
}

func decode[T any](t *Tester, topic reka.Topic[T], r raw) Record[T] {
	t.tb.Helper()
	rec := Record[T]{Key: string(r.Key), NullKey: r.Key == nil, Null: r.Value == nil, Time: time.UnixMilli(r.Timestamp).UTC(),
		Headers: slices.Clone(r.Headers), Partition: r.partition, Offset: r.Offset}
	if r.Value == nil {
		return rec
	}
	v, err := topic.Codec().Decode(slices.Clone(r.Value))
	if err != nil {
		t.tb.Fatalf("tester: %v", &kafka.Error{TopicPartition: kafka.TopicPartition{Topic: topic.Name(), Partition: r.partition},
			Offset: r.Offset, Key: r.Key, Err: err})
	}
	rec.Value = v
	return rec
}
