package stream_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
)

// playForeign starts an inner and a left join of L with the rows of R that its
// values name behind "|".
func playForeign(t *testing.T) *scene {
	t.Helper()
	return play(t, "L R", func(b *stream.Builder) {
		l, r := stream.FromTable(b, rows("L")), stream.FromTable(b, rows("R"))
		stream.JoinForeign(l, r, refersTo, innerText, stream.WithCodec(codec.String())).To(rows("inner"))
		stream.LeftJoinForeign(l, r, refersTo, leftText, stream.WithCodec(codec.String())).To(rows("left"))
	})
}

// both checks what the inner and the left join give.
func (s *scene) both(inner, left string) {
	s.t.Helper()
	s.wants("inner", inner)
	s.wants("left", left)
}

func TestForeignJoinOfRowsThatFindTheirRightOnes(t *testing.T) {
	s := playForeign(t)
	s.send("R", "rhs1:r1@1", "rhs2:r2@2", "rhs3:r3@3")
	s.both("", "")
	s.send("L", "lhs1:v1|rhs1@4", "lhs2:v2|rhs2@1")
	s.both("lhs1:v1|rhs1-r1@4 lhs2:v2|rhs2-r2@2", "lhs1:v1|rhs1-r1@4 lhs2:v2|rhs2-r2@2")
	s.send("L", "lhs3:v3|rhs1@6")
	s.both("lhs3:v3|rhs1-r1@6", "lhs3:v3|rhs1-r1@6")
	s.send("L", "lhs1:@7")
	s.both("lhs1:@7", "lhs1:@7")
}

func TestForeignJoinFollowsTheRightRows(t *testing.T) {
	s := playForeign(t)
	s.send("L", "lhs1:v1|rhs1@1", "lhs2:v2|rhs2@2", "lhs3:v3|rhs1@3")
	s.both("", "lhs1:v1|rhs1-⊥@1 lhs2:v2|rhs2-⊥@2 lhs3:v3|rhs1-⊥@3")
	s.send("R", "rhs1:r1@2")
	s.both("lhs1:v1|rhs1-r1@2 lhs3:v3|rhs1-r1@3", "lhs1:v1|rhs1-r1@2 lhs3:v3|rhs1-r1@3")
	s.send("R", "rhs2:r2@5")
	s.both("lhs2:v2|rhs2-r2@5", "lhs2:v2|rhs2-r2@5")
	s.send("R", "rhs3:r3@6")
	s.both("", "")
	s.send("R", "rhs1:@7")
	s.both("lhs1:@7 lhs3:@7", "lhs1:v1|rhs1-⊥@7 lhs3:v3|rhs1-⊥@7")
	s.send("R", "rhs1:@8")
	s.both("", "")
}

func TestForeignJoinDeletesOnlyWhatIsThere(t *testing.T) {
	s := playForeign(t)
	s.send("L", "lhs1:v1|rhs1@1")
	s.both("", "lhs1:v1|rhs1-⊥@1")
	s.send("L", "lhs1:@2")
	s.both("", "lhs1:@2")
	s.send("L", "lhs1:@3", "never:@4")
	s.both("", "")
}

func TestForeignJoinFollowsTheForeignKey(t *testing.T) {
	s := playForeign(t)
	s.send("L", "lhs1:v|rhs1@1")
	s.both("", "lhs1:v|rhs1-⊥@1")
	s.send("L", "lhs1:v|rhs2@2")
	s.both("", "lhs1:v|rhs2-⊥@2")
	s.send("L", "lhs1:v|rhs3@3")
	s.both("", "lhs1:v|rhs3-⊥@3")
	s.send("R", "rhs1:r1@4")
	s.both("", "")
	s.send("L", "lhs1:v|rhs1@5")
	s.both("lhs1:v|rhs1-r1@5", "lhs1:v|rhs1-r1@5")
	s.send("L", "lhs1:v|rhs2@6")
	s.both("lhs1:@6", "lhs1:v|rhs2-⊥@6")
	s.send("R", "rhs2:r2@7", "rhs1:r9@8")
	s.both("lhs1:v|rhs2-r2@7", "lhs1:v|rhs2-r2@7")
}

func TestForeignJoinOfRowsThatReferToNone(t *testing.T) {
	s := playForeign(t)
	s.send("L", "k:v|1@1")
	s.both("", "k:v|1-⊥@1")
	s.send("R", "1:foo@2")
	s.both("k:v|1-foo@2", "k:v|1-foo@2")
	s.send("L", "k:v|2@3")
	s.both("k:@3", "k:v|2-⊥@3")
	s.send("L", "k:v|3@4")
	s.both("", "k:v|3-⊥@4")
	s.send("R", "3:bar@5")
	s.both("k:v|3-bar@5", "k:v|3-bar@5")
	s.send("L", "k:v@6")
	s.both("k:@6", "k:v-⊥@6")
	s.send("R", "3:more@7")
	s.both("", "")
	s.send("L", "k:v|1@8")
	s.both("k:v|1-foo@8", "k:v|1-foo@8")
	s.send("L", "q:v|10@9", "r:v|10@10")
	s.both("", "q:v|10-⊥@9 r:v|10-⊥@10")
	s.send("R", "10:baz@11")
	s.both("q:v|10-baz@11 r:v|10-baz@11", "q:v|10-baz@11 r:v|10-baz@11")
	if n := s.counted("L-leftjoinforeign: rows without a foreign key"); n != 1 {
		t.Errorf("%d rows without a foreign key", n)
	}
}

