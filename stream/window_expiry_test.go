package stream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// playUpdates starts an aggregation by window with every update in out.
func playUpdates(t *testing.T, w window.Windows) *scene {
	t.Helper()
	return play(t, "in", func(b *stream.Builder) {
		in := stream.From(b, text("in")).GroupByKey().Windowed(w).Late(text("late"))
		stream.AggregateWindows(in, counter(), stream.WithCodec(codec.String())).To(windows("out", w))
	})
}

// rowsOf returns how many rows of a store belong to a key.
func (s *scene) rowsOf(store, key string) (n int) {
	s.t.Helper()
	s.tt.Settle()
	for _, r := range lastOfEachKey(s.tt.Raw(reka.ChangelogTopic("g", store), 0)) {
		if len(r.Key) > 0 && string(r.Key[min(9, len(r.Key)):]) == key || string(r.Key[1:]) == key {
			n++
		}
	}
	return n
}

func TestRowsGoExactlyWhenTheyExpire(t *testing.T) {
	for name, c := range map[string]struct {
		w       window.Windows
		expires int64 // time at which the window of k@7 expires
	}{
		"tumbling":             {window.Tumbling(ms(10), ms(5)), 15},
		"tumbling kept longer": {window.Tumbling(ms(10), ms(5)).WithRetention(ms(100)), 100},
		"hopping":              {window.Hopping(ms(10), ms(10), ms(5)), 15},
		"session":              {window.Session(ms(10), ms(5)), 7 + 10 + 1 + 5},
		"session kept longer":  {window.Session(ms(10), ms(5)).WithRetention(ms(50)), 7 + 10 + 1 + 40},
		// The rows of a sliding window are in buckets of the difference and one
		// more; they go with the last window of theirs that there can be.
		"sliding": {window.Sliding(ms(10), ms(5)), 10 + 10 + 1 + 15},
	} {
		for _, finals := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, finals %v", name, finals), func(t *testing.T) {
				s := playUpdates(t, c.w)
				if finals {
					s = playWindows(t, c.w, counter())
				}
				s.send("in", "k:v@7", fmt.Sprintf("x:v@%d", c.expires-1))
				if s.rowsOf("in-aggregate", "k") == 0 {
					t.Error("gone too early")
				}
				s.send("in", fmt.Sprintf("x:v@%d", c.expires))
				if n := s.rowsOf("in-aggregate", "k"); n > 0 {
					t.Errorf("%d rows are left", n)
				}
			})
		}
	}
}

func TestFinalsComeBeforeTheirRowsExpireHoweverFarTimeJumps(t *testing.T) {
	for _, w := range []window.Windows{window.Tumbling(ms(10), window.NoGrace), window.Session(ms(3), window.NoGrace), window.Sliding(ms(3), window.NoGrace)} {
		s := playWindows(t, w, counter())
		s.send("in", "a:v@1", "b:v@25", "c:v@95", "d:v@105", "e:v@1000000000")
		s.news("out")
		var keys string
		for _, r := range s.tt.Raw("final", 0) {
			keys += string(r.Key[:1])
		}
		if keys != "abcd" {
			t.Errorf("%v: finals of %s", w, keys)
		}
		if n := s.rowsOf("in-aggregate", "a") + s.rowsOf("in-aggregate", "d"); n > 0 {
			t.Errorf("%v: %d rows are left", w, n)
		}
	}
}

// Ten minutes, kept for a week, make 1008 windows of a key, also when the
// process was away in between.
func TestRestoredRowsExpireLikeOthers(t *testing.T) {
	const tenMinutes = 600_000
	w := window.Tumbling(10*time.Minute, window.NoGrace).WithRetention(7 * 24 * time.Hour)
	s := playUpdates(t, w)
	days := func(from, to int) {
		var batch []record
		for i := from * 144; i < to*144; i++ {
			batch = append(batch, recordAt("k", "v", int64(i)*tenMinutes))
		}
		s.tt.SendRaw("in", 0, batch...)
		s.tt.Settle()
	}
	days(0, 7)
	if n := s.stored("in-aggregate"); n != 1008 {
		t.Errorf("%d windows after 7 days", n)
	}
	s.restart()
	days(7, 10)
	if n := s.stored("in-aggregate"); n != 1008 {
		t.Errorf("%d windows after 10 days", n)
	}
	deleted := 0
	for _, r := range s.tt.Raw(reka.ChangelogTopic("g", "in-aggregate"), 0) {
		if r.Value == nil {
			deleted++
		}
	}
	if deleted != 432 {
		t.Errorf("%d windows were deleted", deleted)
	}
}

func TestLateChecksGoByGraceNotByRetention(t *testing.T) {
	w := window.Tumbling(ms(10), ms(5)).WithRetention(ms(1000))
	s := playUpdates(t, w)
	s.send("in", "k:v@7", "k:v@14", "k:v@8", "k:v@15", "k:late@9")
	if got, want := s.results("out", w), "k[0-10]=1@7 k[10-20]=1@14 k[0-10]=2@8 k[10-20]=2@15"; got != want {
		t.Errorf("\n  got  %s\n  want %s", got, want)
	}
	s.wants("late", "k:late@9")
}
