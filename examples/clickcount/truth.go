package main

import (
	"fmt"
	"slices"
)

// truth is how often each user has clicked, as counted by the one who clicks.
type truth map[string]int64

func (t truth) total() (n int64) {
	for _, c := range t {
		n += c
	}
	return n
}

// compare says where counts differ from the truth, at most a few of them,
// and how many do.
func (t truth) compare(counts map[string]int64) (wrong int, examples []string) {
	for _, user := range sortedUsers(t, counts) {
		if t[user] == counts[user] {
			continue
		}
		if wrong++; wrong <= 3 {
			examples = append(examples, fmt.Sprintf("%s: %d counted, %d clicked", user, counts[user], t[user]))
		}
	}
	return wrong, examples
}

func sortedUsers(maps ...map[string]int64) []string {
	var all []string
	for _, m := range maps {
		for user := range m {
			all = append(all, user)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
