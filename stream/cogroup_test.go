package stream_test

import (
	"strings"
	"testing"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// cogrouped gathers the streams clicks and views as "c1v2…".
func cogrouped(b *stream.Builder) stream.Cogrouped[string] {
	with := func(letter string) func(string, string, string) string {
		return func(_, v, a string) string { return a + letter + v }
	}
	return stream.Cogroup(
		stream.Add(stream.From(b, text("clicks")).GroupByKey(), with("c")),
		stream.Add(stream.From(b, text("views")).GroupByKey(), with("v")))
}

func TestCogroupFoldsStreamsEachInItsWay(t *testing.T) {
	s := play(t, "clicks views", func(b *stream.Builder) {
		cogrouped(b).Aggregate(func() string { return ">" }, stream.WithCodec(codec.String())).To(rows("out"))
	})
	s.send("clicks", "k:1@1")
	s.send("views", "k:2@2", "other:3@3")
	s.send("clicks", "k:4@4", "k:@5")
	s.wants("out", "k:>c1@1 k:>c1v2@2 other:>v3@3 k:>c1v2c4@4")
}

func TestCogroupInWindowsOfAllKinds(t *testing.T) {
	merge := func(_, a, b string) string { return a + strings.TrimPrefix(b, ">") }
	for _, c := range []struct {
		w    window.Windows
		want string
	}{
		{window.Tumbling(ms(10), ms(5)), "k[0-10]=>c1@1 k[0-10]=>c1v2@2 k[10-20]=>c3@12 k[0-10]=>c1v2v4@8"},
		{window.Sliding(ms(5), ms(20)), "k[0-5]=>c1@1 k[0-5]=>c1v2@2 k[2-7]=>v2@2 k[7-12]=>c3@12 k[3-8]=>v4@8 k[7-12]=>c3v4@12 k[9-14]=>c3@12"},
		{window.Session(ms(5), ms(20)), "k[1-1]=>c1@1 k[1-1]=⊥@1 k[1-2]=>c1v2@2 k[12-12]=>c3@12 k[12-12]=⊥@12 k[8-12]=>c3v4@12"},
	} {
		s := play(t, "clicks views", func(b *stream.Builder) {
			cogrouped(b).Windowed(c.w).Aggregate(func() string { return ">" }, merge, stream.WithCodec(codec.String())).To(windows("out", c.w))
		})
		s.send("clicks", "k:1@1")
		s.send("views", "k:2@2")
		s.send("clicks", "k:3@12")
		s.send("views", "k:4@8")
		if got := s.results("out", c.w); got != c.want {
			t.Errorf("%v:\n  got  %s\n  want %s", c.w, got, c.want)
		}
	}
}

func TestCogroupNeedsItsStreams(t *testing.T) {
	b := stream.NewBuilder("g")
	g := stream.Cogroup(stream.Add[string, string](stream.From(b, text("in")).GroupByKey(), nil))
	g.Aggregate(nil, stream.WithCodec(codec.String())).To(rows("out"))
	if _, err := b.Graph(); err == nil || err.Error() != "stream: graph g: cogroup of in: no function" {
		t.Error(err)
	}
}
