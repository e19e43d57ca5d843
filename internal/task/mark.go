package task

import (
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/rekastream/reka/kafka"
)

// Mark goes with every commit, as the metadata of the offset of the task's
// first input (see graph.Graph.Marked): who wrote the epoch, which one it was,
// and the stream time after it. It is well under 200 bytes. The offsets of
// other inputs carry the id of their topic only.
type Mark struct {
	Topic       kafka.TopicID // of the input; zero: unknown
	Writer      string        // process id; at most 64 bytes of it are kept
	Epoch       uint64
	StreamTime  int64 // milliseconds since the epoch; noTime before the first record
	Fingerprint uint64

	// An epoch may end in the middle of the steps around a record: then this
	// is which steps are being taken, the stream time when those after a record
	// were taken last, and whether there is no record, but the wall clock.
	phase phase
	from  int64
	alone bool
}

const (
	markVersion  = 1
	topicVersion = 2 // of metadata that holds nothing but the topic's id
	walkVersion  = 3 // of a mark in the middle of steps
	markWriter   = 64
	// noTime is the stream time of a task that has seen no record.
	noTime = -1
)

// walkHead is what a mark in the middle of steps begins with: version, phase,
// and the time before.
const walkHead = 1 + 1 + 8

// walkAlone is set beside the phase where there is no record.
const walkAlone = 0x80

// isPhase reports whether a mark in the middle of steps can have this phase.
func isPhase(b byte) bool { return b > byte(resting) && b <= byte(between) }

// errNotMark says that the metadata of an offset is not a mark: somebody
// else committed it.
var errNotMark = errors.New("offset metadata is not a mark of this library")

// Encode returns the mark as offset metadata.
func (m Mark) Encode() string {
	b := make([]byte, 0, 128)
	if m.phase == resting {
		b = append(b, markVersion)
	} else {
		p := byte(m.phase)
		if m.alone {
			p |= walkAlone
		}
		b = append(b, walkVersion, p)
		b = binary.BigEndian.AppendUint64(b, uint64(m.from))
	}
	b = append(b, m.Topic[:]...)
	b = binary.BigEndian.AppendUint64(b, m.Epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(m.StreamTime))
	b = binary.BigEndian.AppendUint64(b, m.Fingerprint)
	b = append(b, m.Writer[:min(len(m.Writer), markWriter)]...)
	return base64.RawStdEncoding.EncodeToString(b)
}

// DecodeMark reads the metadata of an offset.
func DecodeMark(s string) (Mark, error) {
	b, err := base64.RawStdEncoding.DecodeString(s)
	const fixed = len(kafka.TopicID{}) + 3*8
	m := Mark{}
	if err == nil && len(b) > walkHead && b[0] == walkVersion && isPhase(b[1]&^walkAlone) {
		m.phase, m.alone, m.from = phase(b[1]&^walkAlone), b[1]&walkAlone != 0, int64(binary.BigEndian.Uint64(b[2:]))
		b = b[walkHead-1:]
		b[0] = markVersion
	}
	if err != nil || len(b) < 1+fixed || len(b) > 1+fixed+markWriter || b[0] != markVersion {
		return Mark{StreamTime: noTime}, errNotMark
	}
	m.Writer = string(b[1+fixed:])
	b = b[1+copy(m.Topic[:], b[1:]):]
	m.Epoch = binary.BigEndian.Uint64(b)
	m.StreamTime = int64(binary.BigEndian.Uint64(b[8:]))
	m.Fingerprint = binary.BigEndian.Uint64(b[16:])
	return m, nil
}

// TopicMetadata is what the offset of an input without a mark carries.
func TopicMetadata(id kafka.TopicID) string {
	return base64.RawStdEncoding.EncodeToString(append([]byte{topicVersion}, id[:]...))
}

// TopicOf returns the id of the topic that an offset was committed for, as its
// metadata tells, with a mark or without.
func TopicOf(metadata string) (id kafka.TopicID, ok bool) {
	b, err := base64.RawStdEncoding.DecodeString(metadata)
	if err == nil && len(b) > walkHead && b[0] == walkVersion {
		b = b[walkHead-1:]
		b[0] = markVersion
	}
	if err != nil || len(b) < 1+len(id) || b[0] != markVersion && b[0] != topicVersion {
		return id, false
	}
	copy(id[:], b[1:])
	return id, id != kafka.TopicID{}
}
