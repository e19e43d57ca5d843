package kafkatest

import (
	"testing"
	"time"
)

// eventually waits until cond holds. It is asked again whenever signal fires
// (which may be nil) and now and then besides.
func eventually(t *testing.T, what string, signal <-chan struct{}, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-signal:
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// notify wakes a waiter of eventually. c has capacity 1.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
