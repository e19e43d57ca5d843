package kafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// stepClock is a clock that only Sleep moves.
type stepClock struct {
	Clock
	now time.Time
}

func (c *stepClock) Now() time.Time { return c.now }

func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return ctx.Err()
}

func TestBackoffGrowsToItsLimitAndLogsLessAndLess(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	clock := &stepClock{now: time.Unix(0, 0)}
	b := newBackoff("dialling", clock, zap.New(core))
	start, trouble := clock.now, errors.New("refused")
	last := time.Duration(0)
	for clock.now.Sub(start) < time.Hour {
		before := clock.now
		if err := b.wait(t.Context(), trouble); err != nil {
			t.Fatal(err)
		}
		last = clock.now.Sub(before)
		if last < backoffMin/2 || last > backoffMax {
			t.Fatalf("pause of %v", last)
		}
	}
	if last < backoffMax/2 {
		t.Errorf("pause of %v after an hour", last)
	}
	entries := logs.FilterMessage("dialling: still trying").All()
	if n := len(entries); n < 5 || n > 20 {
		t.Errorf("%d log lines in an hour of trouble", n)
	}
	b.reset()
	if logs.FilterMessage("dialling: no more trouble").Len() != 1 {
		t.Error("the end of logged trouble is not logged")
	}
	b.failed(trouble)
	b.reset()
	if n := logs.Len(); n != len(entries)+1 {
		t.Errorf("trouble that passed at once is logged: %d lines", n)
	}
}

func TestManyWhoHaveTheSameTroubleLogAsOne(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	d := testDriver(t, "b:1")
	d.log, d.clock = zap.New(core), &stepClock{now: time.Unix(0, 0)}
	var all []*backoff
	for range 50 {
		all = append(all, &backoff{notice: d.noticeOf("asking")})
	}
	for range 20 {
		for _, b := range all {
			_ = b.wait(t.Context(), errors.New("refused"))
		}
	}
	if n := logs.Len(); n < 3 || n > 10 {
		t.Errorf("%d log lines of 50 in trouble", n)
	}
	all[0].reset()
	if logs.FilterMessage("asking: no more trouble").Len() != 0 {
		t.Error("one of many is through, and the trouble is said to be over")
	}
	for _, b := range all {
		b.reset()
	}
	if logs.FilterMessage("asking: no more trouble").Len() != 1 {
		t.Error("the end of the trouble is not logged once")
	}
}

func TestRetryEndsWithADecisionOrWithItsContext(t *testing.T) {
	d := testDriver(t, "b:1")
	tries := 0
	err := d.retry(t.Context(), "trying", func() error {
		if tries++; tries < 3 {
			return kerror(sarama.ErrNotController)
		}
		return kerror(sarama.ErrTopicAuthorizationFailed)
	})
	if tries != 3 || !errors.Is(err, ErrNotAuthorized) {
		t.Errorf("after %d tries: %v", tries, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = d.retry(ctx, "trying", func() error { cancel(); return kerror(sarama.ErrNotController) })
	if !errors.Is(err, context.Canceled) || !errors.Is(err, sarama.ErrNotController) {
		t.Errorf("error %v does not say what ended it and why", err)
	}
}
