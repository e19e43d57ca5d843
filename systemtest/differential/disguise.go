package differential

import (
	"fmt"
	"strings"
)

// tick begins the keys of records that only raise time in Kafka Streams.
const tick = "#"

// Disguised returns what Kafka Streams reads in place of the case where its
// operators do not see all that raises the task's time, or see a null that is
// no value elsewhere:
//
//   - D6 for nulls: a windowed aggregation that skips a record does not see its
//     time either. It gets one with a key of its own instead.
//   - D7: a time or session aggregation takes null for a value. It gets the
//     same.
//   - D10: a table wait looks at the times of the stream only, and releases
//     nothing for a record that it skips. A table record, and one with a null,
//     is preceded by a stream record with a key of its own.
//
// Undisguise drops the results of such records and counts steps as in the
// case.
func (c Case) Disguised() Case {
	d := Case{Topology: c.Topology}
	for i, in := range c.steps() {
		if i.tick {
			in = Input{Topic: "L", Key: fmt.Sprint(tick, i.of), Value: "t", Time: in.Time}
		}
		d.Inputs = append(d.Inputs, in)
	}
	return d
}

// Undisguise turns results of the disguised case into those of the case.
func (c Case) Undisguise(out []Output) []Output {
	var of []int
	for i := range c.steps() {
		of = append(of, i.of)
	}
	var kept []Output
	for _, o := range out {
		if !strings.HasPrefix(o.Key, tick) {
			o.Step = of[o.Step]
			kept = append(kept, o)
		}
	}
	return kept
}

type step struct {
	of   int // index of the input
	tick bool
}

// steps yields what Kafka Streams reads.
func (c Case) steps() func(yield func(step, Input) bool) {
	windowed := c.Topology.Get("window") != "" && c.Topology.Get("pre") != "filter" && c.Topology.Get("pre") != "rekey"
	waits := c.Topology.Get("op") == "streamtable" && c.Topology.Get("grace") != ""
	return func(yield func(step, Input) bool) {
		for i, in := range c.Inputs {
			if waits && (in.Topic == "R" || in.Key == Null || in.Value == Null) && !yield(step{i, true}, in) {
				return
			}
			if !yield(step{i, windowed && (in.Key == Null || in.Value == Null)}, in) {
				return
			}
		}
	}
}

// ticks reports whether inputs that are skipped, or that a wait does not see,
// may raise time in a generated case.
func (t Topology) ticks() bool {
	if t.Get("window") != "" {
		return t.Get("pre") == "" || t.Get("pre") == "merge"
	}
	return t.Get("op") == "join" || t.Get("op") == "streamtable"
}
