package differential

import (
	"fmt"
	"strconv"
	"strings"
)

// Null stands for an absent key or value.
const Null = `\N`

// none stands for the absent side of a join's result.
const none = "~"

// Topology describes one chain of operators; doc.go has its grammar.
type Topology string

// Get returns the part called name, or "".
func (t Topology) Get(name string) string {
	for part := range strings.FieldsSeq(string(t)) {
		if v, ok := strings.CutPrefix(part, name+"="); ok {
			return v
		}
	}
	return ""
}

// Int returns the part called name as a number, 0 if there is none.
func (t Topology) Int(name string) int64 {
	n, _ := strconv.ParseInt(t.Get(name), 10, 64) // absent means 0
	return n
}

// two reports whether the topology reads topic R too.
func (t Topology) two() bool {
	switch t.Get("op") {
	case "join", "joincount":
		return t.Get("self") == ""
	case "tablejoin", "foreignjoin", "streamtable", "streamglobal":
		return true
	}
	return t.Get("pre") == "merge"
}

// table reports whether the results are changes of a table.
func (t Topology) table() bool {
	switch t.Get("op") {
	case "tablejoin", "foreignjoin", "tableagg", "tablecount", "tablefilter", "tablemap", "totable", "suppresstime":
		return true
	}
	return false
}

// streamJoin reports whether two streams are joined.
func (t Topology) streamJoin() bool { return strings.HasPrefix(string(t), "op=join") }

// Input is a record that is sent to a topic. Time is in milliseconds.
type Input struct {
	Topic, Key, Value string
	Time              int64
}

// Output is a result. Step is the index of the input that it followed: the
// last one that was sent when it came.
type Output struct {
	Step       int
	Key, Value string
	Time       int64
}

// same reports whether two results are equal, whenever they came.
func (o Output) same(p Output) bool { return o.Key == p.Key && o.Value == p.Value && o.Time == p.Time }

// String writes key=value@time.
func (o Output) String() string { return fmt.Sprintf("%s=%s@%d", o.Key, o.Value, o.Time) }

// Case is a topology with what it reads, in the order of processing.
type Case struct {
	Topology Topology
	Inputs   []Input
}

// Runner runs a case and returns its results in the order in which they came.
type Runner interface {
	Run(Case) ([]Output, error)
}

// streamTime returns the stream time at each input, that input included.
func (c Case) streamTime() []int64 {
	out := make([]int64, len(c.Inputs))
	high := int64(-1)
	for i, in := range c.Inputs {
		high = max(high, in.Time)
		out[i] = high
	}
	return out
}

// letter returns the first letter of a value.
func letter(v string) string {
	if v == Null || v == "" {
		return Null
	}
	return v[:1]
}

// foreign returns the foreign key in a value.
func foreign(v string) string {
	if _, key, ok := strings.Cut(v, ":"); ok {
		return key
	}
	return Null
}

// fed is an input as an aggregation reads it, after what stands before it.
type fed struct {
	Input
	skip bool // it does not reach the aggregation
}

// feed applies the topology's pre step.
func (c Case) feed() []fed {
	out := make([]fed, len(c.Inputs))
	for i, in := range c.Inputs {
		f := fed{Input: in}
		switch c.Topology.Get("pre") {
		case "filter":
			f.skip = in.Value == Null || strings.HasPrefix(in.Value, "z")
		case "rekey":
			f.skip, f.Key = in.Value == Null, letter(in.Value)
		}
		f.skip = f.skip || f.Key == Null || f.Value == Null
		out[i] = f
	}
	return out
}
