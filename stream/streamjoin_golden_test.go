package stream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/stream"
)

// sendAll sends records written as "l k:v@t", with semicolons between.
func (s *scene) sendAll(records string) {
	s.t.Helper()
	for r := range strings.SplitSeq(records, ";") {
		topic, rec, _ := strings.Cut(strings.TrimSpace(r), " ")
		s.send(topic, rec)
	}
}

// gives sends records and checks what comes of one of the joins.
func (s *scene) gives(topic, records, want string) {
	s.t.Helper()
	s.sendAll(records)
	if got := s.news(topic); got != want {
		s.t.Errorf("%s, %s join:\n  got  %s\n  want %s", records, topic, got, want)
	}
}

func TestStreamJoinResultsOfRecordsAtTheClose(t *testing.T) {
	// Where windows close at the very time of a record, that is when their
	// results come: E has ended at 55, and is closed from 60.001 on.
	s := playJoins(t, stream.Within(15*time.Second, 5*time.Second))
	s.joins("l k:E@40000", "", "", "")
	s.joins("l k:F@60000", "", "", "")
	s.joins("r k:f@80000", "", "k:E+⊥@40000", "k:E+⊥@40000")
	s.joins("l k:G@100000", "", "k:F+⊥@60000", "k:F+⊥@60000")
	s.joins("l k:H@200000", "", "k:G+⊥@100000", "k:⊥+f@80000 k:G+⊥@100000")
}

func TestLeftJoinGivesItsResultWithoutAPartnerWhenTheWindowCloses(t *testing.T) {
	s := playJoins(t, stream.Within(ms(100), ms(10)))
	s.gives("left", "l 0:A0@0; l 0:A0-0@0; r 1:a0@110", "")
	s.gives("left", "r 1:a0@111", "0:A0+⊥@0 0:A0-0+⊥@0")
	s.gives("left", "r 2:dummy@500", "")
	s.gives("left", "l 2:A2@1000; l 2:A2-0@1000; r 2:a2@1001", "2:A2+a2@1001 2:A2-0+a2@1001")
	s.gives("left", "r 3:a3@315", "")
}

func TestLeftJoinResultsAreDueByRecordsOfEitherSide(t *testing.T) {
	for _, dummies := range []string{"l 2:dummy@401; r 2:dummy@402", "r 2:dummy@401; l 2:dummy@402"} {
		s := playJoins(t, stream.Within(ms(100), 0))
		s.gives("left", "l 0:A0@1; l 1:A1@2; l 0:A0-0@3", "")
		s.gives("left", "r 1:a1@3", "1:A1+a1@3")
		s.gives("left", dummies, "0:A0+⊥@1 0:A0-0+⊥@3 2:dummy+dummy@402")
	}
}

func TestOuterJoinGivesRightResultsFirstAtEqualTimes(t *testing.T) {
	s := playJoins(t, stream.Within(ms(100), ms(10)))
	s.gives("outer", "l 0:A0@0; r 1:11@0", "")
	s.gives("outer", "l 1:A1@101; r 0:10@101", "") // the windows have ended and are not closed; 101 is too far for a match
	s.gives("outer", "r 0:100@112", "1:⊥+11@0 0:A0+⊥@0")
}

func TestOuterJoinOfRecordsThatComeTwice(t *testing.T) {
	s := playJoins(t, stream.Within(ms(100), ms(10)))
	s.gives("outer", "l 0:A0@0; l 0:A0-0@0; r 1:11@0; r 1:12@0", "")
	s.gives("outer", "r 1:10@111", "1:⊥+11@0 1:⊥+12@0 0:A0+⊥@0 0:A0-0+⊥@0")
	s.gives("outer", "r 3:100@211; l 2:A2@200; l 2:A2-0@200", "")
	s.gives("outer", "r 2:13@201; r 2:14@201", "2:A2+13@201 2:A2-0+13@201 2:A2+14@201 2:A2-0+14@201")
	s.gives("outer", "r 3:100@1500", "1:⊥+10@111 3:⊥+100@211")
}

func TestResultsWithoutAPartnerComeBeforeTheMatchesOfTheRecordThatMadeThemDue(t *testing.T) {
	s := playJoins(t, stream.Within(ms(100), 0))
	s.gives("outer", "l 0:A0@0; l 1:A1@100; r 1:11@110", "0:A0+⊥@0 1:A1+11@110")
}

func TestEachSideOfAnAsymmetricJoinWaitsForItsOwnBound(t *testing.T) {
	s := playJoins(t, stream.Between(ms(5), ms(20), 0))
	s.gives("outer", "l 0:A0@29; l 1:A1@30; r 2:12@31; r 3:13@36", "")
	s.gives("outer", "r 4:14@37", "2:⊥+12@31")
	s.gives("outer", "r 5:15@50", "0:A0+⊥@29 3:⊥+13@36 4:⊥+14@37")
}

