package stream_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
)

// addAndSubtract writes down what is done to an aggregate.
func addAndSubtract() stream.Aggregator[string, string] {
	return stream.Aggregator[string, string]{
		Init:     func() string { return "0" },
		Add:      func(_, v, a string) string { return a + "+" + v },
		Subtract: func(_, v, a string) string { return a + "-" + v },
	}
}

func TestTableGroupedByItsOwnKeySubtractsFirst(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		own := stream.GroupTable(stream.FromTable(b, rows("in")), func(k, v string) (string, string) { return k, v })
		stream.AggregateTable(own, addAndSubtract(), stream.WithCodec(codec.String())).To(rows("out"))
	})
	s.send("in", "A:1@10", "B:2@15", "A:3@20", "B:4@18", "C:5@5", "D:6@25", "B:7@15", "C:8@10")
	s.wants("out", "A:0+1@10 B:0+2@15 A:0+1-1+3@20 B:0+2-2+4@18 C:0+5@5 D:0+6@25 B:0+2-2+4-4+7@18 C:0+5-5+8@10")
}

func TestTableGroupedByValueMovesRowsBetweenGroups(t *testing.T) {
	build := func(opts ...stream.Option) func(b *stream.Builder) {
		return func(b *stream.Builder) {
			values := stream.GroupTable(stream.FromTable(b, rows("in"), opts...), byValue)
			stream.AggregateTable(values, addAndSubtract(), stream.WithCodec(codec.String())).To(rows("out"))
		}
	}
	in := []string{"A:1@10", "A:@15", "A:1@12", "B:2@20", "⊥:3@21", "B:4@23", "B:7@22"}
	s := play(t, "in", build())
	s.send("in", in...)
	s.wants("out", "1:0+1@10 1:0+1-1@15 1:0+1-1+1@15 2:0+2@20 2:0+2-2@23 4:0+4@23 4:0+4-4@23 7:0+7@22")
	v := play(t, "in", build(stream.Versioned(time.Minute)))
	v.send("in", in...)
	v.wants("out", "1:0+1@10 1:0+1-1@15 2:0+2@20 2:0+2-2@23 4:0+4@23")
}

func TestCountOfRowsByColour(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		n := stream.GroupTable(stream.FromTable(b, rows("in")), byValue).Count(stream.WithCodec(codec.Int64Text()))
		n.To(reka.NewTable("out", codec.Int64Text()))
	})
	s.send("in", "A:green@10", "B:green@9", "A:blue@12", "C:yellow@15", "D:green@11")
	s.wants("out", "green:1@10 green:2@10 green:1@12 blue:1@12 yellow:1@15 green:2@12")
}

func TestSumsByRegionFollowMoves(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		lengths := stream.GroupTable(stream.FromTable(b, rows("in")), func(_, v string) (string, int64) {
			region, length, _ := strings.Cut(v, "-")
			var n int64
			_, _ = fmt.Sscan(length, &n)
			return region, n
		}, stream.WithCodec(codec.Int64Text()))
		sum := lengths.Reduce(func(a, v int64) int64 { return a + v }, func(a, v int64) int64 { return a - v }, stream.Named("sums"))
		stream.Changes(sum).To(reka.NewTable("out", codec.Int64Text()))
	})
	s.send("in", "alice:E-5@1", "bob:A-3@2", "charlie:A-7@3", "alice:A-5@4", "charlie:@5", "⊥:A-9@6", "bob:E-3@7")
	s.wants("out", "E:5@1 A:3@2 A:10@3 E:0@4 A:15@4 A:8@5 A:5@7 E:3@7")
	sums := tester.Table(s.tt, reka.NewTable(reka.ChangelogTopic("g", "sums"), codec.Int64Text())).All()
	if !maps.Equal(sums, map[string]int64{"A": 5, "E": 3}) {
		t.Errorf("the sums are kept as %v", sums)
	}
}

