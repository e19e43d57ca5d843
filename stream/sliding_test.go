package stream_test

import (
	"testing"

	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

func TestSlidingWindowsFoldInOrderOfArrival(t *testing.T) {
	w := window.Sliding(ms(10), ms(5))
	s := playWindows(t, w, adding())
	s.send("in", "A:1@10", "A:2@10", "A:3@14", "A:4@15", "A:5@20", "A:6@22", "A:7@30")
	s.shows(w, "A[0-10]=0+1@10 A[0-10]=0+1+2@10 "+
		"A[4-14]=0+1+2+3@14 A[11-21]=0+3@14 "+
		"A[5-15]=0+1+2+3+4@15 A[11-21]=0+3+4@15 A[15-25]=0+4@15 "+
		"A[10-20]=0+1+2+3+4+5@20 A[11-21]=0+3+4+5@20 A[15-25]=0+4+5@20 A[16-26]=0+5@20 "+
		"A[12-22]=0+3+4+5+6@22 A[15-25]=0+4+5+6@22 A[16-26]=0+5+6@22 A[21-31]=0+6@22 "+
		"A[20-30]=0+5+6+7@30 A[21-31]=0+6+7@30 A[23-33]=0+7@30",
		"A[0-10]=0+1+2@10 A[4-14]=0+1+2+3@14 A[5-15]=0+1+2+3+4@15 A[10-20]=0+1+2+3+4+5@20 A[11-21]=0+3+4+5@20 A[12-22]=0+3+4+5+6@22")
}

func TestSlidingWindowsReduce(t *testing.T) {
	w := window.Sliding(ms(10), ms(5))
	s := play(t, "in", func(b *stream.Builder) {
		stream.From(b, text("in")).GroupByKey().Windowed(w).Reduce(func(a, b string) string { return a + "+" + b }).To(windows("out", w))
	})
	s.send("in", "A:1@10", "A:2@14", "A:3@15", "A:4@22", "A:5@26", "A:6@30")
	if got, want := s.results("out", w), "A[0-10]=1@10 "+
		"A[4-14]=1+2@14 A[11-21]=2@14 "+
		"A[5-15]=1+2+3@15 A[11-21]=2+3@15 A[15-25]=3@15 "+
		"A[12-22]=2+3+4@22 A[15-25]=3+4@22 A[16-26]=4@22 "+
		"A[16-26]=4+5@26 A[23-33]=5@26 "+
		"A[20-30]=4+5+6@30 A[23-33]=5+6@30 A[27-37]=6@30"; got != want {
		t.Errorf("\n  got  %s\n  want %s", got, want)
	}
}

func TestRecordsEarlierThanTheDifferenceShareAWindow(t *testing.T) {
	w := window.Sliding(ms(10), window.NoGrace)
	s := playWindows(t, w, adding())
	for _, c := range []struct{ in, out string }{
		{"E:1@0", "E[0-10]=0+1@0"},
		{"E:3@5", "E[0-10]=0+1+3@5 E[1-11]=0+3@5"},
		{"E:4@6", "E[0-10]=0+1+3+4@6 E[1-11]=0+3+4@6 E[6-16]=0+4@6"},
		{"E:2@3", "E[0-10]=0+1+3+4+2@6 E[1-11]=0+3+4+2@6 E[4-14]=0+3+4@6"},
		{"E:6@13", "E[3-13]=0+3+4+2+6@13 E[4-14]=0+3+4+6@13 E[6-16]=0+4+6@13 E[7-17]=0+6@13"},
		{"E:5@10", "E[3-13]=0+3+4+2+6+5@13 E[4-14]=0+3+4+6+5@13 E[6-16]=0+4+6+5@13 E[7-17]=0+6+5@13 E[11-21]=0+6@13"},
		{"E:7@4", "E[3-13]=0+3+4+2+6+5+7@13 E[4-14]=0+3+4+6+5+7@13 E[5-15]=0+3+4+6+5@13"},
		{"E:8@2", ""},
		{"E:9@15", "E[5-15]=0+3+4+6+5+9@15 E[6-16]=0+4+6+5+9@15 E[7-17]=0+6+5+9@15 E[11-21]=0+6+9@15 E[14-24]=0+9@15"},
	} {
		s.send("in", c.in)
		if got := s.results("out", w); got != c.out {
			t.Errorf("%s:\n  got  %s\n  want %s", c.in, got, c.out)
		}
	}
	s.wants("late", "E:8@2")
}

func TestRecordWhoseOwnWindowIsClosedCountsInOthers(t *testing.T) {
	w := window.Sliding(ms(5), ms(15))
	s := playWindows(t, w, counter())
	for _, c := range []struct{ in, out string }{
		{"k:v@10", "k[5-10]=1@10"},
		{"k:v@11", "k[6-11]=2@11 k[11-16]=1@11"},
		{"k:v@10", "k[5-10]=2@10 k[6-11]=3@11"},
		{"k:v@13", "k[8-13]=4@13 k[11-16]=2@13 k[12-17]=1@13"},
		{"k:v@10", "k[5-10]=3@10 k[6-11]=4@11 k[8-13]=5@13"},
		{"k:v@24", "k[19-24]=1@24"},
		{"k:v@5", "k[5-10]=4@10"},
		{"k:v@7", "k[5-10]=5@10 k[6-11]=5@11"},
	} {
		s.send("in", c.in)
		if got := s.results("out", w); got != c.out {
			t.Errorf("%s:\n  got  %s\n  want %s", c.in, got, c.out)
		}
	}
	s.send("in", "k:v@90")
	s.shows(w, "k[85-90]=1@90", "k[5-10]=5@10 k[6-11]=5@11 k[8-13]=5@13 k[11-16]=2@13 k[12-17]=1@13 k[19-24]=1@24")
	s.wants("late", "")
}

func TestSlidingWindowsWithoutGraceTakeRecordsInOrder(t *testing.T) {
	w := window.Sliding(ms(10), window.NoGrace)
	s := playWindows(t, w, adding())
	s.send("in", "k:A@100", "k:B@105", "k:C@115", "x:v@999")
	s.news("out")
	s.shows(w, "", "k[90-100]=0+A@100 k[95-105]=0+A+B@105 k[101-111]=0+B@105 k[105-115]=0+B+C@115 k[106-116]=0+C@115")
	s.wants("late", "")
}

func TestOutOfOrderRecordMakesBothItsWindows(t *testing.T) {
	w := window.Sliding(ms(10), ms(50))
	s := playWindows(t, w, adding())
	s.send("in", "k:A@100", "k:B@105", "k:C@112", "k:D@103", "x:v@999")
	s.news("out")
	s.shows(w, "", "k[90-100]=0+A@100 k[93-103]=0+A+D@103 k[95-105]=0+A+B+D@105 k[101-111]=0+B+D@105 k[102-112]=0+B+C+D@112 k[104-114]=0+B+C@112 k[106-116]=0+C@112")
}

func TestNoSlidingWindowStartsBelowZero(t *testing.T) {
	w := window.Sliding(ms(10), ms(50))
	s := playWindows(t, w, adding())
	s.send("in", "k:A@0", "k:B@5", "x:v@999")
	s.news("out")
	s.shows(w, "", "k[0-10]=0+A+B@5 k[1-11]=0+B@5")
	s.wants("late", "")
}
