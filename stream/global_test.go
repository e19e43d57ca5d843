package stream_test

import (
	"strings"
	"testing"

	"github.com/rekastream/reka/stream"
)

// playGlobal has a global table G of these rows, then starts an inner and a
// left join of stream in with it, by the text behind "|".
func playGlobal(t *testing.T, records ...string) *scene {
	t.Helper()
	s := playLater(t, "in G", func(b *stream.Builder) {
		in, g := stream.From(b, text("in")), stream.Global(b, rows("G"))
		stream.JoinGlobal(in, g, refersTo, innerText).To(text("inner"))
		stream.LeftJoinGlobal(in, g, refersTo, leftText).To(text("left"))
	})
	s.send("G", records...)
	s.start()
	return s
}

func TestGlobalTableIsThereBeforeTheFirstRecord(t *testing.T) {
	s := playGlobal(t, "1:A@100", "2:B@100", "3:C@100", "4:D@100")
	in := []string{"a:1|1@1", "b:2|2@2", "c:3|3@3", "d:4|4@4", "e:5|5@5"}
	s.send("in", in...)
	s.both("a:1|1-A@1 b:2|2-B@2 c:3|3-C@3 d:4|4-D@4", "a:1|1-A@1 b:2|2-B@2 c:3|3-C@3 d:4|4-D@4 e:5|5-⊥@5")
	s.send("G", "1:F@1", "2:G@1", "3:H@1", "4:I@1", "5:J@1")
	s.both("", "")
	s.send("in", in...)
	all := "a:1|1-F@1 b:2|2-G@2 c:3|3-H@3 d:4|4-I@4 e:5|5-J@5"
	s.both(all, all)
}

func TestGlobalJoinFollowsDeletesAndNeedsNoKeyOfTheRecord(t *testing.T) {
	s := playGlobal(t, "g:G@1", "x:X@1")
	s.send("in", "k:v|g@2", "k:v|none@3", "⊥:v|g@4", "⊥:v|none@5", "k:@6")
	s.both("k:v|g-G@2 ⊥:v|g-G@4", "k:v|g-G@2 k:v|none-⊥@3 ⊥:v|g-G@4 ⊥:v|none-⊥@5")
	s.send("G", "g:@7", "⊥:ignored@8")
	s.send("in", "k:v|g@9", "k:v|x@10")
	s.both("k:v|x-X@10", "k:v|g-⊥@9 k:v|x-X@10")
}

func TestGlobalJoinOfRecordsThatNameNoRow(t *testing.T) {
	s := playGlobal(t, "g1:G@1")
	s.send("in", "⊥:v|g1@2", "k:v@3", "⊥:v@4")
	s.both("⊥:v|g1-G@2", "⊥:v|g1-G@2 k:v-⊥@3 ⊥:v-⊥@4")
	if n := s.counted("in-joinglobal: records without a key of the table"); n != 2 {
		t.Errorf("%d records without a key of the table", n)
	}
}

func TestGlobalTableMayHaveAnotherNumberOfPartitions(t *testing.T) {
	s := playLater(t, "in", func(b *stream.Builder) {
		in, g := stream.From(b, text("in")), stream.Global(b, rows("G"))
		up := stream.Map(in, func(k, v string) (string, string) { return strings.ToUpper(k), v })
		stream.LeftJoinGlobal(up, g, func(_, v string) (string, bool) { return v, true }, leftText).To(text("out"))
	})
	s.tt.CreateTopic("G", 4)
	s.start()
	s.send("in", "k:a@1")
	s.wants("out", "K:a-⊥@1")
}
