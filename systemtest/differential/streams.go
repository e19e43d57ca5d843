package differential

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rekastream/reka/systemtest/realkafka"
)

// Streams runs cases through Kafka Streams, all in one Java process. It may be
// used by several goroutines; cases run one after the other.
type Streams struct {
	mu  sync.Mutex
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	log bytes.Buffer
}

var _ Runner = (*Streams)(nil)

// Start starts the process, which ends with the test. Without Java or Maven it
// skips the test, and fails it in CI.
func Start(tb testing.TB) *Streams {
	tb.Helper()
	path, err := classPath()
	switch {
	case err == nil:
	case errors.Is(err, realkafka.ErrUnavailable) && os.Getenv("CI") != "true":
		tb.Skip(err)
	default:
		tb.Fatal(err)
	}
	s := &Streams{}
	// It ends by itself when its input does, also if this process dies.
	s.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", //nolint:gosec // the Java of the machine
		"-cp", path, "Differential", stateDir(tb))
	s.cmd.Stderr = &s.log
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	s.out = bufio.NewScanner(out)
	s.out.Buffer(nil, 1<<20)
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.in.Close()
		if err := s.cmd.Wait(); err != nil {
			tb.Errorf("java: %v\n%s", err, s.log.Bytes())
		}
	})
	return s
}

// stateDir returns a directory for RocksDB, in memory where the system has one
// for that: a versioned table waits for its disk at every case.
func stateDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "differential-*") //nolint:usetesting // not the directory of temporary files
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // a leftover harms nobody
	return dir
}

// Run gives Kafka Streams the case as it is. Compare wants the results of
// Disguised cases.
func (s *Streams) Run(c Case) ([]Output, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	fmt.Fprintln(&text, c.Topology)
	for _, in := range c.Inputs {
		fmt.Fprintf(&text, "%s\t%s\t%s\t%d\n", in.Topic, in.Key, in.Value, in.Time)
	}
	text.WriteByte('\n')
	if _, err := io.WriteString(s.in, text.String()); err != nil {
		return nil, fmt.Errorf("send to java: %w\n%s", err, s.log.Bytes())
	}
	var out []Output
	for s.out.Scan() {
		f := strings.Split(s.out.Text(), "\t")
		switch {
		case f[0] == "end":
			return out, nil
		case f[0] == "error":
			return nil, fmt.Errorf("Kafka Streams: %s: %s", c.Topology, s.out.Text()) //nolint:staticcheck // a name
		case len(f) != 4:
			return nil, fmt.Errorf("java printed %q", s.out.Text())
		}
		step, err := strconv.Atoi(f[0])
		if err != nil {
			return nil, err
		}
		at, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, Output{step, f[1], f[2], at})
	}
	return nil, fmt.Errorf("java ended: %w\n%s", errors.Join(io.ErrUnexpectedEOF, s.out.Err()), s.log.Bytes())
}
