package soak

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// status of a process.
type status int

const (
	down status = iota
	running
	paused
	stopping
)

func (s status) String() string { return [...]string{"down", "running", "paused", "stopping"}[s] }

// process is one member of the fleet: a state directory and, most of the
// time, a child process over it. Owned by the nemesis's goroutine.
type process struct {
	slot   int
	name   string
	dir    string // state
	log    string
	disk   *disk // of its own, or nil
	status status
	cmd    *exec.Cmd
	member bool // shall run when there is no trouble
	doomed bool // was killed on purpose
	wipe   bool // its state is deleted when it has ended

	filled  bool // its disk is full
	brimful bool // and was filled to the last byte

	since   time.Time // when it was started
	startAt time.Time // when to start it again, once it has ended
}

// ended says how a child ended.
type ended struct {
	p    *process
	cmd  *exec.Cmd
	code int // -1: by a signal
	text string
}

// start starts the child; its end is reported to ends.
func (p *process) start(s service, ends chan<- ended) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	s.Dir, s.Dump = p.dir, p.dumpFile()
	env, err := json.Marshal(s)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "=== start at %s\n", time.Now().Format(time.RFC3339Nano))
	cmd := exec.Command(exe) //nolint:gosec,noctx // it is this program, and ends by signals
	cmd.Env = append(os.Environ(), serviceEnv+"="+string(env), "GOTRACEBACK=all")
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.status, p.since = cmd, running, time.Now()
	go func() { // ends with the child; the nemesis's loop reads its report
		err := cmd.Wait()
		text := "ok"
		if err != nil {
			text = err.Error()
		}
		ends <- ended{p, cmd, cmd.ProcessState.ExitCode(), text}
	}()
	return nil
}

func (p *process) dumpFile() string { return filepath.Join(filepath.Dir(p.log), p.name+".dump") }

func (p *process) signal(sig syscall.Signal) error {
	if p.cmd == nil {
		return fmt.Errorf("%s is down", p.name)
	}
	return p.cmd.Process.Signal(sig)
}

// readDump returns what the process wrote after a SIGUSR1, once.
func (p *process) readDump() (d dump, there bool, err error) {
	b, err := os.ReadFile(p.dumpFile())
	if os.IsNotExist(err) {
		return d, false, nil
	}
	if err != nil {
		return d, false, err
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, false, err
	}
	return d, true, os.Remove(p.dumpFile())
}
