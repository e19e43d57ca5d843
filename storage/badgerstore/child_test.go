package badgerstore

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/storagetest"
)

// Tests that need another process run this test binary again, as a child.
const (
	childJob = "REKA_TEST_CHILD"
	childDir = "REKA_TEST_DIR"
)

func TestMain(m *testing.M) {
	switch os.Getenv(childJob) {
	case "":
		os.Exit(m.Run())
	case "hold":
		childHold(os.Getenv(childDir))
	case "write":
		childWrite(os.Getenv(childDir))
	case "fill":
		childFill(os.Getenv(childDir))
	}
}

// child is a running child process that has said "ready".
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(t *testing.T, job, dir string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childJob+"="+job, childDir+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd, in, bufio.NewReader(out)}
	t.Cleanup(c.kill)
	if line := c.line(t); line != "ready" {
		t.Fatalf("child said %q", line)
	}
	return c
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	s, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("child: %q, %v", s, err)
	}
	return strings.TrimSpace(s)
}

func (c *child) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

// childHold opens a directory and waits to be told to go.
func childHold(dir string) {
	s, err := In(dir).Open()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	s.Close()
}

// mustOpen opens a directory and one table in it.
func mustOpen(t testing.TB, dir string, opts ...Option) (storage.Store, storage.Table) {
	t.Helper()
	s, err := In(dir, opts...).Open()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s, storagetest.Table(t, s, "t", 0)
}

func mustClose(t testing.TB, s storage.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

// copyTree copies a directory as cp -r does. Of an open one that makes what a
// kill at this moment would leave.
func copyTree(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir() + "/copy"
	if out, err := exec.Command("cp", "-r", "--sparse=always", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	return to
}
