package processor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rekastream/reka/internal/graph"
)

// Description is what a graph is, as plain data: it can be printed, drawn,
// kept beside the program, read again with json.Unmarshal, and compared with
// that of another version (see Compare). Everything in it stands in order of
// declaration, so that equal graphs have equal descriptions.
type Description struct {
	Group string `json:"group"`

	// Guarantee is that of the processor; empty in the description of a graph.
	Guarantee string `json:"guarantee,omitempty"`

	// OnDecode, OnProcess and OnProduce say what becomes of a record that
	// fails in that phase, DeadLetters which topics may get it.
	OnDecode    string   `json:"on_decode"`
	OnProcess   string   `json:"on_process"`
	OnProduce   string   `json:"on_produce"`
	DeadLetters []string `json:"dead_letters,omitempty"`

	Subgraphs []SubgraphDescription `json:"subgraphs"`

	// Partitions are the counts of the topics. They are known to a processor
	// that runs, and nil in the description of a graph.
	Partitions map[string]int32 `json:"partitions,omitempty"`
}

// SubgraphDescription is a part of a graph whose inputs are co-partitioned:
// partition p of all of them is one task. A graph of NewGraph has one, "main".
type SubgraphDescription struct {
	Name       string                 `json:"name"`
	Inputs     []InputDescription     `json:"inputs,omitempty"`
	Lookups    []string               `json:"lookups,omitempty"` // topics
	Outputs    []string               `json:"outputs,omitempty"` // topics, the group's own too
	Stores     []StoreDescription     `json:"stores,omitempty"`
	Timers     []TimerDescription     `json:"timers,omitempty"`
	Visitors   []string               `json:"visitors,omitempty"`
	Operations []OperationDescription `json:"operations,omitempty"` // of a graph of package stream

	// Guarantees follow from what is declared, in words.
	Guarantees []string `json:"guarantees,omitempty"`
}

// InputDescription is a topic that is read in order of time.
type InputDescription struct {
	Topic   string   `json:"topic"`
	Kind    string   `json:"kind"` // stream, table, joined table, loop, repartition
	Options []string `json:"options,omitempty"`

	// Partitions is the declared count of a repartition topic (0: none is),
	// From are the subgraphs that write to it.
	Partitions int32    `json:"partitions,omitempty"`
	From       []string `json:"from,omitempty"`
}

// The kinds of inputs.
const (
	inputStream      = "stream"
	inputTable       = "table"
	inputJoined      = "joined table"
	inputLoop        = "loop"
	inputRepartition = "repartition"
)

// own reports whether the topic belongs to the group and nobody else.
func (in *InputDescription) own() bool { return in.Kind == inputLoop || in.Kind == inputRepartition }

// StoreDescription is a store.
type StoreDescription struct {
	Name      string `json:"name"`
	Of        string `json:"of"` // what keeps it: group table, rows, timers, or an operation such as count
	Details   string `json:"details,omitempty"`
	Timed     bool   `json:"timed,omitempty"`     // rows can be waited for by time
	Changelog string `json:"changelog,omitempty"` // empty: a local store
}

// TimerDescription is something that runs by time.
type TimerDescription struct {
	Name     string `json:"name"`
	Clock    string `json:"clock"`              // stream time, wall clock
	Interval string `json:"interval,omitempty"` // empty: callbacks set it
}

// OperationDescription is an operation of package stream.
type OperationDescription struct {
	// ID is the name of what the operation owns, or is made like one. It is
	// unique in the graph, and stays what it is when the graph changes
	// elsewhere.
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Details []string `json:"details,omitempty"`
	Parents []string `json:"parents,omitempty"` // IDs
	Reads   []string `json:"reads,omitempty"`   // topics that it begins with
	Lookups []string `json:"lookups,omitempty"` // topics
	Writes  []string `json:"writes,omitempty"`  // topics
	Stores  []string `json:"stores,omitempty"`  // names
}

// String returns the guarantee in words.
func (g Guarantee) String() string {
	switch g {
	case ExactlyOnce:
		return "exactly once"
	case AtLeastOnce:
		return "at least once"
	case WithoutTransactions:
		return "without transactions"
	default:
		return fmt.Sprintf("guarantee %d", int8(g))
	}
}

// JSON returns the description as indented JSON.
func (d Description) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil // strings and numbers always can be encoded
	}
	return b.Bytes()
}

