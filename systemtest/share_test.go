package systemtest

import (
	"testing"
	"time"

	"github.com/rekastream/reka/processor"
)

// partitions is how many partitions a processor has, all of them running.
func partitions(r *running) int {
	if !r.p.Ready() {
		return -1
	}
	return len(r.p.Stats().Partitions)
}

func TestTwoThreeThenOneProcessorShareSixPartitionsWhileRecordsFlow(t *testing.T) {
	onBoth(t, false, func(t *testing.T, b broker) {
		c, s := b.client(t), newService(t, b)
		b.topics(t, c, 6, s.Input)
		l := newLoad(t, c, s.Input)
		start := func() *running {
			own := s
			own.Dir = t.TempDir()
			return own.start(t, b.client(t), processor.WithHeartbeatInterval(200*time.Millisecond), processor.WithSessionTimeout(6*time.Second))
		}
		shares := func(rs ...*running) {
			t.Helper()
			until(t, func() bool {
				l.emit(t, 20)
				for _, r := range rs {
					if partitions(r) != 6/len(rs) {
						return false
					}
				}
				return true
			}, func() string { return "the partitions are not shared evenly" })
			l.emit(t, 500)
		}
		one := start()
		shares(one)
		two := start()
		shares(one, two)
		three := start()
		shares(one, two, three)
		two.stop(t)
		one.stop(t)
		shares(three)
		l.counted(t, c, s.Group)
		three.stop(t)
	})
}

func TestBrokersAwayAndBackNothingIsLost(t *testing.T) {
	onBoth(t, true, func(t *testing.T, b broker) {
		c, s := b.client(t), newService(t, b)
		b.topics(t, c, 3, s.Input)
		l := newLoad(t, c, s.Input)
		r := s.start(t, c, processor.WithSessionTimeout(6*time.Second))
		l.emit(t, 500)
		l.counted(t, c, s.Group)
		for range 2 {
			b.outage(t, func() { moment(t, 3*time.Second) })
			l.emit(t, 500)
			l.counted(t, c, s.Group)
		}
		r.stop(t)
	})
}

func TestProcessorStartedWithoutBrokersWaitsForThem(t *testing.T) {
	onBoth(t, true, func(t *testing.T, b broker) {
		c, s := b.client(t), newService(t, b)
		b.topics(t, c, 3, s.Input)
		l := newLoad(t, c, s.Input)
		l.emit(t, 100)
		var r *running
		started := make(chan struct{})
		b.outage(t, func() {
			go func() { // ends when the processor is ready; waited for below
				defer close(started)
				r = s.start(t, b.client(t))
			}()
			select {
			case <-started:
				t.Error("ready without brokers")
			case <-time.After(2 * time.Second):
			}
		})
		<-started
		l.counted(t, c, s.Group)
		r.stop(t)
	})
}
