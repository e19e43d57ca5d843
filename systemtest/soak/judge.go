package soak

import (
	"fmt"
	"slices"

	"github.com/rekastream/reka/processor"
)

// judge finds what a history must not have.
func judge(h *history) []violation {
	j := &judging{h: h, once: h.Guarantee == processor.ExactlyOnce, exact: h.Guarantee != processor.WithoutTransactions}
	j.all(kindOffset, h.Back)
	j.all(kindProcess, h.Troubles)
	j.all(kindRecord, h.Bad)
	j.all(kindStuck, h.Stuck)
	j.all(kindLost, h.EmitErrors)
	j.emitted()

	var forwarded []record[event]
	for _, in := range h.Seen.Inputs {
		if in.Value.Seq%every == 0 {
			in.Value.Seq /= every
			forwarded = append(forwarded, in)
		}
	}
	j.outputs(flow{effectsTopic, h.Seen.Inputs, h.Seen.Effects, j.once})
	j.outputs(flow{nthTopic, forwarded, asEffects(h.Seen.Nth), j.once})
	j.outputs(flow{secondTopic, forwarded, h.Seen.SecondEffects, j.once})
	j.counts(effectsTopic, h.Seen.Effects, true)
	j.counts(secondTopic, h.Seen.SecondEffects, j.once) // it counts the repeats that it is given
	j.join()
	if len(h.Stuck) == 0 {
		j.state(tallyTable.Name(), h.Seen.Inputs)
		j.state(secondTable.Name(), h.Seen.Nth)
		j.tables()
	}
	return j.found
}

type judging struct {
	h     *history
	once  bool // outputs are there once
	exact bool // state is exact
	found []violation
}

func (j *judging) addf(kind, format string, a ...any) {
	if kind == kindLost && len(j.h.Stuck) > 0 {
		return // it is not there yet
	}
	j.found = append(j.found, violation{kind, fmt.Sprintf(format, a...)})
}

func (j *judging) all(kind string, texts []string) {
	for _, t := range texts {
		j.addf(kind, "%s", t)
	}
}

// emitted compares the events' topic with what was emitted.
func (j *judging) emitted() {
	have := make(map[int64]int, len(j.h.Seen.Inputs))
	for _, in := range j.h.Seen.Inputs {
		have[in.Value.ID]++
		if in.Value.ID < 1 || in.Value.ID > j.h.Emitted {
			j.addf(kindRecord, "event %d of %s was never emitted", in.Value.ID, in.Key)
		}
	}
	for id := range j.h.Emitted {
		switch n := have[id+1]; {
		case n == 0:
			j.addf(kindLost, "event %d was acknowledged and is not in its topic", id+1)
		case n > 1:
			j.addf(kindDoubled, "event %d is in its topic %d times", id+1, n)
		}
	}
	last := map[string]int64{}
	for _, in := range j.h.Seen.Inputs {
		if in.Value.Seq < last[in.Key] {
			j.addf(kindOrder, "event %d of %s is in its topic after %d", in.Value.Seq, in.Key, last[in.Key])
		}
		last[in.Key] = max(last[in.Key], in.Value.Seq)
	}
}

// flow is a topic of outputs, one of them for each input.
type flow struct {
	topic string
	ins   []record[event]
	outs  []record[effect]
	once  bool
}

func asEffects(in []record[event]) []record[effect] {
	out := make([]record[effect], len(in))
	for i, r := range in {
		out[i] = record[effect]{r.Key, effect{Seq: r.Value.Seq, ID: r.Value.ID}, r.Partition, r.Offset}
	}
	return out
}

