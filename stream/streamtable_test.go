package stream_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
)

// streamMatrix is what joins of a stream L with a table R give for the inputs
// of joinMatrix: inner and left, the same with a versioned table, and with one
// that is waited for 2 ms.
const streamMatrix = `
L⊥@1   | – | – | – | – | – | –
R⊥@2   | – | – | – | – | – | –
L A@3  | – | A-⊥@3 | – | A-⊥@3 | – | –
R a@4  | – | – | – | – | – | –
L B@5  | B-a@5 | B-a@5 | B-a@5 | B-a@5 | – | A-⊥@3
R b@6  | – | – | – | – | – | –
L⊥@7   | – | – | – | – | B-a@5 | B-a@5
R⊥@8   | – | – | – | – | – | –
L C@9  | – | C-⊥@9 | – | C-⊥@9 | – | –
R c@10 | – | – | – | – | – | –
R⊥@11  | – | – | – | – | – | C-⊥@9
L⊥@12  | – | – | – | – | – | –
R⊥@13  | – | – | – | – | – | –
R d@7  | – | – | – | – | – | –
L D@6  | D-d@6 | D-d@6 | D-b@6 | D-b@6 | D-b@6 | D-b@6
L⊥@2   | – | – | – | – | – | –
R⊥@3   | – | – | – | – | – | –
R e@14 | – | – | – | – | – | –
L E@15 | E-e@15 | E-e@15 | E-e@15 | E-e@15 | – | –
L⊥@10  | – | – | – | – | – | –
R⊥@9   | – | – | – | – | – | –
L F@4  | – | F-⊥@4 | F-a@4 | F-a@4 | F-a@4 | F-a@4
R f@3  | – | – | – | – | – | –
`

func TestStreamAndTableJoinByTheMatrix(t *testing.T) {
	for v, variant := range []string{"plain", "versioned", "waiting"} {
		for k, kind := range []string{"inner", "left"} {
			t.Run(variant+" "+kind, func(t *testing.T) {
				s := play(t, "L R", func(b *stream.Builder) {
					l, r := stream.From(b, text("L")), stream.FromTable(b, rows("R"), versioned(v > 0)...)
					var opts []stream.Option
					if v == 2 {
						opts = append(opts, stream.WithTableWait(ms(2)))
					}
					if k == 0 {
						stream.JoinTable(l, r, innerText, opts...).To(text("out"))
					} else {
						stream.LeftJoinTable(l, r, leftText, opts...).To(text("out"))
					}
				})
				s.follows(column(streamMatrix, 2*v+k))
			})
		}
	}
}

func TestRecordsWaitForATableInOrder(t *testing.T) {
	s := play(t, "L R", func(b *stream.Builder) {
		r := stream.FromTable(b, rows("R"), stream.Versioned(time.Minute))
		stream.JoinTable(stream.From(b, text("L")), r, innerText, stream.WithTableWait(ms(2))).To(text("out"))
	})
	s.send("R", "0:Y@0", "1:Y@0", "2:Y@0", "3:Y@0")
	s.send("L", "0:X0@0", "1:X1@1", "2:X2@2", "3:X3@3")
	s.wants("out", "0:X0-Y@0 1:X1-Y@1")
	s.send("L", "0:X0@0")
	s.wants("out", "0:X0-Y@0")
	s.send("R", "0:YY@0", "1:YY@0", "2:YY@0", "3:YY@0")
	s.send("L", "0:X0@0", "1:X1@1", "2:X2@2", "3:X3@3")
	s.wants("out", "0:X0-YY@0 1:X1-YY@1")
	s.send("L", "5:test@7")
	s.wants("out", "2:X2-YY@2 2:X2-YY@2 3:X3-YY@3 3:X3-YY@3")
}

func TestRecordsThatWaitSeeTheHistoryHoweverFarTimeJumps(t *testing.T) {
	s := play(t, "L R", func(b *stream.Builder) {
		r := stream.FromTable(b, rows("R"), stream.Versioned(ms(10)))
		stream.LeftJoinTable(stream.From(b, text("L")), r, leftText, stream.WithTableWait(ms(10))).To(text("out"))
	})
	s.send("R", "k:a@1", "k:b@8")
	s.send("L", "k:X@5", "k:Y@9")
	s.send("R", "k:c@1000000")
	s.wants("out", "k:X-a@5 k:Y-b@9")
	s.send("L", "k:Z@1000000", "k:old@7")
	s.wants("out", "k:old-⊥@7")
	s.tt.Advance(time.Second)
	s.app.Crash()
	s.app.Restart()
	s.send("L", "k:end@1000010")
	s.wants("out", "k:Z-c@1000000")
}

func TestStreamTableJoinWithoutKeyOrValue(t *testing.T) {
	s := play(t, "L R", func(b *stream.Builder) {
		l, r := stream.From(b, text("L")), stream.FromTable(b, rows("R"))
		stream.JoinTable(l, r, innerText).To(text("inner"))
		stream.LeftJoinTable(l, r, leftText).To(text("left"))
	})
	s.send("R", "k:a@0", ":e@0")
	s.send("L", "⊥:leftValue@1", "k:@2", ":X@3")
	s.wants("inner", ":X-e@3")
	s.wants("left", "⊥:leftValue-⊥@1 :X-e@3")
}

func TestStreamSeesTheTableOfItsTimeWhenBothHaveABacklog(t *testing.T) {
	for name, c := range map[string]struct {
		opts []stream.Option
		want string
	}{
		"merged by time": {nil, "u:x-⊥@50 u:y-v1@200 u:t-v2@300 u:z-v2@400"},
		"table first":    {[]stream.Option{stream.TableFirst()}, "u:x-v2@50 u:y-v2@200 u:t-v2@300 u:z-v2@400"},
		"versioned":      {[]stream.Option{stream.Versioned(time.Minute)}, "u:x-⊥@50 u:y-v1@200 u:t-v2@300 u:z-v2@400"},
	} {
		for run := range 20 {
			t.Run(fmt.Sprint(name, " ", run), func(t *testing.T) {
				s := playLater(t, "L R", func(b *stream.Builder) {
					l, r := stream.From(b, text("L")), stream.FromTable(b, rows("R"), c.opts...)
					stream.LeftJoinTable(l, r, leftText).To(text("out"))
				})
				s.send("R", "u:v1@100", "u:v2@300")
				s.send("L", "u:x@50", "u:y@200", "u:t@300", "u:z@400")
				random := rand.New(rand.NewPCG(uint64(run), 0))
				s.tt.Fail(tester.Fault{Op: tester.OpFetch, Topic: []string{"L", "R"}[run%2], Do: tester.Delay(time.Duration(1+random.IntN(500)) * time.Millisecond)})
				s.start()
				s.tt.Advance(time.Second)
				s.wants("out", c.want)
			})
		}
	}
}

func TestStreamOfOtherKeysIsRepartitionedBeforeItMeetsTheTable(t *testing.T) {
	s := play(t, "L R", func(b *stream.Builder) {
		l := stream.From(b, text("L"))
		l = l.Merge(l.SelectKey(func(_, v string) string { return v }))
		r := stream.FromTable(b, rows("R"))
		stream.LeftJoinTable(l, r, leftText).To(text("out"))
		l.Repartition().To(text("explicit"))
	})
	s.send("R", "x:a@0")
	s.send("L", "⊥:x@1")
	s.wants("out", "x:x-a@1 ⊥:x-⊥@1")
	s.wants("explicit", "x:x@1")
}

func TestRepartitionDropsRecordsWithoutAKey(t *testing.T) {
	s := play(t, "L", func(b *stream.Builder) { stream.From(b, text("L")).Repartition().To(text("out")) })
	s.send("L", "⊥:x@1")
	s.wants("out", "")
}

func TestStreamsThatComeOfATableSeeItsNewRows(t *testing.T) {
	s := play(t, "R", func(b *stream.Builder) {
		r := stream.FromTable(b, rows("R"))
		stream.LeftJoinTable(stream.Changes(r), r, leftText).To(text("out"))
		kept := stream.From(b, text("R")).ToTable(stream.Named("kept"))
		stream.LeftJoinTable(stream.From(b, text("R")), kept, leftText).To(text("kept"))
	})
	s.send("R", "k:a@1", "k:b@2")
	s.wants("out", "k:a-a@1 k:b-b@2")
	s.wants("kept", "k:a-a@1 k:b-b@2")
}

func TestVersionsAreForgottenWithTheHistory(t *testing.T) {
	changelog := reka.ChangelogTopic("g", "history")
	s := play(t, "L R", func(b *stream.Builder) {
		r := stream.FromTable(b, rows("R"), stream.Versioned(ms(10)), stream.Named("history"))
		stream.LeftJoinTable(stream.From(b, text("L")), r, leftText).To(text("out"))
	})
	s.send("R", "k:a@1", "k:b@2", "k:c@3", "m:a@1", "m:@2")
	if got := len(tableOf(s, changelog).Keys()); got != 3+2+2+1 { // versions of k, what they replaced, the same of m
		t.Errorf("%d rows of versions", got)
	}
	s.send("L", "k:X@1", "k:Y@2", "m:Z@2", "m:Z@1")
	s.wants("out", "k:X-a@1 k:Y-b@2 m:Z-⊥@2 m:Z-a@1")
	s.send("R", "k:late@12", "k:refused@1")
	s.send("L", "k:X@12", "k:Y@2")
	s.wants("out", "k:X-late@12 k:Y-b@2")
	s.send("L", "z:far@100", "z:far@101", "k:X@12", "k:X@11", "m:Z@100")
	s.wants("out", "z:far-⊥@100 z:far-⊥@101 k:X-late@12 k:X-⊥@11 m:Z-⊥@100")
	if got := tableOf(s, changelog).Keys(); len(got) != 1 {
		t.Errorf("%q are left of the versions", got)
	}
	s.send("R", "k:again@95", "k:between@92")
	s.send("L", "k:X@101", "k:X@94", "k:X@91")
	s.wants("out", "k:X-again@101 k:X-between@94 k:X-late@91")
}
