package task

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rekastream/reka/kafka"
)

func TestMarkSurvivesEncodingAndStaysSmall(t *testing.T) {
	for _, m := range []Mark{
		{StreamTime: noTime},
		{Topic: kafka.TopicID{1, 2, 15: 3}, Writer: "0123456789abcdef", Epoch: 7, StreamTime: 1_700_000_000_000, Fingerprint: math.MaxUint64},
		{Writer: strings.Repeat("x", 64), Epoch: math.MaxUint64, StreamTime: math.MaxInt64},
		{Topic: kafka.TopicID{1}, Writer: strings.Repeat("x", 64), StreamTime: 9, phase: before, from: noTime},
		{Topic: kafka.TopicID{1}, Writer: "x", StreamTime: 9, phase: after, from: 7, alone: true},
		{Topic: kafka.TopicID{1}, Writer: "x", StreamTime: 9, phase: between, from: 7},
	} {
		s := m.Encode()
		if len(s) >= 200 {
			t.Errorf("mark of %d bytes", len(s))
		}
		if got, err := DecodeMark(s); err != nil || got != m {
			t.Errorf("got %+v, %v, want %+v", got, err, m)
		}
		if id, ok := TopicOf(s); id != m.Topic || ok != (id != kafka.TopicID{}) {
			t.Errorf("topic of %+v: %v, %v", m, id, ok)
		}
	}
	long := Mark{Writer: strings.Repeat("y", 200)}
	if got, err := DecodeMark(long.Encode()); err != nil || len(got.Writer) != markWriter {
		t.Errorf("a long writer: %+v, %v", got, err)
	}
}

func TestTopicMetadataIsNoMark(t *testing.T) {
	want := kafka.TopicID{7}
	s := TopicMetadata(want)
	if id, ok := TopicOf(s); !ok || id != want {
		t.Errorf("%v, %v, want %v", id, ok, want)
	}
	if m, err := DecodeMark(s); !errors.Is(err, errNotMark) {
		t.Errorf("read as mark %+v", m)
	}
	for _, other := range []string{"", "x", "hello", TopicMetadata(kafka.TopicID{})} {
		if id, ok := TopicOf(other); ok {
			t.Errorf("%q: topic %v", other, id)
		}
	}
}

func FuzzDecodeMark(f *testing.F) {
	f.Add("")
	f.Add("hello")
	f.Add(Mark{Writer: "w", Epoch: 1, StreamTime: 2, Fingerprint: 3}.Encode())
	f.Add(Mark{Writer: "w", StreamTime: 2, phase: between, from: 1, alone: true}.Encode())
	f.Fuzz(func(t *testing.T, s string) {
		m, err := DecodeMark(s)
		if err != nil {
			if !errors.Is(err, errNotMark) || m.StreamTime != noTime {
				t.Errorf("%q: %+v, %v", s, m, err)
			}
			return
		}
		if again, err := DecodeMark(m.Encode()); err != nil || again != m {
			t.Errorf("%q: %+v becomes %+v, %v", s, m, again, err)
		}
	})
}
