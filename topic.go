package reka

import (
	"time"

	"github.com/rekastream/reka/codec"
)

// Topic is a topic of records of type T: a Stream or a Table. It is sealed.
type Topic[T any] interface {
	// Name returns the topic's name in Kafka.
	Name() string
	// Codec returns the codec of its values.
	Codec() codec.Codec[T]

	sealed()
}

// Stream is a topic whose records are facts: none replaces another. Declare
// it once, as a package variable, and share it between everything that writes
// or reads it. The zero value is refused wherever it is used.
type Stream[T any] struct{ topic[T] }

// Table is a topic whose records are rows: the last one of a key counts, and
// one without a value deletes.
type Table[T any] struct{ topic[T] }

type topic[T any] struct {
	name  string
	codec codec.Codec[T]
}

// Name returns the topic's name in Kafka.
func (t topic[T]) Name() string { return t.name }

// Codec returns the codec of the topic's values.
func (t topic[T]) Codec() codec.Codec[T] { return t.codec }

func (topic[T]) sealed() {}

// NewStream declares a stream.
func NewStream[T any](name string, c codec.Codec[T]) Stream[T] { return Stream[T]{topic[T]{name, c}} }

// NewTable declares a table.
func NewTable[T any](name string, c codec.Codec[T]) Table[T] { return Table[T]{topic[T]{name, c}} }

// GroupTable declares the table that the processors of a group keep. Its
// topic is TableTopic(group).
func GroupTable[T any](group string, c codec.Codec[T]) Table[T] {
	return NewTable(TableTopic(group), c)
}

// TableTopic returns the name of a group's table topic, "<group>-table".
func TableTopic(group string) string { return group + "-table" }

// LoopTopic returns the name of a group's loop topic, "<group>-loop".
func LoopTopic(group string) string { return group + "-loop" }

// ChangelogTopic returns the name of the changelog of a further store of a
// group, "<group>-<store>-changelog".
func ChangelogTopic(group, store string) string { return group + "-" + store + "-changelog" }

// Row is one row of a table. Time is the timestamp of the record that wrote
// it, to the millisecond.
type Row[T any] struct {
	Key   string
	Value T
	Time  time.Time
}

// RepartitionTopic returns the name of a repartition topic of a group,
// "<group>-<name>-repartition".
func RepartitionTopic(group, name string) string { return group + "-" + name + "-repartition" }
