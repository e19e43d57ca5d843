package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
)

func isEven(_, v string) bool {
	var n int
	_, _ = fmt.Sscan(v, &n)
	return n%2 == 0
}

func TestFilteredTableDeletesOnlyRowsThatItHad(t *testing.T) {
	for name, opts := range map[string][]stream.Option{"plain": nil, "named": {stream.Named("even")}} {
		t.Run(name, func(t *testing.T) {
			s := play(t, "in", func(b *stream.Builder) {
				stream.FromTable(b, rows("in")).Filter(isEven, opts...).To(rows("out"))
			})
			s.send("in", "A:1@5", "B:1@10", "C:1@15")
			s.wants("out", "")
			s.send("in", "A:2@15", "B:2@8")
			s.wants("out", "A:2@15 B:2@8")
			s.send("in", "A:3@20")
			s.wants("out", "A:@20")
			s.send("in", "A:@10", "B:@20")
			s.wants("out", "B:@20")
		})
	}
}

func TestMappedTableHandsOnOnlyWhatChanges(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		in := stream.FromTable(b, rows("in")).FilterNot(func(k, _ string) bool { return k == "out" })
		first := func(_, v string) string { return v[:1] }
		stream.MapTable(in, first, stream.WithCodec(codec.String())).To(rows("out"))
		stream.MapTable(in, first).To(rows("unknown"))
		stream.MapTable(in, first, stream.WithCodec(codec.String()), stream.Named("firsts"))
	})
	s.send("in", "k:a1@1", "k:a2@2", "k:a2@3", "k:b1@4", "out:x@4", "k:@5", "k:@6")
	s.wants("out", "k:a@1 k:b@4 k:@5")
	s.wants("unknown", "k:a@1 k:a@2 k:b@4 k:@5")
	s.wants(reka.ChangelogTopic("g", "firsts"), "k:@5")
}

func TestTableOfAStreamDeletesWhereTheValueIsMissing(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		in := stream.From(b, text("in"))
		in.ToTable(stream.Named("latest")).To(rows("out"))
		n := in.GroupByKey().Count(stream.Named("counts"))
		stream.MapTable(n, func(_ string, n int64) string { return fmt.Sprint(n) }).To(rows("counts"))
	})
	s.send("in", "k:1@1", "k:@2", "k:@3", "⊥:x@4")
	s.wants("out", "k:1@1 k:@2")
	s.wants(reka.ChangelogTopic("g", "latest"), "k:@2")
	s.wants("counts", "k:1@1")
	if got := tableOf(s, reka.ChangelogTopic("g", "latest")).Keys(); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
	if n := s.counted("counts: records without a key or value"); n != 3 {
		t.Errorf("%d records without a key or value", n)
	}
	if n := s.counted("latest: records without a key"); n != 1 {
		t.Errorf("%d records without a key", n)
	}
}

func TestNamedTableKnowsWhatCompactionHasTaken(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		in := stream.FromTable(b, rows("in"), stream.Named("rows"))
		n := stream.GroupTable(in, byValue).Count()
		stream.MapTable(n, func(_ string, n int64) string { return fmt.Sprint(n) }).To(rows("out"))
	})
	s.send("in", "k:a@1")
	s.tt.Advance(time.Second)
	s.wants("out", "a:1@1")
	s.app.Crash()
	s.send("in", "k:b@2")
	s.tt.Compact("in")
	s.startOn("other")
	s.tt.Advance(time.Minute)
	s.wants("out", "a:0@2 b:1@2")
}

func TestVersionedTableStaysOneBehindFilters(t *testing.T) {
	s := play(t, "L R", func(b *stream.Builder) {
		r := stream.FromTable(b, rows("R"), stream.Versioned(time.Minute)).Filter(isEven)
		up := stream.MapTable(r, func(_, v string) string { return strings.Repeat(v, 2) })
		stream.LeftJoinTable(stream.From(b, text("L")), up, leftText).To(text("out"))
	})
	s.send("R", "k:1@1", "k:2@2", "k:3@3", "k:4@4")
	s.send("L", "k:x@4", "k:x@3", "k:x@2", "k:x@1")
	s.wants("out", "k:x-44@4 k:x-⊥@3 k:x-22@2 k:x-⊥@1")
}
