package processor

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/kafka"
)

// topology is what Kafka says of a graph's topics.
type topology struct {
	partitions int32
	topics     map[string]kafka.Topic
	maxBytes   map[string]int           // of one record, by topic; 0 unknown
	tombstones map[string]time.Duration // delete.retention.ms, by compacted topic
}

// checkTopics asks for the graph's topics, creates the internal ones, and
// checks that all of them fit.
func (p *Processor) checkTopics(ctx context.Context) (topology, error) {
	g := &p.graph.spec
	admin := p.client.Driver().Admin()
	t := topology{maxBytes: map[string]int{}, tombstones: map[string]time.Duration{}}
	internal := internalTopics(g)
	external := externalTopics(g, internal)
	var err error
	if t.topics, err = admin.Topics(ctx, external...); err != nil {
		return t, fmt.Errorf("ask for topics: %w", err)
	}
	for _, name := range external {
		if _, ok := t.topics[name]; !ok {
			return t, &kafka.Error{TopicPartition: kafka.TopicPartition{Topic: name, Partition: -1}, Offset: -1,
				Err: fmt.Errorf("%w: the graph %s it, so it must exist (see kafka.Client.EnsureTopics)", kafka.ErrUnknownTopic, use(g, name))}
		}
	}
	if t.partitions, err = p.copartitioned(t.topics, internal); err != nil {
		return t, err
	}
	specs := make([]kafka.TopicSpec, 0, len(internal))
	for _, in := range internal {
		spec := kafka.TopicSpec{Name: in.name, Partitions: t.partitions, Replicas: p.cfg.replicas}
		if in.loop {
			spec.Configs, spec.Require = kafka.LoopConfigs(), []string{"cleanup.policy", "retention.ms", "retention.bytes"}
		} else {
			spec.Configs, spec.Require = kafka.ChangelogConfigs(), []string{"cleanup.policy"}
		}
		specs = append(specs, spec)
	}
	if err := p.client.EnsureTopics(ctx, specs...); err != nil {
		return t, err
	}
	names := make([]string, 0, len(internal))
	for _, in := range internal {
		names = append(names, in.name)
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
	return t, t.readConfigs(ctx, admin)
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
		if ms, err := strconv.ParseInt(cfg["delete.retention.ms"], 10, 64); err == nil && cfg["cleanup.policy"] == "compact" {
			t.tombstones[name] = time.Duration(min(ms, int64(365*24*time.Hour/time.Millisecond))) * time.Millisecond
		}
	}
	return nil
}

// copartitioned returns the one partition count of the graph's inputs.
func (p *Processor) copartitioned(topics map[string]kafka.Topic, internal []internalTopic) (int32, error) {
	own := map[string]bool{}
	for _, in := range internal {
		own[in.name] = true
	}
	e := &PartitionCountError{Group: p.graph.spec.Group}
	equal := true
	for _, name := range p.graph.spec.Copartitioned() {
		if own[name] {
			continue
		}
		e.Topics, e.Counts = append(e.Topics, name), append(e.Counts, topics[name].Partitions)
		equal = equal && e.Counts[0] == topics[name].Partitions
	}
	if !equal {
		return 0, e
	}
	if len(e.Counts) == 0 {
		return 0, fmt.Errorf("the loop is the only input: nothing says how many partitions it has")
	}
	return e.Counts[0], nil
}

// use says what a graph does with a topic.
func use(g *graph.Graph, topic string) string {
	for _, in := range g.Inputs {
		if in.Topic == topic {
			return "reads"
		}
	}
	for _, j := range g.Joins {
		if j.Topic == topic {
			return "joins"
		}
	}
	for _, l := range g.Lookups {
		if l.Topic == topic {
			return "looks up"
		}
	}
	for _, o := range g.Outputs {
		if o.Topic == topic {
			return "emits to"
		}
	}
	return "sends dead letters to"
}

// internalTopic is a topic that belongs to the group.
type internalTopic struct {
	name string
	loop bool
}

func internalTopics(g *graph.Graph) []internalTopic {
	var out []internalTopic
	for _, s := range g.Stores {
		if s.Changelog != "" {
			out = append(out, internalTopic{name: s.Changelog})
		}
	}
	for _, in := range g.Inputs {
		if in.Loop {
			out = append(out, internalTopic{name: in.Topic, loop: true})
		}
	}
	return out
}

// externalTopics are the topics that must exist: inputs, joined and looked up
// tables, outputs, dead-letter topics.
func externalTopics(g *graph.Graph, internal []internalTopic) []string {
	seen := map[string]bool{}
	for _, in := range internal {
		seen[in.name] = true
	}
	var out []string
	add := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	for _, name := range g.Copartitioned() {
		add(name)
	}
	for _, l := range g.Lookups {
		add(l.Topic)
	}
	for _, name := range targets(g) {
		add(name)
	}
	return out
}

// targets are the topics that are written to by callbacks and policies, in
// the order of task.Env.Outputs.
func targets(g *graph.Graph) []string {
	out := make([]string, 0, len(g.Outputs)+3)
	seen := map[string]bool{}
	add := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	for _, o := range g.Outputs {
		add(o.Topic)
	}
	for _, policy := range []graph.Policy{g.OnDecode, g.OnProcess, g.OnProduce} {
		add(policy.Topic)
	}
	return out
}

func (t *topology) targets(g *graph.Graph) []task.Target {
	var out []task.Target
	for _, name := range targets(g) {
		out = append(out, task.Target{Topic: name, Partitions: t.topics[name].Partitions, MaxBytes: t.maxBytes[name]})
	}
	return out
}
