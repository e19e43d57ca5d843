package differential

import (
	"fmt"
	"math/rand/v2"
)

// flushTime lies above every other time, so that what is held comes out.
const flushTime = 1_000_000

// Generate makes a case of n records, and one to flush it. The same seed gives
// the same case. Times stand still, go on, jump, fall back, and hit or just
// miss the bounds of what earlier records opened. In every third case they fall
// back by less than the grace, so that nothing is late, and few rules apply.
func Generate(t Topology, seed uint64, n int) Case {
	g := &generator{
		Rand: rand.New(rand.NewPCG(seed, 0)), t: t,
		now: -1, calm: seed%3 == 0,
	}
	g.keys = []string{"a", "b", "c"}
	if seed%4 == 2 && t.Get("op") != "streamglobal" { // its mapper takes an empty key for none
		g.keys = []string{"", "a\x00", "a"} // in a store they lie close to each other
	}
	g.keys = g.keys[:1+g.IntN(3)]
	g.bounds, g.span = t.bounds()
	for range n {
		g.inputs = append(g.inputs, g.next(len(g.inputs)))
	}
	if t.Get("window") != "" || t.streamJoin() || t.Get("post") == "final" || t.Get("grace") != "" || t.Get("wait") != "" {
		g.inputs = append(g.inputs, Input{"L", "flush", fmt.Sprint("x", n), flushTime})
	}
	return Case{t, g.inputs}
}

// bounds returns the distances at which something begins or ends, and how far
// back a record may matter.
func (t Topology) bounds() (distances []int64, span int64) {
	grace := t.Int("grace")
	for _, name := range []string{"size", "advance", "gap", "before", "after", "wait"} {
		if v := t.Int(name); v != 0 {
			distances = append(distances, v, v+grace)
			span = max(span, 2*v)
		}
	}
	return append(distances, grace, 0), max(span+grace, 6)
}

type generator struct {
	*rand.Rand

	t      Topology
	keys   []string
	bounds []int64
	span   int64
	now    int64 // highest time so far
	calm   bool  // nothing is late
	inputs []Input
}

// ordered reports whether the operators see only a part of the records, or
// stand behind a hold (D6): such cases have no lateness.
func (t Topology) ordered() bool {
	return t.Get("pre") == "filter" || t.Get("post") == "recount" || t.Get("op") == "joincount"
}

func (g *generator) next(i int) Input {
	in := Input{Topic: "L", Time: g.time()}
	if g.t.two() && g.IntN(2) == 0 {
		in.Topic = "R"
	}
	in.Key, in.Value = g.key(in.Topic), g.value(in.Topic, i)
	if g.t.Get("op") == "suppresstime" && in.Value == Null && !g.present(in.Key) {
		in.Value = fmt.Sprint("x", i) // a delete of nothing would take a place in Kafka's buffer
	}
	if in.Value == Null && g.t.versioned(in.Topic) && !g.older(in) {
		in.Value = "x1" // Kafka Streams forgets a delete that leaves no older version
	}
	if in.Key == Null || in.Value == Null {
		if !g.t.ticks() && (!g.t.table() || g.t.Get("wait") != "") {
			in.Time = min(in.Time, max(g.now, 0))
		}
		if g.t.ordered() {
			in.Time = max(g.now, 0)
		}
	}
	g.now = max(g.now, in.Time)
	return in
}

func (g *generator) key(topic string) string {
	waits := topic == "L" && g.t.Get("op") == "streamtable" && g.t.Get("grace") != "" // Kafka Streams fails at a null key
	if g.IntN(25) == 0 && !waits {
		return Null
	}
	if topic == "R" && (g.t.Get("op") == "foreignjoin" || g.t.Get("by") == "value") {
		return fmt.Sprint("k", 1+g.IntN(3))
	}
	return g.keys[g.IntN(len(g.keys))]
}

// value returns one that no other record has, so that a result tells what it
// was made of; in tables few ones, so that they repeat.
func (g *generator) value(topic string, i int) string {
	rows := g.t.table() && g.t.Get("wait") == "" || topic == "R" && !g.t.streamJoin() && g.t.Get("pre") == ""
	if g.IntN(16) == 0 || (rows || g.t.table()) && g.IntN(6) == 0 {
		return Null
	}
	first := string("xyz"[g.IntN(3)])
	if !rows {
		first += fmt.Sprint(i)
	} else {
		first += fmt.Sprint(1 + g.IntN(2))
	}
	if topic == "L" && (g.t.Get("op") == "foreignjoin" || g.t.Get("by") == "value") && g.IntN(8) != 0 {
		first += fmt.Sprint(":k", 1+g.IntN(3))
	}
	return first
}

// versioned reports whether a topic becomes a versioned table.
func (t Topology) versioned(topic string) bool {
	v := t.Get("versioned")
	return v == "both" || v == "left" && topic == "L" || v == "right" && topic == "R"
}

// older reports whether the key has a version before the record, and none at
// the same time.
func (g *generator) older(in Input) bool {
	found := false
	for _, o := range g.inputs {
		if o.Topic != in.Topic || o.Key != in.Key {
			continue
		}
		if o.Time == in.Time {
			return false
		}
		found = found || o.Time < in.Time && o.Value != Null
	}
	return found
}

// present reports whether the key's last record was not a delete.
func (g *generator) present(key string) bool {
	for i := len(g.inputs) - 1; i >= 0; i-- {
		if g.inputs[i].Key == key {
			return g.inputs[i].Value != Null
		}
	}
	return false
}

func (g *generator) time() int64 {
	if g.now < 0 {
		return g.Int64N(4)
	}
	t := g.now
	switch p := g.IntN(100); {
	case p < 45:
		t += g.Int64N(3)
	case p < 55:
		t += g.Int64N(g.span + 1)
	case p < 80:
		of := g.inputs[g.IntN(len(g.inputs))].Time
		d := g.bounds[g.IntN(len(g.bounds))] + g.Int64N(3) - 1
		if g.IntN(3) == 0 {
			d = -d
		}
		t = of + d
	case p < 97:
		t -= g.Int64N(g.span + 3)
	default:
		t += 2 * g.span
	}
	switch {
	case g.t.ordered():
		t = max(t, g.now)
	case g.calm:
		t = max(t, g.now-g.t.Int("grace"))
	}
	return max(t, 0)
}
