package soak

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/rekastream/reka/processor"
)

// good is a history in which everything is as it must be: two keys, ten
// events each, processes a and b.
func good(t *testing.T) *history {
	t.Helper()
	h := &history{
		LastRates: map[string]int64{"x": 2, "y": 4}, Views: map[string]map[string]row{},
		Seen: seen{Folds: map[string]map[string]string{}},
	}
	keys := []string{"x", "y"}
	tally, second := map[string]row{}, map[string]row{}
	for seq := range int64(10) {
		for p, key := range keys {
			h.Emitted++
			e := event{Seq: seq + 1, ID: h.Emitted}
			rate := int64(2*p) + 1 + seq/9
			h.Seen.Inputs = append(h.Seen.Inputs, record[event]{key, e, int32(p), seq})
			h.Seen.Effects = append(h.Seen.Effects, record[effect]{key, effect{e.Seq, e.ID, e.Seq, rate}, int32(p), seq})
			r := tally[key]
			r.count(e)
			tally[key] = r
			if e.Seq%every != 0 {
				continue
			}
			n := event{Seq: e.Seq / every, ID: e.ID}
			h.Seen.Nth = append(h.Seen.Nth, record[event]{key, n, int32(p), n.Seq})
			h.Seen.SecondEffects = append(h.Seen.SecondEffects, record[effect]{key, effect{Seq: n.Seq, ID: n.ID, Count: n.Seq}, int32(p), n.Seq})
			r = second[key]
			r.count(n)
			second[key] = r
		}
	}
	for _, table := range []struct {
		group, topic string
		rows         map[string]row
	}{{tallyGroup, tallyTable.Name(), tally}, {secondGroup, secondTable.Name(), second}} {
		th := tableHistory{Group: table.group, Topic: table.topic}
		for p := range int32(partitions) {
			c := claim{Process: []string{"a", "b"}[p%2], Partition: p, Visited: map[string]row{}}
			if int(p) < len(keys) {
				c.Visited[keys[p]] = table.rows[keys[p]]
			}
			c.Stored = maps.Clone(c.Visited)
			th.Claims = append(th.Claims, c)
		}
		h.Tables = append(h.Tables, th)
		h.Seen.Folds[table.topic] = encode(t, table.rows)
	}
	for _, process := range []string{"a", "b"} {
		h.Views[process] = maps.Clone(tally)
	}
	return h
}

func encode(t *testing.T, rows map[string]row) map[string]string {
	t.Helper()
	out := map[string]string{}
	for k, v := range rows {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out[k] = string(b)
	}
	return out
}

// setRow plants a row into every copy of a table, so that only the events
// contradict it.
func setRow(t *testing.T, h *history, table int, key string, r row) {
	t.Helper()
	th := &h.Tables[table]
	for i := range th.Claims {
		if _, ok := th.Claims[i].Visited[key]; ok {
			th.Claims[i].Visited[key], th.Claims[i].Stored[key] = r, r
		}
	}
	if table == 0 {
		for _, v := range h.Views {
			v[key] = r
		}
	}
	h.Seen.Folds[th.Topic][key] = encode(t, map[string]row{key: r})[key]
}

func tallyOf(h *history, key string) row { return h.Views["a"][key] }

