package stream_test

import (
	"strings"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
)

// tableOf reads a topic as a table of any bytes.
func tableOf(s *scene, topic string) *tester.TableTopic[[]byte] {
	return tester.Table(s.tt, reka.NewTable(topic, codec.Bytes()))
}

// two joins texts, a missing side as "⊥".
func two(l, r *string) string {
	show := func(v *string) string {
		if v == nil {
			return "⊥"
		}
		return *v
	}
	return show(l) + "-" + show(r)
}

func innerText(_ string, l, r string) string          { return two(&l, &r) }
func leftText(_ string, l string, r *string) string   { return two(&l, r) }
func outerText(_ string, l *string, r *string) string { return two(l, r) }

func ownKey(key, _ string) (string, bool) { return key, true }

func byValue(_, v string) (string, string) { return v, v }

// refersTo is the text behind "|".
func refersTo(_, v string) (string, bool) {
	_, to, ok := strings.Cut(v, "|")
	return to, ok
}

// versioned are the options of a table that is versioned, or is not.
func versioned(on bool) []stream.Option {
	if !on {
		return nil
	}
	return []stream.Option{stream.Versioned(5 * time.Minute)}
}

// joinRow is one input of a matrix, as topic and record, and what it gives.
type joinRow struct{ topic, record, input, want string }

// column returns one column of a matrix: "same" is what the first column says,
// "–" nothing, "⊥" a delete.
func column(matrix string, n int) (out []joinRow) {
	for line := range strings.SplitSeq(strings.TrimSpace(matrix), "\n") {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		want := cells[1+n]
		if want == "same" {
			want = cells[1]
		}
		var all []string
		for w := range strings.FieldsSeq(want) {
			if v, at, _ := strings.Cut(w, "@"); v == "⊥" {
				all = append(all, "k:@"+at)
			} else if w != "–" {
				all = append(all, "k:"+w)
			}
		}
		value := strings.TrimSpace(cells[0][1:])
		out = append(out, joinRow{
			topic: cells[0][:1], record: "k:" + strings.TrimPrefix(value, "⊥"), input: cells[0], want: strings.Join(all, " "),
		})
	}
	return out
}

// follows sends a column's inputs and checks what each gives.
func (s *scene) follows(rows []joinRow) {
	s.t.Helper()
	for i, r := range rows {
		s.send(r.topic, r.record)
		if got := s.news("out"); got != r.want {
			s.t.Errorf("input %d, %s:\n  got  %s\n  want %s", i+1, r.input, got, r.want)
		}
	}
}

// counted is how many were counted under a name, by all tasks that there are.
func (s *scene) counted(name string) (n int64) {
	s.t.Helper()
	s.tt.Settle()
	for _, p := range s.now.Stats().Partitions {
		n += p.Counters[name]
	}
	return n
}
