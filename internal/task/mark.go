package task

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// Mark goes with every commit, as the metadata of the offset of the task's
// first input: who wrote the epoch, which one it was, and the stream time
// after it. It is well under 200 bytes.
type Mark struct {
	Writer      string // process id; at most 64 bytes of it are kept
	Epoch       uint64
	StreamTime  int64 // milliseconds since the epoch; noTime before the first record
	Fingerprint uint64
}

const (
	markVersion = 1
	markWriter  = 64
	// noTime is the stream time of a task that has seen no record.
	noTime = -1
)

// errNotMark says that the metadata of an offset is not a mark: somebody
// else committed it.
var errNotMark = errors.New("offset metadata is not a mark of this library")

// Encode returns the mark as offset metadata.
func (m Mark) Encode() string {
	b := make([]byte, 0, 96)
	b = append(b, markVersion)
	b = binary.BigEndian.AppendUint64(b, m.Epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(m.StreamTime))
	b = binary.BigEndian.AppendUint64(b, m.Fingerprint)
	b = append(b, m.Writer[:min(len(m.Writer), markWriter)]...)
	return base64.RawStdEncoding.EncodeToString(b)
}

// DecodeMark reads the metadata of an offset.
func DecodeMark(s string) (Mark, error) {
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil || len(b) < 25 || len(b) > 25+markWriter || b[0] != markVersion {
		return Mark{StreamTime: noTime}, errNotMark
	}
	return Mark{
		Epoch:       binary.BigEndian.Uint64(b[1:]),
		StreamTime:  int64(binary.BigEndian.Uint64(b[9:])),
		Fingerprint: binary.BigEndian.Uint64(b[17:]),
		Writer:      string(b[25:]),
	}, nil
}
