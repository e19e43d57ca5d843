package graph

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// Graph is one group's declaration, or one subgraph of it: a part whose inputs
// are co-partitioned, joined to the others by repartition topics only. It is
// not changed after Validate.
type Graph struct {
	Group string

	// Subgraph is the part's name, unique in its group.
	Subgraph string

	// NullKeysAnywhere says that the code of this graph knows what to do with
	// records without a key although there are stores.
	NullKeysAnywhere bool

	// JoinsRun says that the rows of joined tables run code, so that a graph
	// needs no other input.
	JoinsRun bool

	// Inputs are in order of declaration; the loop, if there is one, is the
	// last.
	Inputs []Input

	// Outputs are the topics that callbacks may emit to.
	Outputs []Output

	// Stores are what callbacks may change. The group table, if there is
	// one, is the first.
	Stores []Store

	// Joins are co-partitioned tables, read at the record's own key.
	Joins []Join

	// Lookups are whole tables, read at any key.
	Lookups []Lookup

	// Visitors are the names of callbacks run over existing keys.
	Visitors []string

	// Operations and Timers are for descriptions only.
	Operations []Operation
	Timers     []Timer

	// OnDecode, OnProcess and OnProduce say what becomes of a record that
	// fails in that phase.
	OnDecode, OnProcess, OnProduce Policy
}

// Input is a topic whose records run a callback.
type Input struct {
	Topic string
	// Loop marks the group's own loop topic: it is never waited for in the
	// merge, and its records are deleted once committed.
	Loop bool
	// Nulls and NullKeys pass records without value or key to the callback
	// instead of skipping and counting them.
	Nulls, NullKeys bool
	// Latest starts a new group at the end of the topic, not at its start.
	Latest bool
	// WallTime gives records without a timestamp the clock's time instead
	// of failing them.
	WallTime bool
	// MaxFuture refuses and counts records whose timestamp is further ahead
	// of the clock, in milliseconds; 0: none are.
	MaxFuture int64
	// Table marks a topic of rows: in ties of time its records go before
	// those of streams.
	Table bool
	// Repartition marks a topic of the group's own that another subgraph, or
	// this one, writes to: it is created with this number of partitions (0: as
	// many as the subgraph's other inputs, or the most of those that feed it),
	// and its records are deleted once committed.
	Repartition *Repartition
}

// Repartition is what is declared of a repartition topic.
type Repartition struct {
	Partitions int32    // 0: not said
	From       []string // subgraphs that write to it
}

// Internal reports whether the topic belongs to the group and nobody else.
func (in *Input) Internal() bool { return in.Loop || in.Repartition != nil }

// Output is a topic that callbacks emit to.
type Output struct{ Topic string }

// Store is one named store.
type Store struct {
	Name string
	// Changelog is the topic that every change goes to; empty: the store is
	// local and emptied whenever its task starts.
	Changelog string
	// Timelines are the first bytes of keys that are followed by 8 bytes of
	// time: their rows can be waited for by time.
	Timelines []byte
	// Of says what the rows are, Details how they are kept, for descriptions
	// only.
	Of, Details string
}

// Join is a co-partitioned table.
type Join struct {
	Topic string
	// First loads the table to its end before the group's first record,
	// instead of merging it by time from the start.
	First bool
}

// Lookup is a whole table.
type Lookup struct{ Topic string }

// DeadLetterTopic returns the dead-letter topic of the graph's policies, the
// first that is named; empty if there is none.
func (g *Graph) DeadLetterTopic() string {
	for _, p := range []Policy{g.OnProcess, g.OnDecode, g.OnProduce} {
		if p.Topic != "" {
			return p.Topic
		}
	}
	return ""
}

// Copartitioned returns the topics whose partition counts must be equal:
// partition p of all of them is one task.
func (g *Graph) Copartitioned() []string {
	out := make([]string, 0, len(g.Inputs)+len(g.Joins))
	for _, in := range g.Inputs {
		out = append(out, in.Topic)
	}
	for _, j := range g.Joins {
		out = append(out, j.Topic)
	}
	return out
}

// Marked returns the topic whose committed offsets carry the marks: the first
// input, or the first joined table of a graph that has no input.
func (g *Graph) Marked() string {
	if len(g.Inputs) > 0 {
		return g.Inputs[0].Topic
	}
	return g.Joins[0].Topic
}

// Stateful reports whether tasks keep anything on disk.
func (g *Graph) Stateful() bool { return len(g.Stores) > 0 || len(g.Joins) > 0 || len(g.Lookups) > 0 }