func TestNoRecordMatchesAfterItsResultWithoutAPartner(t *testing.T) {
	s := playJoins(t, stream.Between(ms(100), 0, 0))
	s.gives("left", "l 0:A0@1000; l 1:A1@1001; l 2:A2@1002; l 3:A3@1003", "0:A0+⊥@1000 1:A1+⊥@1001 2:A2+⊥@1002")
	for _, at := range []string{"999", "1000", "1001", "1002", "1003"} {
		s.gives("left", "r 0:a@"+at+"; r 1:a@"+at+"; r 2:a@"+at+"; r 3:a@"+at, "3:A3+a@1003")
	}
	s.gives("left", "r 3:b@1100", "")
}

func TestRecordsOfOneKeyAndTimeAreAllKept(t *testing.T) {
	s := playJoins(t, stream.Within(ms(100), 0))
	s.gives("left", "l 0:A0@0; l 1:A1@0; r 0:a0@0; r 1:a1@0", "0:A0+a0@0 1:A1+a1@0")
	s.gives("left", "l 0:B0@0; l 1:B1@0; l 2:B2@0", "0:B0+a0@0 1:B1+a1@0")
	s.gives("left", "r 0:b0@0; r 1:b1@0; r 2:b2@0; r 3:b3@0", "0:A0+b0@0 0:B0+b0@0 1:A1+b1@0 1:B1+b1@0 2:B2+b2@0")
	s.gives("left", "l 0:C0@0; l 1:C1@0; l 2:C2@0; l 3:C3@0", "0:C0+a0@0 0:C0+b0@0 1:C1+a1@0 1:C1+b1@0 2:C2+b2@0 3:C3+b3@0")
	s.gives("left", "l 0:dummy@1000", "")
}

func TestStreamJoinedWithItself(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		in := stream.From(b, text("in"))
		out := stream.Join(in, in, stream.Within(ms(100), 0), func(_, l, r string) string { return l + "-" + r })
		out.To(text("out"))
	})
	s.send("in", "k:A@1")
	s.wants("out", "k:A-A@1")
	s.send("in", "k:B@2")
	s.wants("out", "k:B-A@2 k:A-B@2 k:B-B@2")
	s.send("in", "k:C@3")
	s.wants("out", "k:C-A@3 k:C-B@3 k:A-C@3 k:B-C@3 k:C-C@3")
}

func TestRecordsWithoutAKeyHaveTheirResultAtOnce(t *testing.T) {
	s := playJoins(t, stream.Within(ms(10), 0))
	s.joins("l ⊥:a@1", "", "⊥:a+⊥@1", "⊥:a+⊥@1")
	s.joins("r ⊥:b@1", "", "", "⊥:⊥+b@1")
	s.joins("l k:@1", "", "", "")
	s.joins("l k:x@100", "", "", "")
	s.joins("l ⊥:late@80", "", "", "")
	if got := s.counters()["r-join-3: late"] + s.counters()["l-join-3: late"]; got != 1 {
		t.Errorf("outer join: %d late records, want 1: %v", got, s.counters())
	}
}

func TestLeftJoinSendsNothingTooEarly(t *testing.T) {
	s := playJoins(t, stream.Within(ms(10), 0))
	s.gives("left", "l k:a@0; r k:b@5", "k:a+b@5")
	s.gives("left", "l k:c@20; l x:x@30", "")
	s.gives("left", "r y:y@31", "k:c+⊥@20")
}

func TestLateRecordOfAJoinIsCountedAndHasNoResult(t *testing.T) {
	s := play(t, "l r", func(b *stream.Builder) {
		l, r := stream.From(b, text("l")), stream.From(b, text("r"))
		stream.LeftJoin(l, r, stream.Within(ms(10), 0), func(_, l string, r *string) string { return l + "+" + side(r) },
			stream.Named("j"), stream.LateLeft(text("late"))).To(text("left"))
	})
	s.gives("left", "r z:z@100; l k:a@0; l ⊥:b@0", "")
	if got := s.counters()["j: late"]; got != 2 {
		t.Errorf("%d late records, want 2", got)
	}
	s.wants("late", "k:a@0 ⊥:b@0")
}

// counters are what the operations have counted, in all partitions.
func (s *scene) counters() map[string]int64 {
	out := map[string]int64{}
	for _, p := range s.now.Stats().Partitions {
		for name, n := range p.Counters {
			out[name] += n
		}
	}
	return out
}
