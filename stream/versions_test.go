package stream_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/stream"
)

// versionLog is what a versioned table must answer, the simple way.
type versionLog struct {
	history, now int64
	values       map[string]map[int64]string // "" is a delete
}

func (l *versionLog) put(key, value string, at int64) (newest bool) {
	if l.now = max(l.now, at); at < l.now-l.history {
		return false
	}
	if l.values[key] == nil {
		l.values[key] = map[int64]string{}
	}
	l.values[key][at] = value
	return at == l.newest(key, 1<<60)
}

// newest is the time of the newest version up to a time, -1 if there is none.
func (l *versionLog) newest(key string, to int64) int64 {
	best := int64(-1)
	for at := range l.values[key] {
		if at <= to {
			best = max(best, at)
		}
	}
	return best
}

func (l *versionLog) asOf(key string, at int64) string {
	l.now = max(l.now, at)
	newest := l.newest(key, 1<<60)
	if at < l.now-l.history && newest > at {
		return ""
	}
	return l.values[key][l.newest(key, at)]
}

func TestVersionedTableAnswersAsALogOfItsVersions(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { versionsAtRandom(t, seed) })
	}
}

func versionsAtRandom(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	log := &versionLog{history: int64(random.IntN(30)), values: map[string]map[int64]string{}}
	s := play(t, "L R", func(b *stream.Builder) {
		r := stream.FromTable(b, rows("R"), stream.Versioned(ms(log.history)), stream.Named("history"))
		stream.LeftJoinTable(stream.From(b, text("L")), r, leftText).To(text("out"))
		r.To(rows("changes"))
	})
	old := map[string]bool{} // keys whose newest version is no delete
	put := func(key, value string, at int64) {
		s.send("R", fmt.Sprintf("%s:%s@%d", key, value, at))
		want := ""
		if log.put(key, value, at) {
			if value != "" || old[key] {
				want = fmt.Sprintf("%s:%s@%d", key, value, at)
			}
			old[key] = value != ""
		}
		s.wants("changes", want)
	}
	ask := func(key string, at int64) {
		s.send("L", fmt.Sprintf("%s:x@%d", key, at))
		value := log.asOf(key, at)
		if value == "" {
			value = "⊥"
		}
		s.wants("out", fmt.Sprintf("%s:x-%s@%d", key, value, at))
	}
	for i := range 400 {
		key := fmt.Sprint("k", random.IntN(3))
		at := max(0, log.now+int64(random.IntN(60))-50)
		if random.IntN(50) == 0 {
			at = log.now + 100
		}
		switch random.IntN(8) {
		case 0:
			put(key, "", at)
		case 1, 2, 3:
			put(key, fmt.Sprint("v", i), at)
		default:
			ask(key, at)
		}
		if random.IntN(100) == 0 {
			s.tt.Advance(time.Second)
			s.app.Crash()
			s.app.Restart()
		}
		if t.Failed() {
			t.Fatalf("step %d", i)
		}
	}
	for i := range int64(20) { // expiry has its time
		s.send("L", fmt.Sprintf("end:x@%d", log.now+10000+i))
	}
	left := 0
	for _, is := range old {
		if is {
			left++
		}
	}
	if got := tableOf(s, reka.ChangelogTopic("g", "history")).Keys(); len(got) != left {
		t.Errorf("%d rows are left, want %d: %q", len(got), left, got)
	}
}
