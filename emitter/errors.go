package emitter

import (
	"fmt"

	"github.com/rekastream/reka/kafka"
)

// TooLargeError says that a record is larger than its topic accepts. It is a
// kafka.ErrTooLarge.
type TooLargeError struct {
	Topic string
	Key   []byte
	// Size is the record's, uncompressed, and Limit the topic's
	// max.message.bytes, 0 if that is not known. Both in bytes.
	Size, Limit int
}

// Error names topic, key, size and limit.
func (e *TooLargeError) Error() string {
	limit := ""
	if e.Limit > 0 {
		limit = fmt.Sprintf(", max.message.bytes is %d", e.Limit)
	}
	return fmt.Sprintf("topic %s key %s: %v: %d bytes%s", e.Topic, kafka.QuoteKey(e.Key), kafka.ErrTooLarge, e.Size, limit)
}

// Is makes the error a kafka.ErrTooLarge.
func (e *TooLargeError) Is(target error) bool { return target == kafka.ErrTooLarge }

// UndeliveredError is what Close returns when records were not acknowledged
// as its context ended. Their results failed with kafka.ErrClosed; some of
// the records may have been written.
type UndeliveredError struct {
	Topic   string
	Records int
	Cause   error // why Close stopped waiting
}

// Error names topic and number.
func (e *UndeliveredError) Error() string {
	return fmt.Sprintf("emitter: topic %s: %d records not acknowledged: %v", e.Topic, e.Records, e.Cause)
}

// Unwrap returns the cause.
func (e *UndeliveredError) Unwrap() error { return e.Cause }
