package kafka

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors of the broker and of a Driver. They come wrapped: use errors.Is.
var (
	// ErrClosed: the client, or what was made of it, is closed.
	ErrClosed = errors.New("closed")
	// ErrAuthentication: the broker refused the credentials or the TLS
	// handshake failed for good.
	ErrAuthentication = errors.New("authentication failed")
	// ErrNotAuthorized: the principal lacks a right.
	ErrNotAuthorized = errors.New("not authorized")
	// ErrUnknownTopic: the topic or partition does not exist.
	ErrUnknownTopic = errors.New("unknown topic or partition")
	// ErrTopicExists: a topic to be created exists.
	ErrTopicExists = errors.New("topic exists")
	// ErrInvalidTopic: the broker refuses a topic's name or settings.
	ErrInvalidTopic = errors.New("invalid topic")
	// ErrTopicChanged: another topic stands behind the name.
	ErrTopicChanged = errors.New("topic was deleted and created again")
	// ErrOffsetOutOfRange: see OffsetOutOfRangeError and TruncatedError.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrCorrupt: a batch fails its checksum or cannot be decoded.
	ErrCorrupt = errors.New("corrupt batch")
	// ErrTooLarge: a record is larger than its topic accepts.
	ErrTooLarge = errors.New("record too large")
	// ErrInvalidRecord: the broker refuses a record (a null key in a
	// compacted topic, a timestamp out of bounds).
	ErrInvalidRecord = errors.New("invalid record")
	// ErrDeliveryTimeout: a record was not acknowledged in time. It may have
	// been written.
	ErrDeliveryTimeout = errors.New("delivery timed out")
	// ErrIllegalGeneration: the group has moved to another generation.
	ErrIllegalGeneration = errors.New("illegal generation")
	// ErrUnknownMember: the group does not know the member id.
	ErrUnknownMember = errors.New("unknown member")
	// ErrRebalanceInProgress: the group is being rebalanced.
	ErrRebalanceInProgress = errors.New("rebalance in progress")
	// ErrFencedInstance: another process took over the static instance id.
	ErrFencedInstance = errors.New("instance id taken over by another member")
	// ErrInconsistentGroup: the other members of the group have another
	// assignor or protocol type.
	ErrInconsistentGroup = errors.New("group has members of another kind")
	// ErrUnsupported: the broker is too old for what is asked.
	ErrUnsupported = errors.New("not supported by the broker")
)

// Error places an error in the log. Offset −1 and a nil Key mean that there
// is none.
type Error struct {
	TopicPartition
	Offset int64
	Key    []byte
	Err    error
}

// Error returns "topic/partition@offset: cause", with the key where there is
// one.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Topic)
	if e.Partition >= 0 {
		b.WriteByte('/')
		b.WriteString(strconv.Itoa(int(e.Partition)))
	}
	if e.Offset >= 0 {
		b.WriteByte('@')
		b.WriteString(strconv.FormatInt(e.Offset, 10))
	}
	if e.Key != nil {
		b.WriteString(" key ")
		b.WriteString(QuoteKey(e.Key))
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// QuoteKey prints a key for people: quoted, and cut after 64 bytes.
func QuoteKey(key []byte) string {
	if key == nil {
		return "null"
	}
	if len(key) > 64 {
		return strconv.Quote(string(key[:64])) + "… (" + strconv.Itoa(len(key)) + " bytes)"
	}
	return strconv.Quote(string(key))
}

// OffsetOutOfRangeError says that a position does not exist in its log. It
// is an ErrOffsetOutOfRange.
type OffsetOutOfRangeError struct {
	TopicPartition
	Position, LogStart, HighWatermark int64
}

// Error names the position and the log's bounds.
func (e *OffsetOutOfRangeError) Error() string {
	return fmt.Sprintf("%s: offset %d out of range: log holds [%d, %d)", e.TopicPartition, e.Position, e.LogStart, e.HighWatermark)
}

// Is makes the error an ErrOffsetOutOfRange.
func (e *OffsetOutOfRangeError) Is(target error) bool { return target == ErrOffsetOutOfRange }

// TruncatedError says that a log was cut off below a position from which it
// was read: what had been read from End on was lost, and something else stands
// there. It is an ErrOffsetOutOfRange.
type TruncatedError struct {
	OffsetOutOfRangeError
	End int64
}

// Error names the position, where the log was cut, and the log's bounds.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s: offset %d was read up to, and the log was cut off at %d since: log holds [%d, %d)",
		e.TopicPartition, e.Position, e.End, e.LogStart, e.HighWatermark)
}

// Unwrap returns the error as one of an offset out of range.
func (e *TruncatedError) Unwrap() error { return &e.OffsetOutOfRangeError }

// Permanent reports whether err is a decision that waiting does not change:
// credentials, rights, a fenced instance id or a group of another kind.
func Permanent(err error) bool {
	return errors.Is(err, ErrAuthentication) || errors.Is(err, ErrNotAuthorized) ||
		errors.Is(err, ErrFencedInstance) || errors.Is(err, ErrInconsistentGroup) || errors.Is(err, ErrUnsupported)
}
