package main

import (
	"cmp"
	"slices"

	"github.com/rekastream/reka/view"
)

// rank is one line of the ranking.
type rank struct {
	User   string `json:"user"`
	Clicks int64  `json:"clicks"`
}

// ranking reads the counts from a view.
type ranking struct{ view *view.View[Row] }

// of returns a user's clicks, and whether there are any.
func (r ranking) of(user string) (int64, bool, error) {
	row, ok, err := r.view.Get(user)
	return row.Clicks, ok, err
}

// top returns the n users with the most clicks.
func (r ranking) top(n int) ([]rank, error) {
	var all []rank
	for row, err := range r.view.All() {
		if err != nil {
			return nil, err
		}
		all = append(all, rank{row.Key, row.Value.Clicks})
	}
	slices.SortFunc(all, func(a, b rank) int {
		return cmp.Or(cmp.Compare(b.Clicks, a.Clicks), cmp.Compare(a.User, b.User))
	})
	return all[:min(n, len(all))], nil
}

// counts returns the clicks of all users.
func (r ranking) counts() (map[string]int64, error) {
	all := map[string]int64{}
	for row, err := range r.view.All() {
		if err != nil {
			return nil, err
		}
		all[row.Key] = row.Value.Clicks
	}
	return all, nil
}
