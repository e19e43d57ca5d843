package stream_test

import (
	"fmt"
	"testing"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

func TestTumblingCountsUpdatesAndFinals(t *testing.T) {
	w := window.Tumbling(ms(2), ms(1))
	s := playWindows(t, w, counter())
	s.send("in", "k:v@0", "k:v@1", "k:v@2", "k:v@1", "k:v@0")
	s.shows(w, "k[0-2]=1@0 k[0-2]=2@1 k[2-4]=1@2 k[0-2]=3@1 k[0-2]=4@1", "")
	s.send("in", "k:v@5")
	s.shows(w, "k[4-6]=1@5", "k[0-2]=4@1 k[2-4]=1@2")
	s.send("in", "k:late@0")
	s.shows(w, "", "")
	s.wants("late", "k:late@0")
}

func TestWindowIsClosedExactlyAtEndAndGrace(t *testing.T) {
	w := window.Tumbling(ms(2), ms(2))
	s := playWindows(t, w, counter())
	s.send("in", "k:v@0", "k:v@1", "k:v@2", "k:v@0", "k:v@3", "k:v@0")
	s.shows(w, "k[0-2]=1@0 k[0-2]=2@1 k[2-4]=1@2 k[0-2]=3@1 k[2-4]=2@3 k[0-2]=4@1", "")
	s.send("in", "k:v@4", "k:late@0")
	s.shows(w, "k[4-6]=1@4", "k[0-2]=4@1")
	s.wants("late", "k:late@0")
	s.send("in", "k:v@30")
	s.shows(w, "k[30-32]=1@30", "k[2-4]=2@3 k[4-6]=1@4")
}

func TestLateRecordsChangeNothing(t *testing.T) {
	w := window.Tumbling(ms(10), ms(90))
	s := playWindows(t, w, adding())
	s.send("in", "k:100@200", "k:0@100", "k:1@101", "k:2@102", "k:3@103", "k:4@104", "k:5@105", "k:6@6")
	s.shows(w, "k[200-210]=0+100@200", "")
	s.wants("late", "k:0@100 k:1@101 k:2@102 k:3@103 k:4@104 k:5@105 k:6@6")
}

func TestHoppingWindowsTakeRecordsThatAreLateButInGrace(t *testing.T) {
	w := window.Hopping(ms(10), ms(5), ms(100))
	s := playWindows(t, w, adding())
	for _, c := range []struct{ in, out string }{
		{"A:1@0", "A[0-10]=0+1@0"},
		{"B:2@1", "B[0-10]=0+2@1"},
		{"C:3@2", "C[0-10]=0+3@2"},
		{"D:4@3", "D[0-10]=0+4@3"},
		{"A:1@4", "A[0-10]=0+1+1@4"},
		{"A:1@5", "A[0-10]=0+1+1+1@5 A[5-15]=0+1@5"},
		{"B:2@6", "B[0-10]=0+2+2@6 B[5-15]=0+2@6"},
		{"D:4@7", "D[0-10]=0+4+4@7 D[5-15]=0+4@7"},
		{"B:2@8", "B[0-10]=0+2+2+2@8 B[5-15]=0+2+2@8"},
		{"C:3@9", "C[0-10]=0+3+3@9 C[5-15]=0+3@9"},
		{"A:1@10", "A[5-15]=0+1+1@10 A[10-20]=0+1@10"},
		{"B:2@11", "B[5-15]=0+2+2+2@11 B[10-20]=0+2@11"},
		{"D:4@12", "D[5-15]=0+4+4@12 D[10-20]=0+4@12"},
		{"B:2@13", "B[5-15]=0+2+2+2+2@13 B[10-20]=0+2+2@13"},
		{"C:3@14", "C[5-15]=0+3+3@14 C[10-20]=0+3@14"},
		{"B:1@3", "B[0-10]=0+2+2+2+1@8"},
		{"B:2@2", "B[0-10]=0+2+2+2+1+2@8"},
		{"B:3@9", "B[0-10]=0+2+2+2+1+2+3@9 B[5-15]=0+2+2+2+2+3@13"},
	} {
		s.send("in", c.in)
		s.shows(w, c.out, "")
	}
}

func TestRecordIsLateForOneWindowAndNotForTheNext(t *testing.T) {
	w := window.Hopping(ms(10), ms(5), ms(90))
	s := playWindows(t, w, adding())
	s.send("in", "k:100@100", "k:0@0", "k:1@1", "k:2@2", "k:3@3", "k:4@4", "k:5@5", "k:6@6")
	s.shows(w, "k[95-105]=0+100@100 k[100-110]=0+100@100 k[5-15]=0+5@5 k[5-15]=0+5+6@6", "")
	s.send("in", "k:105@105", "k:106@106")
	s.shows(w, "k[100-110]=0+100+105@105 k[105-115]=0+105@105 k[100-110]=0+100+105+106@106 k[105-115]=0+105+106@106", "k[5-15]=0+5+6@6")
	s.wants("late", "k:0@0 k:1@1 k:2@2 k:3@3 k:4@4 k:5@5 k:6@6")
	for _, r := range s.tt.Raw("late", 0) {
		if got := fmt.Sprintf("%s=%s %s=%s", r.Headers[0].Key, r.Headers[0].Value, r.Headers[1].Key, r.Headers[1].Value); got != stream.LateWindows+"=0-10 "+stream.LateStreamTime+"=100" {
			t.Errorf("headers of %s: %s", r.Value, got)
		}
	}
}

// Finals come with the record that closes their windows: there is no clock that
// holds them back.
func TestFinalsOfHoppingWindowsComeInOrderOfEndAndKey(t *testing.T) {
	w := window.Hopping(ms(10), ms(5), ms(5))
	s := playWindows(t, w, adding())
	s.send("in", "A:1@0", "A:1@5", "B:2@10")
	s.news("out")
	s.shows(w, "", "")
	s.send("in", "C:3@15")
	s.news("out")
	s.shows(w, "", "A[0-10]=0+1+1@5")
	s.send("in", "D:4@20")
	s.news("out")
	s.shows(w, "", "A[5-15]=0+1@5 B[5-15]=0+2@10")
}

func TestFinalsWaitForEnoughProgress(t *testing.T) {
	w := window.Hopping(ms(10), ms(5), ms(5))
	s := playWindows(t, w, adding())
	s.send("in", "A:1@0", "B:2@5", "C:3@15")
	s.news("out")
	s.shows(w, "", "A[0-10]=0+1@0 B[0-10]=0+2@5")
	s.send("in", "D:4@15", "E:5@19")
	s.news("out")
	s.shows(w, "", "")
}

func TestGraceDelaysTheFinalByItself(t *testing.T) {
	for grace, releasedAt := range map[int64]int64{0: 100, 1: 101} {
		w := window.Tumbling(ms(1), ms(grace))
		s := playWindows(t, w, counter())
		s.send("in", "k:v@99")
		for at := int64(99); at < releasedAt; at++ {
			s.send("in", fmt.Sprintf("x:v@%d", at))
		}
		s.news("out")
		if final := s.results("final", w); final != "" {
			t.Errorf("grace %d: %s before", grace, final)
		}
		s.send("in", fmt.Sprintf("x:v@%d", releasedAt))
		if final := s.results("final", w); final != "k[99-100]=1@99 x[99-100]=1@99" {
			t.Errorf("grace %d: %s at %d", grace, final, releasedAt)
		}
	}
}

// Time belongs to the task: a record counts for it although the operation does
// not see it.
func TestFilteredRecordsMoveTime(t *testing.T) {
	w := window.Tumbling(ms(10), window.NoGrace)
	s := play(t, "in", func(b *stream.Builder) {
		in := stream.From(b, text("in")).Filter(func(_, v string) bool { return v != "no" }).GroupByKey().Windowed(w)
		stream.AggregateWindows(in, counter(), stream.WithCodec(codec.String())).OnClose().To(windows("final", w))
	})
	s.send("in", "k:v@3", "x:no@9")
	s.wants("final", "")
	s.send("in", "x:no@10")
	if got := s.results("final", w); got != "k[0-10]=1@3" {
		t.Error(got)
	}
	s.send("in", "k:v@9", "x:@25", "⊥:v@40")
	if got := s.results("final", w); got != "" {
		t.Error(got)
	}
}

func TestNullKeysAndValuesDoNotCountInWindows(t *testing.T) {
	w := window.Tumbling(ms(10), window.NoGrace)
	got := trial{build: everyResult(w)}.run(t, [][]record{{recordAt("k", "a", 1), {Key: []byte("k"), Timestamp: 2}, {Value: []byte("b"), Timestamp: 3}, recordAt("k", "", 4)}})
	same(t, "updates", fmt.Sprint(readable(t, w, got.raw["out"])), "[k[0-10]=0+a@1 k[0-10]=0+a+@4]")
	if n := got.counters["in-aggregate: records without a key or value"]; n != 2 {
		t.Errorf("counted %d: %v", n, got.counters)
	}
}
