package codec

import (
	"reflect"
	"time"
)

// Plainer is what a codec implements, beside Codec, to say that its values are
// plain: to copy a value with = copies all of it, and nobody can change the
// copy through the original. Numbers, strings, times and structs of them are
// plain; what holds a slice, a map or another pointer is not.
//
// An engine may keep the decoded value of a row of such a codec and hand it
// out again, where it decodes all others anew for each reader.
type Plainer interface {
	Plain() bool
}

// IsPlain reports whether the codec says that its values are plain.
func IsPlain[T any](c Codec[T]) bool {
	p, ok := c.(Plainer)
	return ok && p.Plain()
}

// plainType reports whether values of the type are plain.
func plainType(t reflect.Type) bool {
	if t == reflect.TypeFor[time.Time]() {
		return true // it points to its location, which nobody can change
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	case reflect.Array:
		return plainType(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if !plainType(f.Type) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// plain is embedded by codecs of plain values.
type plain struct{}

func (plain) Plain() bool { return true }
