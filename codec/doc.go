// Package codec turns typed values into the bytes of records and back, and
// typed keys into strings.
//
// A Codec encodes the values of one topic. The ones here cover text, numbers
// as Java's serializers write them, and JSON; codec/protocodec covers protocol
// buffers. Writing one's own takes two methods.
//
// A Key encodes keys so that their order is kept: a range or a prefix of
// encoded keys is one of the typed keys. Keys of records are strings
// everywhere else, so that nothing carries a second type parameter for them.
//
// All codecs and keys of this package may be used from any number of
// goroutines at once. What Decode returns shares no memory with its argument.
package codec
