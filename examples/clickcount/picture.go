package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// picture is what the screen shows at one moment.
type picture struct {
	elapsed    time.Duration
	url        string // of the API
	clicked    int64
	counted    int64
	rate       float64 // clicks counted a second
	processor  string
	view       string
	partitions []partitionPicture
	top        []rank
	events     []string
}

type partitionPicture struct {
	state string
	rate  float64 // clicks counted a second
	lag   int64   // clicks not counted yet
}

// lines draws the picture for a terminal, at most height lines: the ranking
// gives way first.
func (p picture) lines(width, height int) []string {
	lines := []string{
		bold("Reka: clicks of users, counted") + dim(fmt.Sprintf("   %.1f s", p.elapsed.Seconds())),
		dim(p.links()),
		"",
		fmt.Sprintf("%s clicks/s   %s clicked   %s counted", number(int64(p.rate)), number(p.clicked), number(p.counted)),
		"processor " + coloured(p.processor) + "   view " + coloured(p.view),
		"",
		dim("partition  state       clicks/s       lag"),
	}
	lines = append(lines, p.partitionLines(width)...)
	events := []string{""}
	for _, e := range p.events {
		events = append(events, colouredEvent(e))
	}
	room := height - len(lines) - len(events) - 2
	if n := min(room, len(p.top)); n > 0 {
		lines = append(lines, "", dim("top users"))
		lines = append(lines, p.topLines(width, n-1)...)
	}
	return append(lines, events...)
}

func (p picture) links() string {
	if p.url == "" {
		return ""
	}
	return p.url + "/top   " + p.url + "/users/ada"
}

func (p picture) partitionLines(width int) []string {
	var lines []string
	most := int64(1_000)
	for _, x := range p.partitions {
		most = max(most, x.lag)
	}
	for i, x := range p.partitions {
		lines = append(lines, fmt.Sprintf("%9d  %s %9s %9s  %s", i, coloured(fmt.Sprintf("%-10s", x.state)),
			number(int64(x.rate)), number(x.lag), red(bar(float64(x.lag)/float64(most), width-46))))
	}
	return lines
}

func (p picture) topLines(width, n int) []string {
	var lines []string
	for _, x := range p.top[:max(0, min(n, len(p.top)))] {
		share := float64(x.Clicks) / float64(max(1, p.top[0].Clicks))
		lines = append(lines, fmt.Sprintf("%-14s %9s  %s", x.User, number(x.Clicks), cyan(bar(share, width-28))))
	}
	return lines
}

// line tells the picture in one line, for output that is not a terminal.
func (p picture) line() string {
	var lag int64
	states := make([]string, len(p.partitions))
	for i, x := range p.partitions {
		lag += x.lag
		states[i] = fmt.Sprintf("%d:%s", i, x.state)
	}
	top := make([]string, 0, 3)
	for _, x := range p.top[:min(3, len(p.top))] {
		top = append(top, fmt.Sprintf("%s %d", x.User, x.Clicks))
	}
	return fmt.Sprintf("%5.1f s  clicked %d, counted %d (%.0f/s), lag %d; %s; top: %s", p.elapsed.Seconds(),
		p.clicked, p.counted, p.rate, lag, strings.Join(states, " "), strings.Join(top, ", "))
}

// number writes n with separators.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// bar is a bar of up to width cells, in steps of an eighth.
func bar(share float64, width int) string {
	eighths := int(max(0, min(1, share)) * float64(max(0, width)) * 8)
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return s
}
