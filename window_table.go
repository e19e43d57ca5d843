package reka

import (
	"time"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/window"
)

// WindowTable is a topic whose records are rows of windows: one for each key
// and window. It is no Topic, for its records have keys of their own, made of
// a key and a window as Kafka Streams makes them: read as a Table, they would
// be in no useful order. Declare it once, as a package variable. The zero
// value is refused wherever it is used.
type WindowTable[T any] struct {
	name    string
	windows window.Windows
	codec   codec.Codec[T]
}

// NewWindowTable declares a table of windows. What is wrong with w is reported
// where the table is used.
func NewWindowTable[T any](topic string, w window.Windows, c codec.Codec[T]) WindowTable[T] {
	return WindowTable[T]{topic, w, c}
}

// Name returns the topic's name in Kafka.
func (t WindowTable[T]) Name() string { return t.name }

// Codec returns the codec of the rows' values.
func (t WindowTable[T]) Codec() codec.Codec[T] { return t.codec }

// Windows returns the windows.
func (t WindowTable[T]) Windows() window.Windows { return t.windows }

// WindowRow is one row of a table of windows. Time is the timestamp of the
// record that wrote it, to the millisecond: the highest one of the records in
// the window.
type WindowRow[T any] struct {
	Key    string
	Window window.Window
	Value  T
	Time   time.Time
}