func TestCheckerFindsNothingInAGoodHistory(t *testing.T) {
	for name, g := range guarantees {
		h := good(t)
		h.Guarantee = g
		if found := judge(h); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// Each property is violated once, and must be found as what it is.
func TestCheckerFindsEachPlantedViolation(t *testing.T) {
	remove := func(list *[]record[effect], i int) { *list = slices.Delete(*list, i, i+1) }
	for _, c := range []struct {
		name  string
		plant func(*testing.T, *history)
		want  []string
	}{
		{"an event is not in its topic", func(_ *testing.T, h *history) { h.Emitted++ }, []string{kindLost}},
		{"an event is in its topic twice, and counted so", func(t *testing.T, h *history) {
			h.Seen.Inputs = append(h.Seen.Inputs, h.Seen.Inputs[18])
			r := tallyOf(h, "x")
			r.count(h.Seen.Inputs[18].Value)
			setRow(t, h, 0, "x", r)
		}, []string{kindDoubled, kindOrder}[:1]},
		{"events of a key are out of order", func(_ *testing.T, h *history) {
			in := h.Seen.Inputs
			in[0], in[2] = in[2], in[0]
		}, []string{kindOrder}},
		{"an event that nobody emitted", func(t *testing.T, h *history) {
			h.Emitted--
		}, []string{kindRecord}},
		{"an emission fails", func(_ *testing.T, h *history) { h.EmitErrors = []string{"refused"} }, []string{kindLost}},
		{"an effect is missing", func(_ *testing.T, h *history) { remove(&h.Seen.Effects, 3) }, []string{kindLost}},
		{"an effect is there twice", func(_ *testing.T, h *history) {
			h.Seen.Effects = append(h.Seen.Effects, h.Seen.Effects[5])
		}, []string{kindDoubled}},
		{"effects change places", func(_ *testing.T, h *history) {
			e := h.Seen.Effects
			e[4], e[6] = e[6], e[4]
		}, []string{kindOrder}},
		{"an effect of another key", func(_ *testing.T, h *history) {
			h.Seen.Effects = append(h.Seen.Effects, record[effect]{"y", h.Seen.Effects[0].Value, 0, 99})
		}, []string{kindRecord}},
		{"an effect tells a count too high", func(_ *testing.T, h *history) { h.Seen.Effects[7].Value.Count++ }, []string{kindCount}},
		{"an effect tells a count too low", func(_ *testing.T, h *history) { h.Seen.Effects[7].Value.Count-- }, []string{kindCount}},
		{"a forwarded event is missing", func(t *testing.T, h *history) {
			h.Seen.Nth = slices.Delete(h.Seen.Nth, 0, 1)
			remove(&h.Seen.SecondEffects, 0)
			r := row{}
			r.count(h.Seen.Nth[1].Value)
			setRow(t, h, 1, "x", r)
		}, []string{kindLost}},
		{"a forwarded event is there twice, and counted so", func(t *testing.T, h *history) {
			h.Seen.Nth = append(h.Seen.Nth, h.Seen.Nth[2])
			r := row{2, h.Seen.Nth[0].Value.ID + h.Seen.Nth[2].Value.ID, 2}
			r.count(h.Seen.Nth[2].Value)
			setRow(t, h, 1, "x", r)
		}, []string{kindDoubled}},
		{"an effect of the second group is missing", func(_ *testing.T, h *history) { remove(&h.Seen.SecondEffects, 1) }, []string{kindLost}},
		{"an effect of the second group is there twice", func(_ *testing.T, h *history) {
			h.Seen.SecondEffects = append(h.Seen.SecondEffects, h.Seen.SecondEffects[0])
		}, []string{kindDoubled}},
		{"a row has missed an event", func(t *testing.T, h *history) {
			r := tallyOf(h, "x")
			r.Count--
			setRow(t, h, 0, "x", r)
		}, []string{kindLost}},
		{"a row has counted an event twice", func(t *testing.T, h *history) {
			r := tallyOf(h, "x")
			r.count(h.Seen.Inputs[18].Value)
			setRow(t, h, 0, "x", r)
		}, []string{kindDoubled}},
		{"a row has counted one event for another", func(t *testing.T, h *history) {
			r := tallyOf(h, "x")
			r.Sum++
			setRow(t, h, 0, "x", r)
		}, []string{kindLost, kindDoubled}},
		{"a row of the second group has missed an event", func(t *testing.T, h *history) {
			setRow(t, h, 1, "x", row{1, h.Seen.Nth[0].Value.ID, 1})
		}, []string{kindLost}},
		{"a joined row goes back", func(_ *testing.T, h *history) { h.Seen.Effects[6].Value.Rate = 0 }, []string{kindJoin}},
		{"the last event sees an old row", func(_ *testing.T, h *history) { h.LastRates["y"]++ }, []string{kindJoin}},
		{"the topic lacks a row", func(_ *testing.T, h *history) {
			delete(h.Seen.Folds[secondTable.Name()], "x")
		}, []string{kindLost, kindTable}},
		{"a dropped tombstone leaves a row", func(t *testing.T, h *history) {
			maps.Copy(h.Seen.Folds[tallyTable.Name()], encode(t, map[string]row{"z": {1, 1, 1}}))
		}, []string{kindRecord, kindTable}},
		{"a store lacks a row", func(_ *testing.T, h *history) { delete(h.Tables[0].Claims[0].Stored, "x") }, []string{kindTable}},
		{"a store has an old row", func(_ *testing.T, h *history) { h.Tables[1].Claims[1].Stored["y"] = row{1, 1, 1} }, []string{kindTable}},
		{"an owner sees an old row, and has stored it", func(_ *testing.T, h *history) {
			h.Tables[0].Claims[0].Visited["x"], h.Tables[0].Claims[0].Stored["x"] = row{1, 1, 1}, row{1, 1, 1}
		}, []string{kindTable}},
		{"a view has an old row", func(_ *testing.T, h *history) { h.Views["b"]["y"] = row{1, 1, 1} }, []string{kindTable}},
		{"a view has a row too many", func(_ *testing.T, h *history) { h.Views["b"]["z"] = row{1, 1, 1} }, []string{kindTable}},
		{"a partition has two owners", func(_ *testing.T, h *history) {
			c := h.Tables[0].Claims[0]
			c.Process = "b"
			h.Tables[0].Claims = append(h.Tables[0].Claims, c)
		}, []string{kindOwner}},
		{"a partition has no owner", func(_ *testing.T, h *history) {
			h.Tables[1].Claims = h.Tables[1].Claims[:partitions-1]
		}, []string{kindOwner}},
		{"a committed offset goes back", func(_ *testing.T, h *history) {
			w := &watch{last: map[place]int64{}}
			at := place{tallyGroup, eventsTopic, 0}
			w.see(map[place]int64{at: 5}, testTime)
			w.see(map[place]int64{at: 5}, testTime)
			w.see(map[place]int64{at: 4}, testTime)
			h.Back = w.back
		}, []string{kindOffset}},
		{"a process ends by itself", func(_ *testing.T, h *history) { h.Troubles = []string{"it ended"} }, []string{kindProcess}},
		{"a record that is not the service's", func(_ *testing.T, h *history) { h.Bad = []string{"no JSON"} }, []string{kindRecord}},
		{"something stands still, and so lacks effects", func(_ *testing.T, h *history) {
			h.Stuck = []string{"no progress"}
			remove(&h.Seen.Effects, 19)
		}, []string{kindStuck}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := good(t)
			c.plant(t, h)
			found := judge(h)
			got := kinds(found)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(c.want))
			if !slices.Equal(got, want) {
				t.Errorf("found %v, want %v: %v", got, want, found)
			}
		})
	}
}

