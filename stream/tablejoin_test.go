package stream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
)

// joinMatrix is what inner, left and outer joins of two tables give for each
// input: with plain tables, with versioned ones, with a versioned left one,
// with a versioned right one.
const joinMatrix = `
L⊥@1   | – | – | – | – | – | – | – | – | – | – | – | –
R⊥@2   | – | – | – | – | – | – | – | – | – | – | – | –
L A@3  | – | A-⊥@3 | A-⊥@3 | – | A-⊥@3 | A-⊥@3 | – | A-⊥@3 | A-⊥@3 | – | A-⊥@3 | A-⊥@3
R a@4  | A-a@4 | same | same | same | same | same | same | same | same | same | same | same
L B@5  | B-a@5 | same | same | same | same | same | same | same | same | same | same | same
R b@6  | B-b@6 | same | same | same | same | same | same | same | same | same | same | same
L⊥@7   | ⊥@7 | ⊥@7 | ⊥-b@7 | ⊥@7 | ⊥@7 | ⊥-b@7 | ⊥@7 | ⊥@7 | ⊥-b@7 | ⊥@7 | ⊥@7 | ⊥-b@7
R⊥@8   | – | – | ⊥@8 | – | – | ⊥@8 | – | – | ⊥@8 | – | – | ⊥@8
L C@9  | – | C-⊥@9 | C-⊥@9 | – | C-⊥@9 | C-⊥@9 | – | C-⊥@9 | C-⊥@9 | – | C-⊥@9 | C-⊥@9
R c@10 | C-c@10 | same | same | same | same | same | same | same | same | same | same | same
R⊥@11  | ⊥@11 | C-⊥@11 | C-⊥@11 | ⊥@11 | C-⊥@11 | C-⊥@11 | ⊥@11 | C-⊥@11 | C-⊥@11 | ⊥@11 | C-⊥@11 | C-⊥@11
L⊥@12  | – | ⊥@12 | ⊥@12 | – | ⊥@12 | ⊥@12 | – | ⊥@12 | ⊥@12 | – | ⊥@12 | ⊥@12
R⊥@13  | – | – | – | – | – | – | – | – | – | – | – | –
R d@7  | – | – | ⊥-d@7 | – | – | – | – | – | ⊥-d@7 | – | – | –
L D@6  | D-d@7 | D-d@7 | D-d@7 | – | – | – | – | – | – | – | D-⊥@6 | D-⊥@6
L⊥@2   | ⊥@7 | ⊥@7 | ⊥-d@7 | – | – | – | – | – | – | – | ⊥@2 | ⊥@2
R⊥@3   | – | – | ⊥@3 | – | – | – | – | – | ⊥@3 | – | – | –
R e@14 | – | – | ⊥-e@14 | – | – | ⊥-e@14 | – | – | ⊥-e@14 | – | – | ⊥-e@14
L E@15 | E-e@15 | same | same | same | same | same | same | same | same | same | same | same
L⊥@10  | ⊥@14 | ⊥@14 | ⊥-e@14 | – | – | – | – | – | – | ⊥@14 | ⊥@14 | ⊥-e@14
R⊥@9   | – | – | ⊥@9 | – | – | – | ⊥@15 | E-⊥@15 | E-⊥@15 | – | – | –
L F@4  | – | F-⊥@4 | F-⊥@4 | – | – | – | – | – | – | F-e@14 | F-e@14 | F-e@14
R f@3  | F-f@4 | F-f@4 | F-f@4 | – | – | – | E-f@15 | E-f@15 | E-f@15 | – | – | –
`

// joinTables declares a join by its column of the matrix.
func joinTables(l, r stream.Table[string], kind int, opts ...stream.Option) stream.Table[string] {
	switch kind {
	case 0:
		return stream.JoinTables(l, r, innerText, opts...)
	case 1:
		return stream.LeftJoinTables(l, r, leftText, opts...)
	default:
		return stream.OuterJoinTables(l, r, outerText, opts...)
	}
}

var joinKinds = []string{"inner", "left", "outer"}

func TestTablesJoinByTheMatrix(t *testing.T) {
	for v, variant := range []string{"plain", "versioned", "versioned left", "versioned right"} {
		for k, kind := range joinKinds {
			t.Run(variant+" "+kind, func(t *testing.T) {
				s := play(t, "L R", func(b *stream.Builder) {
					l := stream.FromTable(b, rows("L"), versioned(v == 1 || v == 2)...)
					r := stream.FromTable(b, rows("R"), versioned(v == 1 || v == 3)...)
					joinTables(l, r, k).To(rows("out"))
				})
				s.follows(column(joinMatrix, 3*v+k))
			})
		}
	}
}

func TestTablesJoinByTheMatrixHoweverTheirRowsAreKept(t *testing.T) {
	for k, kind := range joinKinds {
		for how, table := range map[string]func(b *stream.Builder, topic string) stream.Table[string]{
			"named": func(b *stream.Builder, topic string) stream.Table[string] {
				return stream.FromTable(b, rows(topic), stream.Named(topic+"-rows"))
			},
			"made of streams": func(b *stream.Builder, topic string) stream.Table[string] {
				return stream.From(b, text(topic)).ToTable()
			},
			"derived": func(b *stream.Builder, topic string) stream.Table[string] {
				all := stream.FromTable(b, rows(topic))
				return stream.MapTable(all.Filter(func(string, string) bool { return true }), func(_, v string) string { return v })
			},
		} {
			t.Run(how+" "+kind, func(t *testing.T) {
				s := play(t, "L R", func(b *stream.Builder) {
					joinTables(table(b, "L"), table(b, "R"), k).To(rows("out"))
				})
				s.follows(column(joinMatrix, k))
			})
		}
	}
}