func TestCountOfRowsNeverLeavesItsStep(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		n := stream.GroupTable(stream.FromTable(b, rows("in")), byValue).Count(stream.WithCodec(codec.Int64Text()))
		n.To(reka.NewTable("out", codec.Int64Text()))
	})
	for _, step := range [][2]string{
		{"u1:EU@1", "EU:1@1"}, {"u1:EU@2", "EU:1@2"}, {"u1:US@3", "EU:0@3 US:1@3"}, {"u1:@4", "US:0@4"}, {"u2:@5", ""},
	} {
		s.send("in", step[0])
		s.wants("out", step[1])
	}
}

func TestRowsThatAreGroupedByAValueLeaveNothingBehind(t *testing.T) {
	s := play(t, "in", func(b *stream.Builder) {
		emails := stream.GroupTable(stream.FromTable(b, rows("in")), func(user, email string) (string, string) { return email, user })
		stream.AggregateTable(emails, stream.Aggregator[string, string]{
			Add: func(_, user, all string) string {
				users := append(strings.Fields(all), user)
				slices.Sort(users)
				return strings.Join(users, " ")
			},
			Subtract: func(_, user, all string) string {
				users := strings.Fields(all)
				return strings.Join(slices.DeleteFunc(users, func(u string) bool { return u == user }), " ")
			},
			Delete: func(_, all string) bool { return all == "" },
		}, stream.WithCodec(codec.String()), stream.Named("by-email")).To(rows("out"))
	})
	s.send("in", "u1:a@1")
	s.wants("out", "a:u1@1")
	s.send("in", "u1:b@2")
	s.wants("out", "a:@2 b:u1@2")
	s.send("in", "u1:@3")
	s.wants("out", "b:@3")
	if got := tableOf(s, reka.ChangelogTopic("g", "by-email")).Keys(); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
}

func TestRegroupedTableJoinsWithoutAnotherTopic(t *testing.T) {
	s := play(t, "in R", func(b *stream.Builder) {
		emails := stream.GroupTable(stream.FromTable(b, rows("in")), func(user, email string) (string, string) { return email, user })
		last := emails.Reduce(func(_, v string) string { return v }, func(a, _ string) string { return a })
		joinTables(last, stream.FromTable(b, rows("R")), 2).To(rows("out"))
	})
	s.send("in", "u1:a@1")
	s.send("R", "a:x@2")
	s.wants("out", "a:u1-⊥@1 a:u1-x@2")
}

// TestCountsByGroupEndAtWhatTheTableHolds changes a table at random, with
// several partitions and crashes in between.
func TestCountsByGroupEndAtWhatTheTableHolds(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { countsAtRandom(t, seed) })
	}
}

func countsAtRandom(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 3))
	tt := tester.New(t)
	tt.CreateTopic("in", 3)
	tt.CreateTopic("out", 1)
	b := stream.NewBuilder("g")
	groups := stream.GroupTable(stream.FromTable(b, rows("in")), byValue, stream.Partitions(2))
	stream.Changes(groups.Count()).To(reka.NewTable("out", codec.Int64()))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return []reka.Runner{p}, err
	})
	table, want := map[string]string{}, map[string]int64{}
	in := tester.Input(tt, rows("in"))
	for i := range 200 {
		key, value := fmt.Sprint("k", random.IntN(10)), fmt.Sprint("g", random.IntN(4))
		at := reka.At(time.UnixMilli(int64(random.IntN(1000))))
		if random.IntN(4) == 0 {
			delete(table, key)
			in.Delete(key, at)
		} else {
			table[key], want[value] = value, 0
			in.Send(key, value, at)
		}
		if i%40 == 20 {
			tt.Advance(time.Second)
		}
		if random.IntN(30) == 0 {
			app.Crash()
			app.Restart()
		}
	}
	for _, v := range table {
		want[v]++
	}
	tt.Advance(10 * time.Second)
	if got := tester.Table(tt, reka.NewTable("out", codec.Int64())).All(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
