package tester

import "strings"

// diffContext is how many equal lines stand around those that differ.
const diffContext = 2

// diffCells bounds the table of the comparison. Texts that differ in more are
// shown as all of one, then all of the other.
const diffCells = 4 << 20

// lineDiff returns what differs between two texts, empty if nothing does. What
// both have is a longest common subsequence of their lines.
func lineDiff(want, got []string) string {
	head := 0
	for head < len(want) && head < len(got) && want[head] == got[head] {
		head++
	}
	if head == len(want) && head == len(got) {
		return ""
	}
	tail := 0
	for tail < len(want)-head && tail < len(got)-head && want[len(want)-1-tail] == got[len(got)-1-tail] {
		tail++
	}
	var lines []string
	add := func(mark string, from []string) {
		for _, l := range from {
			lines = append(lines, mark+l)
		}
	}
	add("  ", want[:head])
	lines = append(lines, middle(want[head:len(want)-tail], got[head:len(got)-tail])...)
	add("  ", want[len(want)-tail:])
	return hunks(lines)
}

// middle are the lines between the common start and the common end.
func middle(want, got []string) (lines []string) {
	n, m := len(want), len(got)
	common := func(int, int) int { return 0 }
	if (n+1)*(m+1) <= diffCells {
		t := make([]int, (n+1)*(m+1)) // lengths for what is left of both
		for i := n - 1; i >= 0; i-- {
			for j := m - 1; j >= 0; j-- {
				if want[i] == got[j] {
					t[i*(m+1)+j] = t[(i+1)*(m+1)+j+1] + 1
				} else {
					t[i*(m+1)+j] = max(t[(i+1)*(m+1)+j], t[i*(m+1)+j+1])
				}
			}
		}
		common = func(i, j int) int { return t[i*(m+1)+j] }
	}
	i, j := 0, 0
	for i < n || j < m {
		switch {
		case i < n && j < m && want[i] == got[j] && common(i, j) > 0:
			lines = append(lines, "  "+want[i])
			i, j = i+1, j+1
		case i < n && (j == m || common(i+1, j) >= common(i, j+1)):
			lines = append(lines, "- "+want[i])
			i++
		default:
			lines = append(lines, "+ "+got[j])
			j++
		}
	}
	return lines
}

// hunks leaves out equal lines that are far from those that differ.
func hunks(lines []string) string {
	show := make([]bool, len(lines))
	for i, l := range lines {
		if strings.HasPrefix(l, "  ") {
			continue
		}
		for k := max(0, i-diffContext); k <= min(len(lines)-1, i+diffContext); k++ {
			show[k] = true
		}
	}
	var b strings.Builder
	for i, l := range lines {
		if show[i] {
			b.WriteString(l + "\n")
		} else if i > 0 && show[i-1] || i == 0 {
			b.WriteString("  ...\n")
		}
	}
	return b.String()
}