func TestNamedJoinOfTablesKeepsItsRows(t *testing.T) {
	s := play(t, "L R", func(b *stream.Builder) {
		joinTables(stream.FromTable(b, rows("L")), stream.FromTable(b, rows("R")), 2,
			stream.Named("pairs"), stream.WithCodec(codec.String())).To(rows("out"))
	})
	s.follows(column(joinMatrix, 2))
	if got, ok := tableOf(s, reka.ChangelogTopic("g", "pairs")).Get("k"); !ok || string(got) != "F-f" {
		t.Errorf("the row is %q, %v", got, ok)
	}
}

func TestJoinOfTablesGoesOnWhereItWas(t *testing.T) {
	s := play(t, "L R", func(b *stream.Builder) {
		joinTables(stream.FromTable(b, rows("L")), stream.FromTable(b, rows("R")), 2).To(rows("out"))
	})
	for i, r := range column(joinMatrix, 2) {
		s.send(r.topic, r.record)
		s.tt.Advance(time.Second)
		if i%2 == 0 {
			s.app.Crash()
			s.app.Restart()
		}
		if got := s.news("out"); got != r.want {
			t.Errorf("input %d, %s:\n  got  %s\n  want %s", i+1, r.input, got, r.want)
		}
	}
}

func TestJoinOfTablesHandsOnOnlyWhatChanges(t *testing.T) {
	s := play(t, "L R", func(b *stream.Builder) {
		l, r := stream.FromTable(b, rows("L")), stream.FromTable(b, rows("R"))
		firsts := func(_ string, l, r string) string { return l[:1] + r[:1] }
		stream.JoinTables(l, r, firsts, stream.WithCodec(codec.String())).To(rows("out"))
		joinTables(l, r, 0).To(rows("plain"))
	})
	s.send("L", "k:a1@1")
	s.send("R", "k:b1@2")
	s.send("L", "k:a2@3", "k:a2@4")
	s.send("R", "k:b1@5", "k:c1@6")
	s.wants("out", "k:ab@2 k:ac@6")
	s.wants("plain", "k:a1-b1@2 k:a2-b1@3 k:a2-c1@6")
}

func TestDeletesInTableJoinsDeleteOnceWhatIsThere(t *testing.T) {
	s := play(t, "L R", func(b *stream.Builder) {
		l, r := stream.FromTable(b, rows("L")), stream.FromTable(b, rows("R"))
		joinTables(l, r, 0).To(rows("inner"))
		joinTables(l, r, 1).To(rows("left"))
	})
	s.send("L", "k:a@1")
	s.send("R", "k:b@2")
	s.send("L", "k:@3")
	s.send("R", "k:@4")
	s.send("L", "k:@5")
	s.wants("inner", "k:a-b@2 k:@3")
	s.wants("left", "k:a-⊥@1 k:a-b@2 k:@3")
	s.send("L", "m:a@6")
	s.send("R", "m:b@7", "m:@8")
	s.send("L", "m:@9")
	s.wants("left", "m:a-⊥@6 m:a-b@7 m:a-⊥@8 m:@9")
	s.wants("inner", "m:a-b@7 m:@8")
}

func TestTableJoinedWithItselfHasEachResultOnce(t *testing.T) {
	s := play(t, "L", func(b *stream.Builder) {
		l := stream.FromTable(b, rows("L"))
		up := stream.MapTable(l, func(_, v string) string { return strings.ToUpper(v) })
		joinTables(l, l, 0, stream.WithCodec(codec.String())).To(rows("out"))
		joinTables(l, up, 2, stream.WithCodec(codec.String())).To(rows("outer"))
	})
	s.send("L", "k:a@1", "k:b@2", "k:@3", "k:@4")
	s.wants("out", "k:a-a@1 k:b-b@2 k:@3")
	s.wants("outer", "k:a-A@1 k:b-B@2 k:@3")
}

func TestJoinedTablesJoinFurther(t *testing.T) {
	s := play(t, "L R in", func(b *stream.Builder) {
		pairs := joinTables(stream.FromTable(b, rows("L")), stream.FromTable(b, rows("R")), 1)
		stream.JoinTable(stream.From(b, text("in")), pairs, innerText).To(text("out"))
	})
	s.send("L", "k:A@1", "m:M@5")
	s.send("R", "k:a@2", "n:n@3")
	s.send("in", "k:x@4", "m:y@6", "n:z@7")
	s.wants("out", "k:x-A-a@4 m:y-M-⊥@6")
}

func TestJoinWithASuppressedTableSeesWhatWasLetGo(t *testing.T) {
	s := play(t, "L R", func(b *stream.Builder) {
		l, r := stream.FromTable(b, rows("L")), stream.FromTable(b, rows("R")).Suppress(stream.UntilElapsed(ms(10)))
		joinTables(l, r, 2).To(rows("out"))
	})
	for _, step := range [][2]string{
		{"R B:1@0", ""},
		{"R A:1@0", ""},
		{"R tick:tick@10", "A:⊥-1@0 B:⊥-1@0"},
		{"R A:2@11", ""},
		{"L A:a@12", "A:a-1@12"},
		{"L B:b@12", "B:b-1@12"},
		{"L A:b@13", "A:b-1@13"},
		{"R tick:tick1@21", "tick:⊥-tick1@21 A:b-2@13"},
	} {
		topic, record, _ := strings.Cut(step[0], " ")
		s.send(topic, record)
		s.wants("out", step[1])
	}
}
