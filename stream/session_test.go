package stream_test

import (
	"testing"

	"github.com/rekastream/reka/window"
)

const fiveMinutes = 300_000

// The record between them bridges no closed session: the one at gap+1 has
// closed the first.
func TestClosedSessionsAreNotBridged(t *testing.T) {
	w := window.Session(ms(fiveMinutes), window.NoGrace)
	s := playWindows(t, w, counter())
	s.send("in", "k:v@0", "k:v@300001", "k:v@150000", "k:v@900003")
	s.shows(w, "k[0-0]=1@0 k[300001-300001]=1@300001 k[300001-300001]=⊥@300001 k[150000-300001]=2@300001 k[900003-900003]=1@900003",
		"k[0-0]=1@0 k[150000-300001]=2@300001")
}

func TestOpenSessionsAreBridgedByARecordBetweenThem(t *testing.T) {
	w := window.Session(ms(fiveMinutes), ms(3_600_000))
	s := playWindows(t, w, counter())
	s.send("in", "k:v@0", "k:v@480000", "k:v@240000")
	s.shows(w, "k[0-0]=1@0 k[480000-480000]=1@480000 k[0-0]=⊥@0 k[480000-480000]=⊥@480000 k[0-480000]=3@480000", "")
	if n := s.stored("in-aggregate"); n != 2 { // the list with one session, and its entry
		t.Errorf("%d rows", n)
	}
}

func TestRecordsOfOneTimeAreOneSession(t *testing.T) {
	w := window.Session(ms(10), window.NoGrace)
	s := playWindows(t, w, counter())
	s.send("in", "k:v@0", "k:v@11", "k:v@11", "k:v@22", "k:v@22", "k:v@22")
	s.shows(w, "k[0-0]=1@0 k[11-11]=1@11 k[11-11]=2@11 k[22-22]=1@22 k[22-22]=2@22 k[22-22]=3@22", "k[0-0]=1@0 k[11-11]=2@11")
}

func TestGrownSessionTakesBackTheFormerOne(t *testing.T) {
	w := window.Session(ms(5), window.NoGrace)
	s := playWindows(t, w, counter())
	s.send("in", "k1:v@0", "k1:v@5", "k1:v@1", "k2:v@11", "k1:late@5", "k1:v@30")
	s.shows(w, "k1[0-0]=1@0 k1[0-0]=⊥@0 k1[0-5]=2@5 k1[0-5]=⊥@5 k1[0-5]=3@5 k2[11-11]=1@11 k1[30-30]=1@30", "k1[0-5]=3@5 k2[11-11]=1@11")
	s.wants("late", "k1:late@5")
}

func TestSessionsOfKeysAreApart(t *testing.T) {
	w := window.Session(ms(fiveMinutes), window.NoGrace)
	s := playWindows(t, w, counter())
	s.send("in", "a:v@0", "b:v@0", "c:v@0", "d:v@0", "d:v@150000", "a:v@300001", "b:v@300001", "a:v@450001", "c:v@450001")
	s.shows(w, "a[0-0]=1@0 b[0-0]=1@0 c[0-0]=1@0 d[0-0]=1@0 d[0-0]=⊥@0 d[0-150000]=2@150000 a[300001-300001]=1@300001 b[300001-300001]=1@300001 "+
		"a[300001-300001]=⊥@300001 a[300001-450001]=2@450001 c[450001-450001]=1@450001",
		"a[0-0]=1@0 b[0-0]=1@0 c[0-0]=1@0 d[0-150000]=2@150000")
}

func TestSessionIsClosedExactlyAfterGapAndGrace(t *testing.T) {
	for _, c := range []struct {
		grace, now int64
		late       string
	}{{0, 10, ""}, {0, 11, "k:v@0"}, {1, 11, ""}, {1, 12, "k:v@0"}} {
		w := window.Session(ms(10), ms(c.grace))
		s := playWindows(t, w, counter())
		s.ins["in"].Send("x", "v", at(c.now))
		s.send("in", "k:v@0")
		s.wants("late", c.late)
	}
}

func TestSessionsGrowFromBothSides(t *testing.T) {
	w := window.Session(ms(5), ms(1))
	s := playWindows(t, w, counter())
	s.send("in", "green:v@0", "green:v@6", "blue:v@2", "green:v@4", "blue:v@5", "blue:v@11")
	s.news("out")
	s.send("in", "x:v@99")
	s.news("out")
	s.shows(w, "", "blue[2-5]=2@5 green[0-6]=3@6 blue[11-11]=1@11")
}

func TestSessionIsNotClosedATickTooEarly(t *testing.T) {
	w := window.Session(ms(10), window.NoGrace)
	s := playWindows(t, w, counter())
	s.send("in", "k:a@0", "z:x@10", "k:b@0")
	s.shows(w, "k[0-0]=1@0 z[10-10]=1@10 k[0-0]=2@0", "")
	s.send("in", "z:y@11")
	s.shows(w, "z[10-10]=⊥@10 z[10-11]=2@11", "k[0-0]=2@0")
	s.send("in", "k:c@0")
	s.shows(w, "", "")
	s.wants("late", "k:c@0")
}
