package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// child is the counter process, as its parent sees it.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed when the process is gone and its output read
	err   error         // how it ended; read after ended

	mu   sync.Mutex
	last report
}

// startChild starts this very program once more, as the counter. What the
// process logs goes to say, line by line.
func startChild(cfg counterConfig, say func(string)) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	//nolint:gosec,noctx // it is this very program; kill and stop end it
	c := &child{cmd: exec.Command(self, counterRole, string(arg)), ended: make(chan struct{})}
	stdin, err1 := c.cmd.StdinPipe()
	stdout, err2 := c.cmd.StdoutPipe()
	stderr, err3 := c.cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3, c.cmd.Start()); err != nil {
		return nil, fmt.Errorf("start the processor: %w", err)
	}
	c.stdin = stdin
	var output sync.WaitGroup
	output.Go(func() { c.readReports(stdout) })
	output.Go(func() { eachLine(stderr, say) })
	go func() { // ends with the process; kill and stop wait for it
		output.Wait()
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

func (c *child) readReports(r io.Reader) {
	for lines := json.NewDecoder(r); ; {
		var next report
		if lines.Decode(&next) != nil {
			return
		}
		c.mu.Lock()
		c.last = next
		c.mu.Unlock()
	}
}

func eachLine(r io.Reader, f func(string)) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f(lines.Text())
	}
}

// report returns the last one that came.
func (c *child) report() report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// kill ends the process with SIGKILL and waits.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // fails only if it has ended
	<-c.ended
}

// stop asks the process to end, and kills it if it takes too long.
func (c *child) stop(patience time.Duration) error {
	_ = c.stdin.Close() // fails only if it has ended
	select {
	case <-c.ended:
	case <-time.After(patience):
		c.kill()
		return errors.New("the processor did not end in time and was killed")
	}
	return c.err
}
