package window

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrKey is what errors of keys are that are none of windows.
var ErrKey = errors.New("not the key of a window")

const (
	timeKeySize    = 8  // start
	sessionKeySize = 16 // end, start
)

// AppendTopicKey appends the key that w's result has in a topic, as
// AppendTimeKey or AppendSessionKey.
func (ws Windows) AppendTopicKey(dst, key []byte, w Window) []byte {
	if ws.kind == KindSession {
		return AppendSessionKey(dst, key, w)
	}
	return AppendTimeKey(dst, key, w.Start)
}

// SplitTopicKey is AppendTopicKey's inverse. The key is a part of b. An error
// is ErrKey.
func (ws Windows) SplitTopicKey(b []byte) (key []byte, w Window, err error) {
	if ws.kind == KindSession {
		return SplitSessionKey(b)
	}
	key, start, err := SplitTimeKey(b)
	if err != nil {
		return nil, Window{}, err
	}
	return key, ws.At(start), nil
}

// TopicKeySize returns how many bytes a key in a topic has beside the inner
// one.
func (ws Windows) TopicKeySize() int {
	if ws.kind == KindSession {
		return sessionKeySize
	}
	return timeKeySize
}

// AppendTimeKey appends the key that results of tumbling, hopping and sliding
// windows have in topics, the one that Kafka Streams writes: key, then start in
// 8 bytes, big-endian. start is not below 0. Such keys are not in order where
// inner keys differ in length; stores have another encoding (AppendKey).
func AppendTimeKey(dst, key []byte, start int64) []byte {
	return AppendTime(append(dst, key...), start)
}

// SplitTimeKey is AppendTimeKey's inverse. The key is a part of b. An error is
// ErrKey.
func SplitTimeKey(b []byte) (key []byte, start int64, err error) {
	n := len(b) - timeKeySize
	if n < 0 {
		return nil, 0, fmt.Errorf("%w: %d bytes, want at least %d", ErrKey, len(b), timeKeySize)
	}
	if start = timeAt(b, n); start < 0 {
		return nil, 0, fmt.Errorf("%w: it starts at %d", ErrKey, start)
	}
	return b[:n:n], start, nil
}

// AppendSessionKey appends the key that results of sessions have in topics,
// the one that Kafka Streams writes: key, then end and start in 8 bytes each,
// big-endian.
func AppendSessionKey(dst, key []byte, w Window) []byte {
	return AppendTime(AppendTime(append(dst, key...), w.End), w.Start)
}

// SplitSessionKey is AppendSessionKey's inverse. The key is a part of b. An
// error is ErrKey.
func SplitSessionKey(b []byte) (key []byte, w Window, err error) {
	n := len(b) - sessionKeySize
	if n < 0 {
		return nil, Window{}, fmt.Errorf("%w: %d bytes, want at least %d for a session", ErrKey, len(b), sessionKeySize)
	}
	w = Window{Start: timeAt(b, n+8), End: timeAt(b, n)}
	if w.Start < 0 || w.End < w.Start {
		return nil, Window{}, fmt.Errorf("%w: a session from %d to %d", ErrKey, w.Start, w.End)
	}
	return b[:n:n], w, nil
}

func timeAt(b []byte, i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }
