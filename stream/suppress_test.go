package stream_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// playSuppressed reads a table of counts and suppresses its changes.
func playSuppressed(t *testing.T, by stream.Suppression) *scene {
	t.Helper()
	return play(t, "in", func(b *stream.Builder) {
		stream.FromTable(b, rows("in")).Suppress(by).To(rows("out"))
	})
}

func TestSuppressedChangesWaitForStreamTime(t *testing.T) {
	s := playSuppressed(t, stream.UntilElapsed(ms(2)))
	s.send("in", "v1:1@0", "v1:0@1", "v2:1@1", "v1:1@2")
	s.wants("out", "v1:1@2")
	s.send("in", "tick:1@3")
	s.wants("out", "v2:1@1")
	s.send("in", "tick:2@4")
	s.wants("out", "")
	s.send("in", "tick:3@5")
	s.wants("out", "tick:3@5")
}

func TestSuppressionWithoutWaitHoldsNothing(t *testing.T) {
	s := playSuppressed(t, stream.UntilElapsed(0))
	s.send("in", "v1:1@0", "v1:0@1", "v2:1@1", "v1:1@2")
	s.wants("out", "v1:1@0 v1:0@1 v2:1@1 v1:1@2")
}

func TestFullSuppressionLetsTheOldestGo(t *testing.T) {
	for name, by := range map[string]stream.Suppression{
		"rows":  stream.UntilFull().MaxRecords(1),
		"bytes": stream.UntilFull().MaxBytes(12), // a row: its id and a byte before it, two times, flags and value
	} {
		t.Run(name, func(t *testing.T) {
			s := playSuppressed(t, by)
			s.send("in", "v1:1@0", "v1:0@1", "v2:1@1", "v1:1@2")
			s.wants("out", "v1:0@1 v2:1@1")
			s.send("in", "x:1@3")
			s.wants("out", "v1:1@2")
		})
	}
}

func TestFullSuppressionFailsTheRecordIfAskedTo(t *testing.T) {
	s := playSuppressed(t, stream.UntilElapsed(ms(100)).MaxRecords(2).OrFail())
	s.send("in", "a:1@0", "b:1@1", "a:2@2", "c:1@3")
	var full *stream.FullError
	if err := s.app.Err(); !errors.As(err, &full) {
		t.Fatalf("ended with %v", err)
	}
	if full.Records != 3 || full.Operation != "in-suppress" {
		t.Errorf("%+v", full)
	}
	s.wants("out", "")
}

func TestRoomThatResultsHaveLeftIsFree(t *testing.T) {
	for name, by := range map[string]stream.Suppression{
		"rows": stream.UntilElapsed(ms(10)).MaxRecords(2).OrFail(), "bytes": stream.UntilElapsed(ms(10)).MaxBytes(20).OrFail(),
	} {
		t.Run(name, func(t *testing.T) {
			s := playSuppressed(t, by)
			for i := range int64(20) {
				s.send("in", fmt.Sprintf("a:x@%d", i*20), fmt.Sprintf("b:y@%d", i*20+11))
			}
			if err := s.app.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFinalResultsFailWithoutRoomForThem(t *testing.T) {
	w := window.Session(ms(5), ms(5))
	s := play(t, "in", func(b *stream.Builder) {
		stream.From(b, text("in")).GroupByKey().Windowed(w).Count().Suppress(stream.UntilClosed().MaxRecords(2)).To(counts("final", w))
	})
	s.send("in", "a:v@0", "a:v@4", "b:v@5", "a:v@6", "c:v@17", "d:v@18") // the third when the first are due
	if err := s.app.Err(); err != nil {
		t.Fatal(err)
	}
	s.send("in", "e:v@19")
	var full *stream.FullError
	if err := s.app.Err(); !errors.As(err, &full) {
		t.Fatalf("ended with %v", err)
	}
	if full.Operation != "in-count-suppress" || full.Records != 3 {
		t.Errorf("%+v", full)
	}
}

func TestSuppressedDeletesPassUnlessNothingWasShown(t *testing.T) {
	s := playSuppressed(t, stream.UntilElapsed(ms(2)))
	s.send("in", "a:1@0", "b:1@0", "x:1@2", "a:@3", "b:2@3", "c:1@3", "c:@4", "x:2@9")
	s.wants("out", "a:1@0 b:1@0 x:1@2 a:@3 b:2@3")
}

func TestSuppressedResultsAreFinalWhenWindowsAreClosed(t *testing.T) {
	w := window.Tumbling(ms(2), ms(2))
	s := playFinal(t, w)
	s.send("in", "k:v@0", "k:v@1", "k:v@2", "k:v@0", "k:v@3", "k:v@0", "k:v@4", "k:late@0")
	s.shows(w, "k[0-2]=1@0 k[0-2]=2@1 k[2-4]=1@2 k[0-2]=3@1 k[2-4]=2@3 k[0-2]=4@1 k[4-6]=1@4", "k[0-2]=4@1")
	s.send("in", "k:v@30")
	s.shows(w, "k[30-32]=1@30", "k[2-4]=2@3 k[4-6]=1@4")
}

// playFinal starts counts by window with all updates in out and those until
// close in final.
func playFinal(t *testing.T, w window.Windows) *scene {
	t.Helper()
	return play(t, "in", func(b *stream.Builder) {
		in := stream.From(b, text("in")).GroupByKey().Windowed(w)
		res := stream.AggregateWindows(in, counter(), stream.WithCodec(codec.String()))
		res.To(windows("out", w))
		res.Suppress(stream.UntilClosed()).To(windows("final", w))
	})
}

func TestSuppressedSessionsThatWereTakenBackDoNotCome(t *testing.T) {
	w := window.Session(ms(5), window.NoGrace)
	s := playFinal(t, w)
	s.send("in", "k1:v@0", "k1:v@5", "k1:v@1", "k2:v@11")
	s.news("out")
	s.shows(w, "", "k1[0-5]=3@5")
	s.send("in", "k1:late@5", "k1:v@30")
	s.shows(w, "k1[30-30]=1@30", "k2[11-11]=1@11")
}

func TestSuppressedSlidingWindowsComeByEnd(t *testing.T) {
	w := window.Sliding(ms(5), ms(15))
	s := playFinal(t, w)
	s.send("in", "k:v@10", "k:v@11", "k:v@10", "k:v@13", "k:v@10", "k:v@24", "k:v@5", "k:v@7", "k:v@90")
	s.news("out")
	s.shows(w, "", "k[5-10]=5@10 k[6-11]=5@11 k[8-13]=5@13 k[11-16]=2@13 k[12-17]=1@13 k[19-24]=1@24")
}

func TestJoinsReadTheRowsThatWentOn(t *testing.T) {
	s := play(t, "left right", func(b *stream.Builder) {
		right := stream.FromTable(b, rows("right")).Suppress(stream.UntilElapsed(ms(10)))
		stream.OuterJoinTables(stream.FromTable(b, rows("left")), right, func(_ string, l, r *string) string {
			return orNone(l) + "," + orNone(r)
		}, stream.WithCodec(codec.String())).To(rows("out"))
	})
	s.send("right", "B:1@0", "A:1@0")
	s.wants("out", "")
	s.send("right", "tick:tick@10")
	s.wants("out", "A:⊥,1@0 B:⊥,1@0")
	s.send("right", "A:2@11")
	s.wants("out", "")
	s.send("left", "A:a@12", "B:b@12", "A:b@13")
	s.wants("out", "A:a,1@12 B:b,1@12 A:b,1@13")
	s.send("right", "tick:tick1@21")
	s.wants("out", "tick:⊥,tick1@21 A:b,2@13")
}

func orNone(s *string) string {
	if s == nil {
		return "⊥"
	}
	return *s
}

func TestHeldResultsSurviveACrash(t *testing.T) {
	s := playSuppressed(t, stream.UntilElapsed(ms(10)))
	s.send("in", "a:1@0", "b:1@5", "a:2@9")
	s.restart()
	s.wants("out", "")
	s.send("in", "a:3@10")
	s.wants("out", "a:3@10")
	s.restart()
	s.send("in", "c:1@15")
	s.wants("out", "b:1@5")
}

func TestSuppressionsThatMakeNoSense(t *testing.T) {
	w := window.Tumbling(ms(10), window.NoGrace)
	table := func(by stream.Suppression) func(*stream.Builder) {
		return func(b *stream.Builder) { stream.FromTable(b, rows("in")).Suppress(by).To(rows("out")) }
	}
	results := func(of func(stream.Windows[int64]) stream.Windows[int64]) func(*stream.Builder) {
		return func(b *stream.Builder) {
			of(stream.From(b, text("in")).GroupByKey().Windowed(w).Count())
		}
	}
	for name, c := range map[string]struct {
		build func(*stream.Builder)
		want  string
	}{
		"none":             {table(stream.Suppression{}), `suppress "in-suppress": no suppression: make one with UntilClosed, UntilElapsed or UntilFull`},
		"closed table":     {table(stream.UntilClosed()), `suppress "in-suppress": UntilClosed is for windows`},
		"negative":         {table(stream.UntilElapsed(-1)), `suppress "in-suppress": UntilElapsed: -1ns is negative`},
		"not whole":        {table(stream.UntilElapsed(1)), `suppress "in-suppress": UntilElapsed: 1ns is no whole number of milliseconds`},
		"no rows":          {table(stream.UntilFull().MaxRecords(0)), `suppress "in-suppress": MaxRecords(0) is not above 0`},
		"no bytes":         {table(stream.UntilFull().MaxBytes(-1)), `suppress "in-suppress": MaxBytes(-1) is not above 0`},
		"full of nothing":  {table(stream.UntilFull()), `suppress "in-suppress": UntilFull needs MaxRecords or MaxBytes`},
		"full and failing": {table(stream.UntilFull().MaxRecords(1).OrFail()), `suppress "in-suppress": UntilFull and OrFail: nothing would ever be let go`},
		"failing unbound":  {table(stream.UntilElapsed(ms(1)).OrFail()), `suppress "in-suppress": OrFail needs MaxRecords or MaxBytes`},
		"final already": {results(func(r stream.Windows[int64]) stream.Windows[int64] {
			return r.OnClose().Suppress(stream.UntilClosed())
		}), `suppress "in-count-suppress": UntilClosed: the results are final already`},
		"final twice": {results(func(r stream.Windows[int64]) stream.Windows[int64] {
			return r.Suppress(stream.UntilClosed()).OnClose()
		}), `onclose of in-count-suppress: the results are final already`},
		"final behind": {results(func(r stream.Windows[int64]) stream.Windows[int64] {
			return r.Suppress(stream.UntilElapsed(ms(1))).OnClose()
		}), `onclose of in-count-suppress: the results are behind Suppress: what is emitted on close must come before it`},
	} {
		b := stream.NewBuilder("g")
		c.build(b)
		if _, err := b.Graph(); err == nil || err.Error() != "stream: graph g: "+c.want {
			t.Errorf("%s:\n  got  %v\n  want stream: graph g: %s", name, err, c.want)
		}
	}
}

// suppressedFinals is an aggregation whose results are suppressed until close.
func suppressedFinals(w window.Windows) func(*stream.Builder) {
	return func(b *stream.Builder) {
		in := stream.From(b, text("in")).GroupByKey().Windowed(w).Late(text("late"))
		stream.AggregateWindows(in, adding(), stream.WithCodec(codec.String())).Suppress(stream.UntilClosed()).To(windows("final", w))
	}
}
