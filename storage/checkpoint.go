package storage

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// checkpointSize is the encoded size of a checkpoint without its Owner:
// version, position, leader epoch, topic id, time.
const checkpointSize = 1 + 8 + 4 + 16 + 8

const checkpointVersion = 1

// noTime stands for the zero time, which has no place among the milliseconds.
const noTime = -1 << 63

var errCheckpoint = errors.New("stored checkpoint has an unknown form")

// AppendBinary appends the stored form of c to dst. It never fails.
func (c Checkpoint) AppendBinary(dst []byte) ([]byte, error) {
	at := int64(noTime)
	if !c.AtEnd.IsZero() {
		at = c.AtEnd.UnixMilli()
	}
	dst = append(dst, checkpointVersion)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Position))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.LeaderEpoch))
	dst = append(dst, c.TopicID[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(at))
	return append(dst, c.Owner...), nil
}

// UnmarshalBinary reads what AppendBinary wrote. It keeps nothing of b.
func (c *Checkpoint) UnmarshalBinary(b []byte) error {
	if len(b) < checkpointSize || b[0] != checkpointVersion {
		return errCheckpoint
	}
	*c = Checkpoint{
		Position:    int64(binary.BigEndian.Uint64(b[1:])),
		LeaderEpoch: int32(binary.BigEndian.Uint32(b[9:])),
		TopicID:     [16]byte(b[13:29]),
	}
	if at := int64(binary.BigEndian.Uint64(b[29:])); at != noTime {
		c.AtEnd = time.UnixMilli(at).UTC()
	}
	if len(b) > checkpointSize {
		c.Owner = slices.Clone(b[checkpointSize:])
	}
	return nil
}

// clone returns c as it would come back from a disk: the time in UTC and to
// the millisecond, an empty Owner as nil, no slice shared.
func (c Checkpoint) clone() Checkpoint {
	if !c.AtEnd.IsZero() {
		c.AtEnd = time.UnixMilli(c.AtEnd.UnixMilli()).UTC()
	}
	if len(c.Owner) == 0 {
		c.Owner = nil
	}
	c.Owner = slices.Clone(c.Owner)
	return c
}