// Describe returns what the graph is.
func (g *Graph) Describe() Description {
	first := &g.parts[0].spec // a group has one set of policies
	d := Description{
		Group:    g.group,
		OnDecode: first.OnDecode.String(), OnProcess: first.OnProcess.String(), OnProduce: first.OnProduce.String(),
	}
	seen := map[string]bool{}
	for _, p := range []graph.Policy{first.OnDecode, first.OnProcess, first.OnProduce} {
		d.DeadLetters = appendNew(d.DeadLetters, seen, p.Topic)
	}
	for _, p := range g.parts {
		d.Subgraphs = append(d.Subgraphs, p.describe())
	}
	return d
}

// Describe returns what the processor runs, with its guarantee. Partition
// counts are in it, and known is true, as soon as Run has looked at the
// topics.
func (p *Processor) Describe() (d Description, known bool) {
	d = p.graph.Describe()
	d.Guarantee = p.cfg.guarantee.String()
	p.mu.Lock()
	defer p.mu.Unlock()
	d.Partitions = p.counts.clone()
	return d, d.Partitions != nil
}

func (p *part) describe() SubgraphDescription {
	d := SubgraphDescription{Name: p.spec.Subgraph, Lookups: slices.Clip(append([]string(nil), lookups(p)...)), Visitors: slices.Clone(p.spec.Visitors), Guarantees: p.guarantees()}
	for i := range p.spec.Inputs {
		d.Inputs = append(d.Inputs, p.describeInput(&p.spec.Inputs[i]))
	}
	for _, j := range p.spec.Joins {
		in := InputDescription{Topic: j.Topic, Kind: inputJoined}
		if j.First {
			in.Options = []string{"loaded first"}
		}
		d.Inputs = append(d.Inputs, in)
	}
	for _, o := range p.spec.Outputs {
		d.Outputs = append(d.Outputs, o.Topic)
	}
	for _, s := range p.spec.Stores {
		d.Stores = append(d.Stores, StoreDescription{Name: s.Name, Of: s.Of, Details: s.Details, Timed: len(s.Timelines) > 0, Changelog: s.Changelog})
	}
	for _, t := range p.spec.Timers {
		td := TimerDescription{Name: t.Name, Clock: t.Clock}
		if t.Interval > 0 {
			td.Interval = millis(t.Interval)
		}
		d.Timers = append(d.Timers, td)
	}
	for _, o := range p.spec.Operations {
		d.Operations = append(d.Operations, OperationDescription{
			ID: o.ID, Kind: o.Kind, Details: slices.Clone(o.Details), Parents: slices.Clone(o.Parents), Reads: slices.Clone(o.Reads),
			Lookups: slices.Clone(o.Lookups), Writes: slices.Clone(o.Writes), Stores: slices.Clone(o.Stores),
		})
	}
	return d
}

func millis(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

func (p *part) describeInput(in *graph.Input) InputDescription {
	d := InputDescription{Topic: in.Topic, Kind: inputStream}
	switch {
	case in.Loop:
		d.Kind = inputLoop
	case in.Repartition != nil:
		d.Kind, d.Partitions, d.From = inputRepartition, in.Repartition.Partitions, slices.Clone(in.Repartition.From)
	case in.Table:
		d.Kind = inputTable
	}
	option := func(set bool, name string) {
		if set {
			d.Options = append(d.Options, name)
		}
	}
	// In package stream everything passes, and each operation sees to it.
	option(in.Nulls && !p.spec.NullKeysAnywhere, "nulls")
	option(in.NullKeys && !p.spec.NullKeysAnywhere, "null keys")
	option(in.Latest, "from latest")
	option(in.WallTime, "wall time")
	option(in.MaxFuture > 0, "max future "+millis(in.MaxFuture))
	return d
}

// guarantees say what follows from the declaration.
func (p *part) guarantees() []string {
	out := []string{"no topics of its own: takes up new partitions of its inputs while it runs"}
	if len(p.internalTopics()) > 0 {
		out[0] = "topics of its own: its inputs cannot get more partitions"
	}
	if slices.ContainsFunc(p.spec.Stores, func(s graph.Store) bool { return s.Changelog == "" }) {
		out = append(out, "local stores: they are empty whenever a partition starts")
	}
	if slices.ContainsFunc(p.spec.Joins, func(j graph.Join) bool { return j.First }) {
		out = append(out, "tables loaded first: records see rows that are younger than they are")
	}
	if len(p.spec.Lookups) > 0 {
		out = append(out, "lookups: records see the rows that there are, whatever their times")
	}
	if len(p.wall) > 0 {
		out = append(out, "the wall clock: results depend on when it runs")
	}
	return out
}
