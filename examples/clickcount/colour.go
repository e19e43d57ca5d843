package main

import "strings"

// Colours and weights of a terminal (ANSI escape codes).
const reset = "\x1b[0m"

func bold(s string) string   { return "\x1b[1m" + s + reset }
func dim(s string) string    { return "\x1b[2m" + s + reset }
func red(s string) string    { return "\x1b[31m" + s + reset }
func green(s string) string  { return "\x1b[32m" + s + reset }
func yellow(s string) string { return "\x1b[33m" + s + reset }
func cyan(s string) string   { return "\x1b[36m" + s + reset }

// coloured paints a state: green works, red is gone, yellow is on its way.
func coloured(state string) string {
	switch word, _, _ := strings.Cut(strings.TrimSpace(state), " "); strings.TrimRight(word, ",") {
	case "running", "serving", "ready":
		return green(state)
	case "down", "killed", "stopped":
		return red(state)
	default:
		return yellow(state)
	}
}

// colouredEvent paints what an event is about.
func colouredEvent(e string) string {
	switch {
	case strings.Contains(e, "EQUAL"):
		return bold(green(e))
	case strings.Contains(e, "SIGKILL"):
		return red(e)
	default:
		return e
	}
}

// clip cuts a line to width cells, not counting escape codes.
func clip(line string, width int) string {
	var b strings.Builder
	cells, escape := 0, false
	for _, r := range line {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape = true
		case cells == width:
			continue
		default:
			cells++
		}
		b.WriteRune(r)
	}
	return b.String()
}
