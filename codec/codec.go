package codec

// Codec turns values of one type into bytes and back. It never sees a null:
// a record without a value (a delete, a tombstone) is told apart before the
// codec is asked, and a codec cannot produce one.
//
// Both methods may be called from any number of goroutines at once.
type Codec[T any] interface {
	// Append appends the encoding of v to dst and returns the result. An
	// encoding of no bytes is a value like any other. On an error the
	// returned slice is not used.
	Append(dst []byte, v T) ([]byte, error)

	// Decode returns the value encoded in b. It must neither keep nor change
	// b: the bytes belong to the caller and are reused after the call. A
	// value that does not use all of b is an error.
	Decode(b []byte) (T, error)
}
