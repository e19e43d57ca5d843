package systemtest

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage/badgerstore"
)

// tally is a row of the service's table: how many events a key had, and the
// offset of the last one. An event that counted twice would show.
type tally struct{ Count, Last int64 }

type tallyCodec struct{}

func (tallyCodec) Append(dst []byte, v tally) ([]byte, error) {
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.Count))
	return binary.BigEndian.AppendUint64(dst, uint64(v.Last)), nil
}

func (tallyCodec) Decode(b []byte) (tally, error) {
	if len(b) != 16 {
		return tally{}, fmt.Errorf("tally of %d bytes, want 16", len(b))
	}
	return tally{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}, nil
}

// service is what a child process runs: it counts the events of a topic per
// key.
type service struct {
	Brokers, Input, Group, Dir string
	Membership                 string // static if empty, else "kept" or "dynamic"
}

func (s service) processor(c *kafka.Client, opts ...processor.Option) (*processor.Processor, error) {
	rows := processor.Persist(reka.GroupTable(s.Group, codec.Codec[tally](tallyCodec{})))
	g, err := processor.NewGraph(s.Group, rows,
		processor.Input(reka.NewStream(s.Input, codec.Bytes()), func(ctx *processor.Context, _ []byte) error {
			v, _ := rows.Get(ctx)
			rows.Set(ctx, tally{v.Count + 1, ctx.Offset()})
			return nil
		}))
	if err != nil {
		return nil, err
	}
	return processor.New(c, g, append([]processor.Option{processor.WithStorage(badgerstore.In(s.Dir))}, opts...)...)
}

// run is the child's main. It prints "ready" once it serves, and ends with a
// SIGTERM.
func (s service) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := kafka.NewClient(strings.Split(s.Brokers, ","))
	if err != nil {
		return err
	}
	opts := []processor.Option{processor.WithSessionTimeout(6 * time.Second), processor.WithTuning(processor.Tuning{FlushAge: time.Second})}
	switch s.Membership {
	case "kept":
		opts = append(opts, processor.WithKeptMembership())
	case "dynamic":
		opts = append(opts, processor.WithDynamicMembership())
	}
	p, err := s.processor(c, opts...)
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

const serviceEnv = "REKA_SYSTEMTEST_SERVICE"

// serviceFromEnv returns the service that this process shall run, if any.
func serviceFromEnv() (service, bool) {
	f := strings.Split(os.Getenv(serviceEnv), "|")
	if len(f) != 5 {
		return service{}, false
	}
	return service{f[0], f[1], f[2], f[3], f[4]}, true
}

// child is a running service process.
type child struct {
	cmd   *exec.Cmd
	ready chan struct{} // closed when it has printed "ready"
	out   chan struct{} // closed when its output has ended
}

// spawn starts a service in a process of its own.
func spawn(t *testing.T, s service) *child {
	t.Helper()
	return spawnIn(t, serviceEnv+"="+strings.Join([]string{s.Brokers, s.Input, s.Group, s.Dir, s.Membership}, "|"))
}

// spawnIn starts this program again, as the child that env describes.
func spawnIn(t *testing.T, env string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, ready: make(chan struct{}), out: make(chan struct{})}
	go func() { // ends with the child's output; kill and stop wait
		defer close(c.out)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "ready" {
				close(c.ready)
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() { c.kill() })
	return c
}

// kill ends the child at once, as kill -9 does.
func (c *child) kill() {
	_ = c.cmd.Process.Signal(syscall.SIGKILL)
	<-c.out
	_ = c.cmd.Wait() // killed: always an error
}

// stop ends the child cleanly.
func (c *child) stop(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-c.out
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("service ended with %v", err)
	}
}

func (c *child) awaitReady(t *testing.T) {
	t.Helper()
	select {
	case <-c.ready:
	case <-c.out:
		t.Fatal("service ended before it was ready")
	case <-time.After(time.Minute):
		t.Fatal("service is not ready after a minute")
	}
}
