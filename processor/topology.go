package processor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

// topology is what Kafka says of a graph's topics.
type topology struct {
	partitions map[*part]int32 // at the start
	topics     map[string]kafka.Topic
	maxBytes   map[string]int           // of one record, by topic; 0 unknown
	tombstones map[string]time.Duration // delete.retention.ms, by compacted topic
	policies   map[string]string        // cleanup.policy, by topic; empty: unknown
}

// checkTopics asks for the graph's topics, creates the internal ones, and
// checks that all of them fit.
func (p *Processor) checkTopics(ctx context.Context) (topology, error) {
	g := p.graph
	admin := p.client.Driver().Admin()
	t := topology{partitions: map[*part]int32{}, maxBytes: map[string]int{}, tombstones: map[string]time.Duration{}, policies: map[string]string{}}
	internal, external := g.internalTopics(), g.externalTopics()
	names := make([]string, 0, len(internal))
	asked := slices.Clone(external)
	for _, in := range internal {
		names = append(names, in.name)
		if in.repartition {
			asked = append(asked, in.name)
		}
	}
	var err error
	if t.topics, err = admin.Topics(ctx, asked...); err != nil {
		return t, fmt.Errorf("ask for topics: %w", err)
	}
	for _, name := range external {
		if _, ok := t.topics[name]; !ok {
			return t, &kafka.Error{TopicPartition: kafka.TopicPartition{Topic: name, Partition: -1}, Offset: -1,
				Err: fmt.Errorf("%w: the graph %s it, so it must exist (see kafka.Client.EnsureTopics)", kafka.ErrUnknownTopic, g.use(name))}
		}
	}
	counts := newPartitionCounts(g, t.topics)
	for _, part := range g.parts {
		if t.partitions[part], err = counts.of(part); err != nil {
			return t, err
		}
	}
	specs := make([]kafka.TopicSpec, 0, len(internal))
	for _, in := range internal {
		spec := kafka.TopicSpec{Name: in.name, Partitions: t.partitions[in.of], Replicas: p.cfg.replicas}
		if in.purged {
			spec.Configs, spec.Require = kafka.LoopConfigs(), []string{"cleanup.policy", "retention.ms", "retention.bytes"}
		} else {
			spec.Configs, spec.Require = kafka.ChangelogConfigs(), []string{"cleanup.policy"}
		}
		specs = append(specs, spec)
	}
	if err := p.client.EnsureTopics(ctx, specs...); err != nil {
		return t, err
	}
	if len(names) > 0 {
		more, err := admin.Topics(ctx, names...)
		if err != nil {
			return t, fmt.Errorf("ask for topics: %w", err)
		}
		for name, info := range more {
			t.topics[name] = info
		}
	}
	if err := t.readConfigs(ctx, admin); err != nil {
		return t, err
	}
	for _, name := range p.graph.foreignTables() {
		if policy := t.policies[name]; policy != "" && !strings.Contains(policy, "compact") {
			p.log.Warn("a topic that is read as a table is not compacted: rows end with its retention",
				zap.String("topic", name), zap.String("cleanup.policy", policy))
		}
	}
	return t, nil
}

// readConfigs reads the settings that matter. A principal that may not read
// them goes without: the broker's own checks remain.
func (t *topology) readConfigs(ctx context.Context, admin kafka.Admin) error {
	for name := range t.topics {
		cfg, err := admin.Configs(ctx, name)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		if n, err := strconv.Atoi(cfg["max.message.bytes"]); err == nil {
			t.maxBytes[name] = n
		}
		t.policies[name] = cfg["cleanup.policy"]
		if ms, err := strconv.ParseInt(cfg["delete.retention.ms"], 10, 64); err == nil && cfg["cleanup.policy"] == "compact" {
			t.tombstones[name] = time.Duration(min(ms, int64(365*24*time.Hour/time.Millisecond))) * time.Millisecond
		}
	}
	return nil
}

// foreignTables are the topics that others write and this graph reads as
// tables.
func (g *Graph) foreignTables() (names []string) {
	for _, p := range g.parts {
		for _, j := range p.spec.Joins {
			names = append(names, j.Topic)
		}
		for _, l := range p.spec.Lookups {
			names = append(names, l.Topic)
		}
	}
	return names
}

// use says what a graph does with a topic.
func (g *Graph) use(topic string) string {
	for _, p := range g.parts {
		for _, in := range p.spec.Inputs {
			if in.Topic == topic {
				return "reads"
			}
		}
		for _, j := range p.spec.Joins {
			if j.Topic == topic {
				return "joins"
			}
		}
		for _, l := range p.spec.Lookups {
			if l.Topic == topic {
				return "looks up"
			}
		}
	}
	if slices.Contains(g.Outputs(), topic) {
		return "emits to"
	}
	return "sends dead letters to"
}

// internalTopic is a topic that belongs to the group and nobody else: it has
// as many partitions as the part that reads or keeps it.
type internalTopic struct {
	name        string
	of          *part
	purged      bool // its records are deleted once committed; else it is compacted
	repartition bool
}

func (p *part) internalTopics() []internalTopic {
	var out []internalTopic
	for _, s := range p.spec.Stores {
		if s.Changelog != "" {
			out = append(out, internalTopic{name: s.Changelog, of: p})
		}
	}
	for _, in := range p.spec.Inputs {
		if in.Internal() {
			out = append(out, internalTopic{name: in.Topic, of: p, purged: true, repartition: in.Repartition != nil})
		}
	}
	return out
}

func (g *Graph) internalTopics() []internalTopic {
	var out []internalTopic
	for _, p := range g.parts {
		out = append(out, p.internalTopics()...)
	}
	return out
}

// externalTopics are the topics that must exist: inputs, joined and looked up
// tables, outputs, dead-letter topics.
func (g *Graph) externalTopics() []string {
	var out []string
	seen := map[string]bool{}
	for _, in := range g.internalTopics() {
		seen[in.name] = true
	}
	for _, p := range g.parts {
		for _, name := range append(p.spec.Copartitioned(), lookups(p)...) {
			out = appendNew(out, seen, name)
		}
	}
	for _, p := range g.parts {
		for _, name := range p.targets() {
			out = appendNew(out, seen, name)
		}
	}
	return out
}

func lookups(p *part) []string {
	out := make([]string, 0, len(p.spec.Lookups))
	for _, l := range p.spec.Lookups {
		out = append(out, l.Topic)
	}
	return out
}

// targets are the topics that are written to by callbacks and policies, in
// the order of task.Env.Outputs.
func (p *part) targets() []string {
	out := make([]string, 0, len(p.spec.Outputs)+3)
	seen := map[string]bool{}
	for _, o := range p.spec.Outputs {
		out = appendNew(out, seen, o.Topic)
	}
	for _, policy := range []graph.Policy{p.spec.OnDecode, p.spec.OnProcess, p.spec.OnProduce} {
		out = appendNew(out, seen, policy.Topic)
	}
	return out
}

// appendNew appends a name unless it is empty or was seen.
func appendNew(names []string, seen map[string]bool, name string) []string {
	if name == "" || seen[name] {
		return names
	}
	seen[name] = true
	return append(names, name)
}

func (t *topology) targets(p *part) []task.Target {
	var out []task.Target
	for _, name := range p.targets() {
		out = append(out, task.Target{Topic: name, Partitions: t.topics[name].Partitions, MaxBytes: t.maxBytes[name]})
	}
	return out
}
