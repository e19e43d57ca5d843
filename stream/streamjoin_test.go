package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
)

// playJoins starts the inner, left and outer join of topics l and r, with
// results in inner, left and outer.
func playJoins(t *testing.T, w stream.JoinWindow) *scene {
	t.Helper()
	return play(t, "l r", func(b *stream.Builder) {
		l, r := stream.From(b, text("l")), stream.From(b, text("r"))
		c := stream.WithCodec(codec.String())
		stream.Join(l, r, w, func(_, l, r string) string { return l + "+" + r }, c).To(text("inner"))
		stream.LeftJoin(l, r, w, func(_, l string, r *string) string { return l + "+" + side(r) }, c).To(text("left"))
		stream.OuterJoin(l, r, w, func(_ string, l, r *string) string { return side(l) + "+" + side(r) }, c).To(text("outer"))
	})
}

// side shows a side that may be missing.
func side(v *string) string {
	if v == nil {
		return "⊥"
	}
	return *v
}

// joins sends a record to l or r, written as "l k:v@t", and checks what comes
// of the three joins.
func (s *scene) joins(record, inner, left, outer string) {
	s.t.Helper()
	topic, rec, _ := strings.Cut(record, " ")
	s.send(topic, rec)
	for _, out := range []struct{ topic, want string }{{"inner", inner}, {"left", left}, {"outer", outer}} {
		if got := s.news(out.topic); got != out.want {
			s.t.Errorf("%s, %s join:\n  got  %s\n  want %s", record, out.topic, got, out.want)
		}
	}
}

func TestStreamJoinOfOneKeyOverAMinute(t *testing.T) {
	s := playJoins(t, stream.Within(15*time.Second, 5*time.Second))
	all := func(record, want string) { t.Helper(); s.joins(record, want, want, want) }
	all("l k:@1000", "")
	all("r k:@2000", "")
	all("l k:A@3000", "")
	all("r k:a@4000", "k:A+a@4000")
	all("l k:B@5000", "k:B+a@5000")
	all("r k:b@6000", "k:A+b@6000 k:B+b@6000")
	all("l k:@7000", "")
	all("r k:@8000", "")
	all("l k:C@9000", "k:C+a@9000 k:C+b@9000")
	all("r k:c@10000", "k:A+c@10000 k:B+c@10000 k:C+c@10000")
	all("r k:@11000", "")
	all("l k:@12000", "")
	all("r k:@13000", "")
	all("r k:d@14000", "k:A+d@14000 k:B+d@14000 k:C+d@14000")
	all("l k:D@15000", "k:D+a@15000 k:D+b@15000 k:D+c@15000 k:D+d@15000")
	all("l k:E@40000", "")
	all("l k:F@60000", "")
	_ = fmt.Sprint()
}
