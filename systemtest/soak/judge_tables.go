package soak

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// fold decodes the rows that a table topic folds to.
func (j *judging) fold(topic string) map[string]row {
	out := map[string]row{}
	for key, text := range j.h.Seen.Folds[topic] {
		var r row
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			j.addf(kindRecord, "%s: row of %s: %v", topic, key, err)
			continue
		}
		out[key] = r
	}
	return out
}

// tables compares all copies of each table with the fold of its topic.
func (j *judging) tables() {
	for _, t := range j.h.Tables {
		want := j.fold(t.Topic)
		owners := map[int32][]string{}
		visited := map[string]row{}
		for _, c := range t.Claims {
			owners[c.Partition] = append(owners[c.Partition], c.Process)
			maps.Copy(visited, c.Visited)
			j.same(where{t.Topic, "the store of " + c.Process}, c.Stored, c.Visited)
		}
		for p := range int32(partitions) {
			if n := len(owners[p]); n != 1 {
				j.addf(kindOwner, "partition %d of %s has %d owners: %s", p, t.Group, n, strings.Join(owners[p], ", "))
			}
		}
		j.same(where{t.Topic, "all owners together"}, visited, want)
	}
	for process, rows := range j.h.Views {
		j.same(where{tallyTable.Name(), "the view of " + process}, rows, j.fold(tallyTable.Name()))
	}
}

// where names a copy of a table.
type where struct{ topic, copy string }

func (j *judging) same(w where, got, want map[string]row) {
	keys := map[string]bool{}
	for k := range got {
		keys[k] = true
	}
	for k := range want {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		g, has := got[k]
		v, must := want[k]
		if has != must || g != v {
			j.addf(kindTable, "%s: %s has %+v (%t) for %s, want %+v (%t)", w.topic, w.copy, g, has, k, v, must)
		}
	}
}
