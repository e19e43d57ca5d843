package main

import (
	"testing"
)

func TestCompareFindsWhatIsMissingWrongOrTooMuch(t *testing.T) {
	all := truth{"ada": 3, "bob": 2, "eve": 1, "zoe": 5}
	if all.total() != 11 {
		t.Errorf("total %d", all.total())
	}
	if wrong, _ := all.compare(map[string]int64{"ada": 3, "bob": 2, "eve": 1, "zoe": 5}); wrong != 0 {
		t.Errorf("%d differ from themselves", wrong)
	}
	wrong, examples := all.compare(map[string]int64{"ada": 4, "bob": 2, "mallory": 1, "zoe": 4})
	if wrong != 4 || len(examples) != 3 || examples[0] != "ada: 4 counted, 3 clicked" {
		t.Errorf("%d differ: %q", wrong, examples)
	}
}

func TestUsersHaveDistinctNames(t *testing.T) {
	seen := map[string]bool{}
	for i := range userCount {
		seen[userName(i)] = true
	}
	if len(seen) != userCount {
		t.Errorf("%d names for %d users", len(seen), userCount)
	}
	u := newUsers()
	for range 10_000 {
		if name := u.next(); !seen[name] {
			t.Fatalf("unknown user %q", name)
		}
	}
}
