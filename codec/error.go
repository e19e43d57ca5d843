package codec

import (
	"fmt"
	"strings"
)

// Error says why bytes are not an encoding of the wanted type, or why a value
// has none.
type Error struct {
	Codec string // what was to be decoded or encoded: "int64", "JSON of main.Click"
	Found string // what there was instead, "" if Err tells
	Want  string // what would have been right, "" if Err tells
	Err   error  // the cause, or nil
}

// Error returns all of it in one line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "codec: %s", e.Codec)
	if e.Found != "" {
		fmt.Fprintf(&b, ": found %s", e.Found)
	}
	if e.Want != "" {
		fmt.Fprintf(&b, ", want %s", e.Want)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// wrongLength is the error of a codec whose encodings have a fixed length.
func wrongLength[T any](got, want int) error {
	var zero T
	return &Error{Codec: fmt.Sprintf("%T", zero), Found: byteCount(got), Want: byteCount(want)}
}

func byteCount(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// excerpt quotes the start of bytes that an error tells of.
func excerpt(b string) string {
	const limit = 40
	if len(b) > limit {
		return fmt.Sprintf("%q… (%s)", b[:limit], byteCount(len(b)))
	}
	return fmt.Sprintf("%q", b)
}
