package tester

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
)

// script sends raw requests of one transactional id and notes the answers.
type script struct {
	tt  *Tester
	c   *coordination
	tp  kafka.TopicPartition
	out []string
}

func newScript(t *testing.T) *script {
	tt := New(t)
	tt.CreateTopic("t", 1)
	tt.w.mu.Lock()
	defer tt.w.mu.Unlock()
	return &script{tt: tt, c: tt.w.coordination("id"), tp: kafka.TopicPartition{Topic: "t"}}
}

func (s *script) note(err error) {
	code := "?"
	for e, name := range map[error]string{nil: "0", errConcurrent: "51", kafka.ErrFenced: "90", errTxnState: "48"} {
		if errors.Is(err, e) {
			code = name
		}
	}
	s.out = append(s.out, code)
}

func (s *script) locked(f func()) {
	s.tt.w.mu.Lock()
	defer s.tt.w.mu.Unlock()
	f()
}

func (s *script) init(epoch int32) {
	s.locked(func() {
		got, err := s.c.init(epoch, time.Minute)
		s.note(err)
		if err == nil {
			s.out[len(s.out)-1] = fmt.Sprint("=", got)
		}
	})
}

func (s *script) add(epoch int32) { s.locked(func() { s.note(s.c.addPartition(epoch, s.tp)) }) }

func (s *script) end(epoch int32, commit bool) { s.locked(func() { s.note(s.c.end(epoch, commit)) }) }

// What a 4.4 broker answered to the same requests: error codes, and epochs
// given out. Settle lets the markers be written.
func TestCoordinatorAnswersAsABrokerDoes(t *testing.T) {
	cases := []struct {
		name string
		run  func(s *script)
		want string
	}{
		{"own epoch on an open transaction", func(s *script) {
			s.init(-1)
			s.add(0)
			s.init(0)
			s.init(0)
			s.tt.Settle()
			s.init(0)
		}, "=0 0 51 51 =1"},
		{"own epoch after a commit, twice", func(s *script) {
			s.init(-1)
			s.add(0)
			s.end(0, true)
			s.init(0)
			s.tt.Settle()
			s.init(0)
			s.init(0)
		}, "=0 0 0 51 =1 =1"},
		{"a stale epoch against a newer one's open transaction", func(s *script) {
			s.init(-1)
			s.init(-1)
			s.add(1)
			s.init(0)
			s.tt.Settle()
			s.init(0)
			s.end(1, true)
			s.init(1)
		}, "=0 =1 0 51 90 90 =2"},
		{"a late end hits the next transaction of the same epoch", func(s *script) {
			s.init(-1)
			s.add(0)
			s.end(0, true)
			s.add(0)
			s.tt.Settle()
			s.add(0)
			s.end(0, true)
			s.tt.Settle()
			s.end(0, true)
			s.end(0, false)
		}, "=0 0 0 51 0 0 0 48"},
		{"fenced by a request that was not repeated", func(s *script) {
			s.init(-1)
			s.add(0)
			s.init(-1)
			s.end(0, true)
			s.tt.Settle()
			s.init(0)
		}, "=0 0 51 90 =1"},
		{"fenced by one that was", func(s *script) {
			s.init(-1)
			s.add(0)
			s.init(-1)
			s.tt.Settle()
			s.init(-1)
			s.init(0)
		}, "=0 0 51 =2 90"},
		{"aborted by timeout", func(s *script) {
			s.init(-1)
			s.add(0)
			s.tt.Advance(time.Minute)
			s.end(0, true)
			s.init(0)
		}, "=0 0 90 =1"},
		{"a repeated end, and a contrary one", func(s *script) {
			s.init(-1)
			s.end(0, true)
			s.add(0)
			s.end(0, false)
			s.end(0, false)
			s.end(0, true)
			s.tt.Settle()
			s.end(0, false)
			s.end(0, true)
		}, "=0 48 0 0 51 48 0 48"},
		{"an epoch that was never given out", func(s *script) {
			s.init(0)
			s.init(-1)
			s.add(1)
			s.init(3)
		}, "90 =0 90 90"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t)
			c.run(s)
			if got := strings.Join(s.out, " "); got != c.want {
				t.Fatalf("answers %s, want %s", got, c.want)
			}
		})
	}
}

func TestCompactDropsAbortedAndLeavesUnstableAlone(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1, "cleanup.policy", "compact")
	put(tt, "t", "a=1", "b=1")
	x := newTxnRig(tt, "app")
	x.init(t, false)
	x.Begin()
	x.produce("t", "a=aborted")
	x.end(t, false)
	tt.Settle()
	put(tt, "t", "a=2")
	x.Begin()
	x.produce("t", "b=open")
	put(tt, "t", "a=3", "end=1")
	tt.Compact("t")
	x.end(t, true)
	if got := offsets(tt, "t"); got != "1:b=1 4:a=2 5:b=open 6:a=3 7:end=1" {
		t.Fatalf("left %s", got)
	}
	tt.Compact("t")
	if got := offsets(tt, "t"); got != "5:b=open 6:a=3 7:end=1" {
		t.Fatalf("left %s", got)
	}
}
