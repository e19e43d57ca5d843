package realkafka

import (
	"errors"
	"os"
	"sync"
	"testing"
)

var shared struct {
	once    sync.Once
	mu      sync.Mutex
	cluster *Cluster
	dir     string
	err     error
}

// Shared returns the node that all tests of the binary share, starting it at
// the first call. The binary's TestMain calls StopShared at the end.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	Need(tb)
	shared.once.Do(func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		//nolint:usetesting // it outlives the test that came first
		if shared.dir, shared.err = os.MkdirTemp("", "reka-kafka-*"); shared.err == nil {
			shared.cluster, shared.err = start(shared.dir, Config{})
		}
	})
	if shared.err != nil {
		tb.Fatalf("start the shared Kafka node: %v", shared.err)
	}
	return shared.cluster
}

// StopShared stops the shared node, if it was started, and removes its data.
func StopShared() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster != nil {
		shared.cluster.Close()
		shared.cluster = nil
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir) // a leftover in the temporary directory harms nobody
	}
}

// Need skips the test where real Kafka is not available, and fails it there
// in CI.
func Need(tb testing.TB) {
	tb.Helper()
	_, err := jars()
	switch {
	case err == nil:
	case errors.Is(err, ErrUnavailable) && os.Getenv("CI") != "true":
		tb.Skip(err)
	default:
		tb.Fatal(err)
	}
}

// Start starts a cluster of the test's own, which ends with the test.
func Start(tb testing.TB, cfg Config) *Cluster {
	tb.Helper()
	Need(tb)
	c, err := start(tb.TempDir(), cfg)
	if err != nil {
		tb.Fatalf("start Kafka: %v", err)
	}
	tb.Cleanup(c.Close)
	return c
}
