package kafka

import (
	"fmt"
	"strconv"
)

// Header is one header of a record. A nil value is a null.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record of a partition, read or to be written. A nil Key or
// Value is a null, which is distinct from an empty one.
//
// The bytes of a fetched record alias the buffer of its whole fetch: whoever
// keeps one of them keeps the buffer, and copies what it keeps for long. They
// are never changed by anybody.
type Record struct {
	Key     []byte
	Value   []byte
	Headers []Header

	// Offset is the record's own offset. Not used when writing.
	Offset int64

	// Timestamp is in milliseconds since the epoch. A fetched record has the
	// broker's time where the topic says LogAppendTime. Negative: none; the
	// driver then writes the clock's time.
	Timestamp int64
}

// Size is what the record costs uncompressed in a batch, in bytes, rounded
// up. It is what limits and budgets count.
func (r *Record) Size() int {
	n := len(r.Key) + len(r.Value) + 36 // at most: length, attributes, deltas, three lengths, all varints
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value) + 10
	}
	return n
}

// TopicPartition names one partition of one topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String returns topic/partition.
func (tp TopicPartition) String() string {
	return tp.Topic + "/" + strconv.Itoa(int(tp.Partition))
}

// TopicID identifies a topic over deletion and re-creation. The zero value
// means unknown, on brokers that have none.
type TopicID [16]byte

// String returns the id in hexadecimal.
func (id TopicID) String() string { return fmt.Sprintf("%x", id[:]) }

// IsZero reports whether the id is unknown.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// Batch is what one fetch brought of one partition. Positions are always
// "next offset to read".
type Batch struct {
	TopicPartition

	// Records in log order, none of them below the position asked for.
	// Control records and records of aborted transactions are left out. May
	// be empty: the position moved over such records, or one of the marks
	// below changed, or this is the first answer after Follow.
	Records []Record

	// Position is the position after this batch. It is beyond the last
	// record where control or aborted records followed.
	Position int64

	// LeaderEpoch is the leader epoch of everything that the batch passed
	// over: where the epoch changes another Batch begins. It is -1 if nothing
	// was passed over but what compaction removed, or the log has none.
	LeaderEpoch int32

	// HighWatermark, LastStable and LogStart are the partition's marks as of
	// this answer.
	HighWatermark int64
	LastStable    int64
	LogStart      int64

	// Bytes is what the batch takes of the partition's budget until Release.
	Bytes int

	// Err ends the following of this partition: the fetcher has dropped it
	// and delivers nothing more of it until it is followed again. See
	// Fetcher for the errors. Network trouble is never reported here.
	Err error

	release func()
}

// NewBatch is for drivers: it ties what Release does to b.
func NewBatch(b Batch, release func()) *Batch {
	b.release = release
	return &b
}

// Release gives the batch's bytes back to the partition's budget, so that
// more of it is fetched. It may be called from any goroutine, once. Records
// that are still referenced stay valid.
func (b *Batch) Release() {
	if b.release != nil {
		b.release()
		b.release = nil
	}
}

// AtEnd reports whether nothing was left to read behind the batch when it
// was fetched under the given isolation.
func (b *Batch) AtEnd(committed bool) bool {
	if committed {
		return b.Position >= b.LastStable
	}
	return b.Position >= b.HighWatermark
}
