package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// screen is where pictures are shown. It is used by one goroutine.
type screen interface {
	// show shows a picture; it decides itself how often something is drawn.
	show(func() picture)
	// close shows the last picture and leaves the output tidy.
	close(func() picture)
	// every is how often show is worth a call.
	every() time.Duration
}

// newScreen draws on a terminal, and writes plain lines to anything else.
func newScreen(out *os.File, f *feed) screen {
	fd := int(out.Fd())
	if term.IsTerminal(fd) && os.Getenv("TERM") != "dumb" {
		return &painted{out: out, feed: f, size: func() (int, int) {
			width, height, err := term.GetSize(fd)
			if err != nil || width < 20 {
				return 80, 24
			}
			return width, height
		}}
	}
	return &plain{out: out, feed: f}
}

// painted draws over its last picture.
type painted struct {
	out  *os.File
	feed *feed
	size func() (width, height int)
	rows int // of the last picture
}

const shownEvents = 6

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearRight = "\x1b[K"
	clearBelow = "\x1b[J"
)

func (s *painted) every() time.Duration { return 150 * time.Millisecond }

func (s *painted) show(shot func() picture) { s.draw(shot(), hideCursor, "") }

func (s *painted) close(shot func() picture) { s.draw(shot(), "", showCursor) }

// draw writes everything at once, so that nothing flickers.
func (s *painted) draw(p picture, before, after string) {
	width, height := s.size()
	p.events = s.feed.last(shownEvents)
	lines := p.lines(width, height-1)
	var b strings.Builder
	b.WriteString(before)
	if s.rows > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA", s.rows)
	}
	lines = lines[:min(len(lines), height-1)]
	for _, line := range lines {
		b.WriteString(clip(line, width) + clearRight + "\n")
	}
	b.WriteString(clearBelow + after)
	s.rows = len(lines)
	_, _ = s.out.WriteString(b.String()) // nothing can be done about a broken terminal
}

// plain writes events as they come and a line a second.
type plain struct {
	out  *os.File
	feed *feed
	next time.Time
}

func (s *plain) every() time.Duration { return 100 * time.Millisecond }

func (s *plain) show(shot func() picture) {
	s.events()
	if now := time.Now(); !now.Before(s.next) {
		s.next = now.Truncate(time.Second).Add(time.Second)
		fmt.Fprintln(s.out, shot().line())
	}
}

func (s *plain) close(func() picture) { s.events() }

func (s *plain) events() {
	for _, e := range s.feed.take() {
		fmt.Fprintln(s.out, e)
	}
}