// Validate reports everything that is wrong with the declaration by itself.
func (g *Graph) Validate() error {
	if g.Group == "" {
		return fmt.Errorf("graph: empty group name")
	}
	fail := func(format string, a ...any) error {
		return fmt.Errorf("graph %s: "+format, append([]any{g.Group}, a...)...)
	}
	if len(g.Inputs) == 0 && (!g.JoinsRun || len(g.Joins) == 0) {
		return fail("no input")
	}
	read := map[string]string{}
	add := func(kind, topic string) error {
		if err := checkTopic(topic); err != nil {
			return fail("%s: %w", kind, err)
		}
		if was := read[topic]; was != "" {
			return fail("topic %s is declared as %s and as %s", topic, was, kind)
		}
		read[topic] = kind
		return nil
	}
	for _, in := range g.Inputs {
		if err := add("input", in.Topic); err != nil {
			return err
		}
		if in.NullKeys && len(g.Stores) > 0 && !g.NullKeysAnywhere {
			return fail("input %s: null keys need a graph without stores, since state has no place for them", in.Topic)
		}
	}
	for _, j := range g.Joins {
		if err := add("join", j.Topic); err != nil {
			return err
		}
	}
	for _, l := range g.Lookups {
		if err := add("lookup", l.Topic); err != nil {
			return err
		}
	}
	outputs := map[string]bool{}
	for _, o := range g.Outputs {
		if err := checkTopic(o.Topic); err != nil {
			return fail("output: %w", err)
		}
		if outputs[o.Topic] {
			return fail("output %s is declared twice", o.Topic)
		}
		outputs[o.Topic] = true
	}
	if err := g.validateStores(read, outputs); err != nil {
		return fail("%w", err)
	}
	if err := g.validatePolicies(read); err != nil {
		return fail("error policy of phase %w", err)
	}
	return nil
}

func (g *Graph) validatePolicies(read map[string]string) error {
	for phase, p := range map[string]Policy{"decode": g.OnDecode, "process": g.OnProcess, "produce": g.OnProduce} {
		if err := p.validate(phase == "produce"); err != nil {
			return fmt.Errorf("%s: %w", phase, err)
		}
		// A record would come back, or stand in a table.
		if was := read[p.Topic]; was != "" {
			return fmt.Errorf("%s: dead letters to topic %s, which is declared as %s", phase, p.Topic, was)
		}
	}
	return nil
}

func (g *Graph) validateStores(read map[string]string, outputs map[string]bool) error {
	names := map[string]bool{}
	for _, s := range g.Stores {
		if names[s.Name] {
			return fmt.Errorf("store %q is declared twice", s.Name)
		}
		names[s.Name] = true
		if s.Changelog == "" {
			continue
		}
		if err := checkTopic(s.Changelog); err != nil {
			return fmt.Errorf("store %q: %w", s.Name, err)
		}
		if was := read[s.Changelog]; was != "" {
			return fmt.Errorf("topic %s is a changelog of this group and cannot be its %s", s.Changelog, was)
		}
		if outputs[s.Changelog] {
			return fmt.Errorf("topic %s is a changelog of this group: change the store instead of emitting to it", s.Changelog)
		}
		for _, p := range []Policy{g.OnProcess, g.OnDecode, g.OnProduce} {
			if p.Topic == s.Changelog {
				return fmt.Errorf("topic %s is a changelog of this group and cannot take dead letters", s.Changelog)
			}
		}
	}
	return nil
}

// checkTopic applies Kafka's rules for topic names.
func checkTopic(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 249 {
		return fmt.Errorf("%q is not a topic name", name)
	}
	for _, c := range name {
		if NotInTopics(c) {
			return fmt.Errorf("%q is not a topic name: %q is not allowed", name, c)
		}
	}
	return nil
}

// NotInTopics reports whether Kafka does not allow c in names of topics.
func NotInTopics(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-", c)
}

// Fingerprint is a hash of everything that decides what the group does to
// its topics: names, kinds and policies, in order of declaration.
func (g *Graph) Fingerprint() uint64 {
	h := fnv.New64a()
	put := func(parts ...string) {
		for _, p := range parts {
			var n [8]byte
			binary.BigEndian.PutUint64(n[:], uint64(len(p)))
			_, _ = h.Write(n[:])
			_, _ = h.Write([]byte(p))
		}
	}
	put("group", g.Group)
	for _, in := range g.Inputs {
		put("input", in.Topic, flags(in.Loop, in.Nulls, in.NullKeys, in.Latest, in.WallTime, in.Table, in.Repartition != nil), strconv.FormatInt(in.MaxFuture, 10))
	}
	for _, o := range g.Outputs {
		put("output", o.Topic)
	}
	for _, s := range g.Stores {
		put("store", s.Name, s.Changelog, string(s.Timelines))
	}
	for _, j := range g.Joins {
		put("join", j.Topic, flags(j.First))
	}
	for _, l := range g.Lookups {
		put("lookup", l.Topic)
	}
	put("policies", g.OnDecode.String(), g.OnProcess.String(), g.OnProduce.String())
	return h.Sum64()
}

func flags(set ...bool) string {
	b := make([]byte, len(set))
	for i, on := range set {
		b[i] = '0'
		if on {
			b[i] = '1'
		}
	}
	return string(b)
}
