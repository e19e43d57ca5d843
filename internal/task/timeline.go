package task

import (
	"bytes"
	"encoding/binary"

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
	keys    sortedKeys
	horizon []byte
	end     []byte // the first key that is beyond the timeline
}

// timelineHead is how many keys a head is filled with; it may grow to twice
// as many.
const timelineHead = 32 << 10

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
	for l.keys.n == 0 {
		if l.horizon == nil {
			return nil, nil
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
	return l.keys.first(), nil
}

// fill reads the keys from the horizon on.
func (l *timeline) fill() error {
	rng := storage.Range{From: l.horizon, To: l.end}
	l.horizon = nil
	for row, err := range l.table.ScanOnce(rng) {
		if err != nil {
			l.keys, l.horizon = sortedKeys{}, rng.From
			return err
		}
		if len(row.Key) < timeAt+timeLen {
			continue // nobody's entry
		}
		if l.keys.n == timelineHead {
			l.horizon = bytes.Clone(row.Key)
			return nil
		}
		l.keys.insert(row.Key)
	}
	return nil
}

// changed is told of a row that has come, or gone.
func (l *timeline) changed(key []byte, isDelete bool) {
	switch {
	case l.horizon != nil && bytes.Compare(key, l.horizon) >= 0:
	case isDelete:
		l.keys.remove(key)
	case len(key) >= timeAt+timeLen:
		l.keys.insert(key)
		if l.keys.n > 2*timelineHead {
			l.horizon = l.keys.cut(timelineHead)
		}
	}
}

// timeOfKey returns the time in a timeline's key.
func timeOfKey(key []byte) int64 { return int64(binary.BigEndian.Uint64(key[timeAt:])) }
