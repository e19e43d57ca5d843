package systemtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage/badgerstore"
)

// streamsChild is a process that runs the application.
type streamsChild struct {
	streams

	Brokers    []string `json:"brokers"`
	Dir        string   `json:"dir"` // state
	EpochBytes int      `json:"epoch_bytes"`
}

const streamsEnv = "REKA_SYSTEMTEST_STREAMS"

// streamsSessionTimeout is how long the group waits for a member that was killed.
const streamsSessionTimeout = 3 * time.Second

// spawn starts the process.
func (s streamsChild) spawn(t *testing.T) *child {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return spawnIn(t, streamsEnv+"="+string(b))
}

// streamsFromEnv returns the application that this process shall run, if any.
func streamsFromEnv() (s streamsChild, ok bool) {
	return s, json.Unmarshal([]byte(os.Getenv(streamsEnv)), &s) == nil
}

// run is the child's main. It prints "ready" once it serves, and ends with a
// SIGTERM.
func (s streamsChild) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg := zap.NewProductionConfig()
	cfg.Level.SetLevel(zap.ErrorLevel) // it warns of late records
	log, err := cfg.Build()
	if err != nil {
		return err
	}
	c, err := kafka.NewClient(s.Brokers, kafka.WithLogger(log))
	if err != nil {
		return err
	}
	p, err := s.processor(c)
	if err != nil {
		return err
	}
	go func() { // ends with Run or when ready
		if p.WaitReady(ctx) == nil {
			fmt.Println("ready")
		}
	}()
	return errors.Join(p.Run(ctx), c.Close())
}

func (s streamsChild) processor(c *kafka.Client) (*processor.Processor, error) {
	g, err := s.graph()
	if err != nil {
		return nil, err
	}
	return processor.New(c, g, processor.WithStorage(badgerstore.In(s.Dir)),
		processor.WithSessionTimeout(streamsSessionTimeout), processor.WithHeartbeatInterval(streamsSessionTimeout/8),
		processor.WithCommitInterval(20*time.Millisecond),
		processor.WithTuning(processor.Tuning{EpochBytes: s.EpochBytes, FlushAge: 300 * time.Millisecond}))
}
