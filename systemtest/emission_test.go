package systemtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
)

// emission is what another kind of child process does: it emits n numbered
// records without waiting for any, closes the emitter and exits at once.
type emission struct {
	Brokers, Topic string
	N              int
}

const emissionEnv = "REKA_SYSTEMTEST_EMISSION"

// emissionFromEnv returns what this process shall emit, if anything.
func emissionFromEnv() (emission, bool) {
	var e emission
	_, err := fmt.Sscan(os.Getenv(emissionEnv), &e.Brokers, &e.Topic, &e.N)
	return e, err == nil
}

func (e emission) run() error {
	c, err := kafka.NewClient(strings.Split(e.Brokers, ","))
	if err != nil {
		return err
	}
	out, err := emitter.New(c, reka.NewStream(e.Topic, codec.Int64Text()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range e.N {
		if _, err := out.Emit(ctx, fmt.Sprint("k", i), int64(i)); err != nil {
			return err
		}
	}
	return out.Close(ctx) // and no Close of the client
}

func TestEmitterThatWasClosedHasWrittenEverythingBeforeItsProcessExits(t *testing.T) {
	b := onFake(t)
	c := b.client(t)
	topic := unique(t, "events")
	b.topics(t, c, 6, topic)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", emissionEnv, strings.Join(b.brokers, ","), topic, 1000))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if n := len(readAll(ctx, t, c, topic)); n != 1000 {
		t.Errorf("%d records on the topic, want 1000", n)
	}
}
