package task

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/storage"
)

// timeline is the head of a store's rows that begin with one byte and 8 bytes
// of time: the keys that are next, so that looking whether something is due
// costs a comparison, and no row is read before it is. Owned by the task.
//
// What holds: keys has all keys of the timeline below horizon, in order, as
// the table has them at a record boundary; a nil horizon is the end of all.
// The head is bounded: what lies beyond it is read when it is used up.
type timeline struct {
	prefix  byte
	table   *replica.Table
	keys    [][]byte
	horizon []byte
	end     []byte // the first key that is beyond the timeline
}

// timelineHead is how many keys a head is filled with; it may grow to twice
// as many.
const timelineHead = 512

// timeAt is where the time stands in a timeline's key, and how long it is.
const (
	timeAt  = 1
	timeLen = 8
)

func newTimeline(table *replica.Table, prefix byte) *timeline {
	l := &timeline{prefix: prefix, table: table, horizon: []byte{prefix}}
	if prefix < 0xff {
		l.end = []byte{prefix + 1}
	}
	return l
}

// next returns the first key, nil if there is none.
func (l *timeline) next() ([]byte, error) {
	for len(l.keys) == 0 {
		if l.horizon == nil {
			return nil, nil
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
	return l.keys[0], nil
}

// fill reads the keys from the horizon on.
func (l *timeline) fill() error {
	l.keys = l.keys[:0]
	rng := storage.Range{From: l.horizon, To: l.end}
	l.horizon = nil
	for row, err := range l.table.Scan(rng) {
		if err != nil {
			l.horizon = rng.From
			return err
		}
		if len(row.Key) < timeAt+timeLen {
			continue // nobody's entry
		}
		if len(l.keys) == timelineHead {
			l.horizon = bytes.Clone(row.Key)
			return nil
		}
		l.keys = append(l.keys, bytes.Clone(row.Key))
	}
	return nil
}

// changed is told of a row that was set, or deleted.
func (l *timeline) changed(key []byte, isDelete bool) {
	if l.horizon != nil && bytes.Compare(key, l.horizon) >= 0 {
		return
	}
	i, found := 0, false
	if n := len(l.keys); n > 0 && bytes.Compare(key, l.keys[n-1]) > 0 {
		i = n // the usual place of what is new
	} else {
		i, found = slices.BinarySearchFunc(l.keys, key, bytes.Compare)
	}
	switch {
	case isDelete && found && i == 0:
		l.keys[0] = nil
		l.keys = l.keys[1:]
	case isDelete && found:
		l.keys = slices.Delete(l.keys, i, i+1)
	case !isDelete && !found && len(key) >= timeAt+timeLen:
		l.keys = slices.Insert(l.keys, i, bytes.Clone(key))
		if len(l.keys) > 2*timelineHead {
			l.horizon = l.keys[timelineHead]
			clear(l.keys[timelineHead:])
			l.keys = l.keys[:timelineHead]
		}
	}
}

// timeOfKey returns the time in a timeline's key.
func timeOfKey(key []byte) int64 { return int64(binary.BigEndian.Uint64(key[timeAt:])) }
