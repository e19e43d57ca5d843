package stream_test

import (
	"strconv"
	"testing"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
)

func TestRegroupedRecordsAreCountedBehindARepartitionTopic(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		n := stream.From(b, text("in")).GroupBy(func(_, v string) string { return v }).Count()
		stream.MapValues(stream.Changes(n), func(_ string, n int64) string { return strconv.FormatInt(n, 10) }, stream.WithCodec(codec.String())).To(text("out"))
	})
	s.send("in", "a:x@5", "b:x@7", "c:y@6")
	s.wants("out", "x:1@5 x:2@7 y:1@6")
}
