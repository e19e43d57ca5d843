package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// printTable writes the table, in the form that documents take.
func printTable(w io.Writer, outcomes []outcome) {
	rows := [][]string{{"what", "unit", "raw", "franz-go", "reka", "reka/raw", "target", "", "turns"}}
	for i := range outcomes {
		rows = append(rows, outcomes[i].row())
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	line := func(cells []string) {
		padded := make([]string, len(cells))
		for i, cell := range cells {
			padded[i] = cell + strings.Repeat(" ", widths[i]-len([]rune(cell)))
		}
		_, _ = fmt.Fprintf(w, "| %s |\n", strings.Join(padded, " | ")) // a table that cannot be printed is nobody's
	}
	line(rows[0])
	rule := make([]string, len(widths))
	for i := range widths {
		rule[i] = strings.Repeat("-", widths[i])
	}
	line(rule)
	for _, row := range rows[1:] {
		line(row)
	}
}

func (o *outcome) row() []string {
	cells := []string{o.name, o.unit, "", "", "", "", "", "", strconv.Itoa(len(o.figures[0]))}
	for i, c := range o.contestants {
		at := map[string]int{"raw": 2, "franz-go": 3, "reka": 4}[c.name]
		cells[at] = amount(o.figure(i))
	}
	cells[5] = share(o.ratio(len(o.contestants) - 1))
	cells[6], cells[7] = "≥ "+share(o.target), "reached"
	if o.atMost {
		cells[6] = "≤ " + share(o.target)
	}
	if !o.reached() {
		cells[7] = "MISSED"
	}
	return cells
}

// amount groups the digits of a figure by thousands.
func amount(x float64) string {
	if x < 1000 {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	s := strconv.FormatInt(int64(x), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func share(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + " %" }