func TestAtLeastOnceMayRepeatOutputsAndNothingElse(t *testing.T) {
	repeat := func(h *history) {
		h.Seen.Effects = append(h.Seen.Effects, h.Seen.Effects[16:]...)
		h.Seen.SecondEffects = append(h.Seen.SecondEffects, h.Seen.SecondEffects[2:]...)
	}
	h := good(t)
	h.Guarantee = processor.AtLeastOnce
	repeat(h)
	if found := judge(h); len(found) > 0 {
		t.Errorf("repeats are found: %v", found)
	}
	h.Seen.Effects[19].Value.Count++
	r := tallyOf(h, "y")
	r.Count++
	setRow(t, h, 0, "y", r)
	if got := kinds(judge(h)); !slices.Contains(got, kindCount) || !slices.Contains(got, kindDoubled) {
		t.Errorf("state that is not exact: found %v", got)
	}
}

func TestWithoutTransactionsMayCountAgainAndLosesNothing(t *testing.T) {
	h := good(t)
	h.Guarantee = processor.WithoutTransactions
	h.Seen.Effects[19].Value.Count++
	r := tallyOf(h, "y")
	r.Count++
	setRow(t, h, 0, "y", r)
	if found := judge(h); len(found) > 0 {
		t.Errorf("a record that was counted again is found: %v", found)
	}
	r.Count -= 2
	setRow(t, h, 0, "y", r)
	if got := kinds(judge(h)); !slices.Equal(got, []string{kindLost}) {
		t.Errorf("a lost record: found %v", got)
	}
}
