package storage

import (
	"errors"
	"iter"
	"strconv"
	"time"
)

// Builder opens a Store. badgerstore.In(dir) and Memory return one.
// Processors and views that are given the same Builder share its Store.
type Builder interface {
	// Open returns the store, opening it if nobody has, or counting one more
	// user. Every successful Open is paired with one Store.Close; the last
	// one closes.
	Open() (Store, error)

	// String names the place for errors: a directory, or "memory".
	String() string
}

// Store is the state of one process: any number of tables, one per name and
// partition. All methods may be called from any goroutine.
type Store interface {
	// ProcessID identifies the process that owns the state. It is created
	// with the store and survives restarts for as long as the state does.
	ProcessID() string

	// Number returns the number that stands for a name in this store, the
	// same for ever. Names get numbers as they come.
	Number(name string) (uint32, error)

	// Table opens one partition of a named table, creating it empty. One
	// holder at a time: while another holds it, Table returns ErrBusy.
	Table(name string, partition int32) (Table, error)

	// Tables lists the partitions that hold rows or a checkpoint, by name and
	// partition. One that was opened and never written, or cleared, is not
	// among them.
	Tables() ([]TableID, error)

	// Close gives the store back. See Builder.Open.
	Close() error
}

// TableID names one partition of one table.
type TableID struct {
	Name      string
	Partition int32
}

// String returns "name/partition".
func (id TableID) String() string { return id.Name + "/" + strconv.Itoa(int(id.Partition)) }

// Table is one partition of one table: rows in byte order of their keys, and
// a checkpoint. Any byte sequence is a key, the empty one included; any
// length. A nil value is never stored: it deletes; an empty one is a value.
//
// Get, Snapshot and Checkpoint may be called from any goroutine at any time;
// Apply and Clear from one goroutine at a time. After Close all return
// ErrClosed.
type Table interface {
	// Get appends the value of key to dst and reports whether there is one.
	Get(dst, key []byte) ([]byte, bool, error)

	// Apply writes rows, in order, and then, if it is not nil, the
	// checkpoint. It may split the rows into several batches; all of them
	// are durable before the checkpoint is written, and the checkpoint is
	// durable when Apply returns. After a crash in between any part of the
	// rows may be there, under the old checkpoint. It keeps none of the
	// slices. Errors are *Error.
	Apply(rows []Row, cp *Checkpoint) error

	// Checkpoint returns the last checkpoint, if there is one.
	Checkpoint() (Checkpoint, bool, error)

	// Snapshot returns a view of the rows as they are now. It must be
	// released, and does not stop writers.
	Snapshot() (Snapshot, error)

	// Clear deletes all rows and the checkpoint, in bounded steps, the
	// checkpoint first.
	Clear() error

	// Close lets the next holder in. The rows stay.
	Close() error
}

// Row is a key with its value. A nil Value deletes.
type Row struct {
	Key, Value []byte
}

// Range selects rows in byte order of their keys.
type Range struct {
	From    []byte // inclusive; nil: from the first
	To      []byte // exclusive; nil: to the last
	Reverse bool   // from the last to the first
}

// Prefix returns the range of all keys that begin with p.
func Prefix(p []byte) Range {
	r := Range{From: p}
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] != 0xff {
			r.To = append(append([]byte{}, p[:i]...), p[i]+1)
			break
		}
	}
	return r
}

// Contains reports whether key lies in the range.
func (r Range) Contains(key []byte) bool {
	return (r.From == nil || string(key) >= string(r.From)) && (r.To == nil || string(key) < string(r.To))
}

// Snapshot reads the rows as of one moment. It may be used from one
// goroutine at a time.
type Snapshot interface {
	// Get is Table.Get as of the snapshot.
	Get(dst, key []byte) ([]byte, bool, error)

	// Scan yields the rows of a range in order. Key and value are valid
	// until the next step. An error is yielded last, with a zero Row.
	Scan(Range) iter.Seq2[Row, error]

	// Release ends the snapshot. Releasing twice does nothing.
	Release()
}

// Checkpoint says which part of a log the rows of a table stand for: all
// records below Position are in them, and of the later ones any.
type Checkpoint struct {
	// Position is the next offset to read of the table's topic.
	Position int64

	// LeaderEpoch is the leader epoch of the record before Position, -1 if
	// unknown.
	LeaderEpoch int32

	// TopicID is the topic's identity, zero if unknown.
	TopicID [16]byte

	// AtEnd is when Position was last known to be the end of the log, to the
	// millisecond. It bounds which tombstones may have been missed.
	AtEnd time.Time

	// Owner is what the owner keeps beside: opaque here.
	Owner []byte
}

// Errors of stores. They come wrapped in an *Error that names the place.
var (
	// ErrClosed: used after Close.
	ErrClosed = errors.New("store is closed")
	// ErrBusy: another holder has the table.
	ErrBusy = errors.New("table is in use")
	// ErrLocked: another process has the directory.
	ErrLocked = errors.New("state directory is in use by another process")
	// ErrForeign: the directory holds something else.
	ErrForeign = errors.New("directory is not a reka state directory")
	// ErrNewer: written by a later version.
	ErrNewer = errors.New("state directory has a newer format")
	// ErrFull: too little space is left on the device.
	ErrFull = errors.New("too little disk space")
	// ErrDamaged: rows fail their checksum or cannot be read.
	ErrDamaged = errors.New("state directory is damaged")
)

// Error places an error of a store: a directory, or a table in it.
type Error struct {
	Place string
	Err   error
}

// Error returns "storage: place: cause".
func (e *Error) Error() string { return "storage: " + e.Place + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
