package main

import (
	"bufio"
	"os/exec"
	"strings"
)

// lines reads the output of a command that runs.
type lines struct {
	scanner *bufio.Scanner
	read    []string
}

func newLines(cmd *exec.Cmd) (*lines, error) {
	cmd.Stdout, cmd.Stderr = nil, nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &lines{scanner: bufio.NewScanner(out)}, cmd.Start()
}

// until reads up to a line that contains s.
func (l *lines) until(s string) bool {
	for l.scanner.Scan() {
		l.read = append(l.read, l.scanner.Text())
		if strings.Contains(l.scanner.Text(), s) {
			return true
		}
	}
	return false
}

// rest reads to the end.
func (l *lines) rest() { l.until("\x00") }

func (l *lines) seen() string { return strings.Join(l.read, "\n") }