// outputs compares a topic of outputs with the inputs that they stem from.
// What was not seen before must come in the order of its key.
func (j *judging) outputs(f flow) {
	want := make(map[int64]record[event], len(f.ins))
	for _, in := range f.ins {
		want[in.Value.ID] = in
	}
	have := make(map[int64]int, len(f.outs))
	last := map[string]int64{}
	for _, out := range f.outs {
		in, ok := want[out.Value.ID]
		if !ok || in.Key != out.Key || in.Value.Seq != out.Value.Seq {
			j.addf(kindRecord, "%s/%d@%d: number %d of %s stems from no event", f.topic, out.Partition, out.Offset, out.Value.Seq, out.Key)
			continue
		}
		have[out.Value.ID]++
		if n := have[out.Value.ID]; n > 1 {
			if f.once {
				j.addf(kindDoubled, "%s/%d@%d: number %d of %s is there %d times", f.topic, out.Partition, out.Offset, out.Value.Seq, out.Key, n)
			}
			continue
		}
		if out.Value.Seq < last[out.Key] {
			j.addf(kindOrder, "%s/%d@%d: number %d of %s comes after %d", f.topic, out.Partition, out.Offset, out.Value.Seq, out.Key, last[out.Key])
		}
		last[out.Key] = max(last[out.Key], out.Value.Seq)
	}
	for _, in := range f.ins {
		if have[in.Value.ID] == 0 {
			j.addf(kindLost, "%s: nothing of number %d of %s (event %d at %s/%d@%d)", f.topic, in.Value.Seq, in.Key, in.Value.ID, eventsTopic, in.Partition, in.Offset)
		}
	}
}

// counts compares the count that an effect tells with the number of its
// event. Without transactions a row may have counted more.
func (j *judging) counts(topic string, outs []record[effect], exact bool) {
	for _, out := range outs {
		v := out.Value
		if v.Count < v.Seq || exact && j.exact && v.Count > v.Seq {
			j.addf(kindCount, "%s/%d@%d: number %d of %s was counted as %d", topic, out.Partition, out.Offset, v.Seq, out.Key, v.Count)
		}
	}
}

// join follows the versions of the joined row along each key. An output that
// left before its commit may have seen more than the record does when it is
// processed again, so only exactly once is judged along the way.
func (j *judging) join() {
	type step struct{ seq, rate int64 }
	last := map[string]step{}
	for _, out := range j.h.Seen.Effects {
		v, was := out.Value, last[out.Key]
		if v.Seq <= was.seq {
			continue // a repeat
		}
		if j.once && v.Rate < was.rate {
			j.addf(kindJoin, "%s/%d@%d: number %d of %s saw version %d, the one before %d", effectsTopic, out.Partition, out.Offset, v.Seq, out.Key, v.Rate, was.rate)
		}
		last[out.Key] = step{v.Seq, v.Rate}
	}
	if len(j.h.Stuck) > 0 {
		return
	}
	for key, want := range j.h.LastRates {
		if got := last[key].rate; got != want {
			j.addf(kindJoin, "the last event of %s saw version %d, not %d", key, got, want)
		}
	}
}

// state compares a table topic with the events that its group was given.
func (j *judging) state(topic string, ins []record[event]) {
	want := map[string]row{}
	for _, in := range ins {
		r := want[in.Key]
		r.count(in.Value)
		want[in.Key] = r
	}
	got := j.fold(topic)
	for key, w := range want {
		g := got[key]
		switch {
		case g.Count < w.Count || g.Last != w.Last:
			j.addf(kindLost, "%s: %s has counted %+v, was given %+v", topic, key, g, w)
		case !j.exact:
		case g.Count > w.Count:
			j.addf(kindDoubled, "%s: %s has counted %+v, was given %+v", topic, key, g, w)
		case g.Sum != w.Sum: // one twice, another not at all
			j.addf(kindLost, "%s: %s has counted %+v, was given %+v", topic, key, g, w)
			j.addf(kindDoubled, "%s: %s has counted %+v, was given %+v", topic, key, g, w)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			j.addf(kindRecord, "%s: %s was given no event", topic, key)
		}
	}
}

// kinds are those of findings, in the order of their first one.
func kinds(found []violation) []string {
	var out []string
	for _, v := range found {
		if !slices.Contains(out, v.kind) {
			out = append(out, v.kind)
		}
	}
	return out
}
