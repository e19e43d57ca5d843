package systemtest

import (
	"context"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/systemtest/realkafka"
)

const takeoverPartitions = 4

// An owner is killed while it commits, again and again. How long its
// partitions stand still is logged; the bounds asserted are wide, since the
// machine that runs this may have other work.
func TestKilledOwnersPartitionsGoOnSoon(t *testing.T) {
	b := broker{brokers: realkafka.Shared(t).Brokers()}
	c, s := b.client(t), newService(t, b)
	b.topics(t, c, takeoverPartitions, s.Input)
	other := s
	other.Dir = t.TempDir()
	l := newLoad(t, c, s.Input)
	l.emit(t, 400)
	stays, dies := spawn(t, other), spawn(t, s)
	stays.awaitReady(t)
	dies.awaitReady(t)
	watch := watchCommits(t, c, s)

	for range 2 {
		// Within its session the process that comes back has its partitions
		// again, whatever the crash left open.
		l.emit(t, 2000)
		at := watch.positions(t)
		dies.kill()
		l.emit(t, 2000)
		dies = spawn(t, s)
		took := watch.allMoved(t, at, 30*time.Second)
		t.Logf("restarted on its own state: every partition committed again after %v", took.Round(time.Millisecond))
	}
	l.emit(t, 2000)
	at := watch.positions(t)
	dies.kill()
	l.emit(t, 2000)
	took := watch.allMoved(t, at, time.Minute)
	t.Logf("taken over by the other process: every partition committed again after %v (session timeout 6 s)", took.Round(time.Millisecond))

	stays.kill()
	fresh := s
	fresh.Dir = t.TempDir()
	at = watch.positions(t)
	l.emit(t, 1000)
	replaced := spawn(t, fresh)
	took = watch.allMoved(t, at, time.Minute)
	t.Logf("all were killed, another one starts on an empty disk: every partition committed again after %v", took.Round(time.Millisecond))
	l.counted(t, c, s.Group)
	replaced.stop(t)
}

// committedWatch reads a group's committed offsets.
type committedWatch struct {
	m     kafka.Member
	parts []kafka.TopicPartition
}

func watchCommits(t *testing.T, c *kafka.Client, s service) *committedWatch {
	t.Helper()
	w := watchGroup(t, c, s.Group)
	for p := range int32(takeoverPartitions) {
		w.parts = append(w.parts, kafka.TopicPartition{Topic: s.Input, Partition: p})
	}
	return w
}

// watchGroup returns a watch of nothing yet.
func watchGroup(t *testing.T, c *kafka.Client, group string) *committedWatch {
	t.Helper()
	m, err := c.Driver().NewMember(kafka.MemberConfig{ // never joins
		Group: group, Protocol: "none",
		Subscribe: func() kafka.Subscription { return kafka.Subscription{} },
		Plan:      func(context.Context, []kafka.GroupMember) (map[string]kafka.Share, error) { return nil, nil },
		Assigned:  func(kafka.Assignment) {},
		Lost:      func(error) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return &committedWatch{m: m}
}

func (w *committedWatch) positions(t *testing.T) []int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	offsets, err := w.m.Committed(ctx, w.parts, false)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]int64, len(offsets))
	for i, o := range offsets {
		out[i] = o.Offset
	}
	return out
}

// allMoved waits until every partition has committed something newer, and
// returns how long that took.
func (w *committedWatch) allMoved(t *testing.T, than []int64, within time.Duration) time.Duration {
	t.Helper()
	begun := time.Now()
	for {
		now, moved := w.positions(t), true
		for i := range now {
			moved = moved && now[i] > than[i]
		}
		if moved {
			return time.Since(begun)
		}
		if time.Since(begun) > within {
			t.Fatalf("committed %v, were %v %v ago", now, than, within)
		}
	}
}
