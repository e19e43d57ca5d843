package stream_test

import (
	"strings"
	"testing"

	"github.com/rekastream/reka/stream"
)

func TestStatelessOperationsKeepKeysAndTimes(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		f := stream.From(b, text("in")).
			Filter(func(_, v string) bool { return v != "drop" }).
			FilterNot(func(k, _ string) bool { return k == "out" })
		up := stream.MapValues(f, func(_, v string) string { return strings.ToUpper(v) })
		stream.FlatMapValues(up, func(_, v string, emit func(string)) {
			for w := range strings.SplitSeq(v, "-") {
				emit(w)
			}
		}).To(text("out"))
	})
	s.send("in", "a:x-y@5", "a:drop@6", "out:z@7", "b:w@3")
	s.wants("out", "a:X@5 a:Y@5 b:W@3")
}