func TestForeignJoinHasTheLaterTimeOfBothSides(t *testing.T) {
	s := playForeign(t)
	s.send("R", "r:a@5")
	s.send("L", "k:v|r@10")
	s.both("k:v|r-a@10", "k:v|r-a@10")
	s.send("L", "k:@7")
	s.both("k:@7", "k:@7")
	s.send("L", "k:v|r@3")
	s.both("k:v|r-a@5", "k:v|r-a@5")
	s.send("L", "k:@2")
	s.both("k:@5", "k:@5")
	s.send("L", "k:v|r@20")
	s.send("R", "r:@8")
	s.both("k:v|r-a@20 k:@20", "k:v|r-a@20 k:v|r-⊥@20")
}

func TestForeignKeysOfAnyBytesStayApart(t *testing.T) {
	s := playForeign(t)
	s.send("L", "b:v|a@1", "\x01:v|a\x00@1", "c:v|a\x00\x01@1", ":v|@1")
	s.wants("left", "b:v|a-⊥@1 \x01:v|a\x00-⊥@1 c:v|a\x00\x01-⊥@1 :v|-⊥@1")
	s.send("R", "a:1@2", "a\x00:2@2", "a\x00\x01:3@2", ":4@2")
	s.both("b:v|a-1@2 \x01:v|a\x00-2@2 c:v|a\x00\x01-3@2 :v|-4@2", "b:v|a-1@2 \x01:v|a\x00-2@2 c:v|a\x00\x01-3@2 :v|-4@2")
}

func TestForeignJoinWithTheTableItself(t *testing.T) {
	s := play(t, "L", func(b *stream.Builder) {
		l := stream.FromTable(b, rows("L"))
		stream.JoinForeign(l, l, refersTo, innerText, stream.WithCodec(codec.String())).To(rows("out"))
	})
	s.send("L", "kid:Kid|mum@1", "mum:Mum|gran@2", "gran:Gran|gran@3", "mum:Ma|gran@4", "mum:@5")
	if got, want := fmt.Sprint(tester.Table(s.tt, rows("out")).All()), "map[gran:Gran|gran-Gran|gran]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestForeignJoinEndsAtWhatTheTablesHold changes both sides of a join at
// random, with several partitions, crashes and repeated deliveries in between.
func TestForeignJoinEndsAtWhatTheTablesHold(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { foreignAtRandom(t, seed) })
	}
}

func foreignAtRandom(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	tt := tester.New(t)
	tt.CreateTopic("L", 3)
	tt.CreateTopic("R", 2)
	tt.CreateTopic("inner", 3)
	tt.CreateTopic("left", 3)
	b := stream.NewBuilder("g")
	l, r := stream.FromTable(b, rows("L")), stream.FromTable(b, rows("R"))
	stream.JoinForeign(l, r, refersTo, innerText, stream.WithCodec(codec.String())).To(rows("inner"))
	stream.LeftJoinForeign(l, r, refersTo, leftText, stream.WithCodec(codec.String())).To(rows("left"))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	var opts []processor.Option
	if seed%2 == 1 {
		opts = append(opts, processor.WithGuarantee(processor.AtLeastOnce))
	}
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		p, err := processor.New(i.Client(), g, append(opts, processor.WithStorage(i.Storage()))...)
		return []reka.Runner{p}, err
	})
	left, right := map[string]string{}, map[string]string{}
	change := func(topic string, rows map[string]string, key, value string, at int) {
		in := tester.Input(tt, text(topic))
		if value == "" {
			delete(rows, key)
			in.Delete(key, reka.At(time.UnixMilli(int64(at))))
			return
		}
		rows[key] = value
		in.Send(key, value, reka.At(time.UnixMilli(int64(at))))
	}
	for i := range 150 {
		value := fmt.Sprint("v", i)
		if random.IntN(4) == 0 {
			value = ""
		}
		if random.IntN(3) == 0 {
			change("R", right, fmt.Sprint("r", random.IntN(4)), value, i)
		} else {
			if value != "" && random.IntN(6) > 0 {
				value += fmt.Sprint("|r", random.IntN(5))
			}
			change("L", left, fmt.Sprint("l", random.IntN(6)), value, i)
		}
		switch random.IntN(20) {
		case 0:
			app.Crash()
			app.Restart()
		case 1:
			tt.Advance(time.Second)
		case 2:
			tt.Settle()
		}
	}
	inner, outer := map[string]string{}, map[string]string{}
	for k, v := range left {
		to, _ := refersTo(k, v)
		r, ok := right[to]
		if ok = ok && strings.Contains(v, "|"); ok {
			inner[k], outer[k] = v+"-"+r, v+"-"+r
		} else {
			outer[k] = v + "-⊥"
		}
	}
	tt.Advance(10 * time.Second)
	if got := tester.Table(tt, rows("inner")).All(); !maps.Equal(got, inner) {
		t.Errorf("inner:\n  got  %v\n  want %v", got, inner)
	}
	if got := tester.Table(tt, rows("left")).All(); !maps.Equal(got, outer) {
		t.Errorf("left:\n  got  %v\n  want %v", got, outer)
	}
}
