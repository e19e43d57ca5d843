package tester

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rekastream/reka/kafka"
)

// admin is the kafka.Admin of one incarnation.
type admin struct{ inc *incarnation }

// do makes a call whose effect runs under the world's lock.
func (a admin) do(ctx context.Context, op Op, topic string, effect func(*world) error) error {
	return a.inc.call(ctx, Call{Op: op, Topic: topic, Partition: -1}, func(half bool) error {
		if half {
			return nil
		}
		w := a.inc.w
		w.mu.Lock()
		defer w.mu.Unlock()
		return effect(w)
	})
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// Topics implements kafka.Admin.
func (a admin) Topics(ctx context.Context, names ...string) (map[string]kafka.Topic, error) {
	out := map[string]kafka.Topic{}
	err := a.do(ctx, OpTopics, first(names), func(w *world) error {
		for _, n := range names {
			if t := w.topics[n]; t != nil {
				out[n] = kafka.Topic{Name: n, ID: t.id, Partitions: int32(len(t.logs)), Replicas: t.replicas}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Configs implements kafka.Admin.
func (a admin) Configs(ctx context.Context, name string) (map[string]string, error) {
	var out map[string]string
	err := a.do(ctx, OpConfigs, name, func(w *world) error {
		t := w.topics[name]
		if t == nil {
			return topicError(name, kafka.ErrUnknownTopic)
		}
		out = maps.Clone(t.configs)
		return nil
	})
	return out, err
}

// CreateTopics implements kafka.Admin.
func (a admin) CreateTopics(ctx context.Context, specs ...kafka.TopicSpec) error {
	name := ""
	if len(specs) > 0 {
		name = specs[0].Name
	}
	return a.do(ctx, OpCreateTopics, name, func(w *world) error {
		var errs []error
		for _, s := range specs {
			errs = append(errs, w.createTopic(s))
		}
		return errors.Join(errs...)
	})
}

// createTopic is called with mu held.
func (w *world) createTopic(s kafka.TopicSpec) error {
	if !legalName(s.Name) || s.Partitions < 0 || s.Replicas < 0 {
		return topicError(s.Name, kafka.ErrInvalidTopic)
	}
	if w.topics[s.Name] != nil {
		return topicError(s.Name, kafka.ErrTopicExists)
	}
	t := &topic{name: s.Name, replicas: max(s.Replicas, 1)}
	binary.BigEndian.PutUint64(t.id[8:], uint64(w.nextID()))
	t.setConfigs(s.Configs)
	n := s.Partitions
	if n == 0 {
		n = w.defaults.partitions
	}
	t.grow(n)
	w.topics[s.Name] = t
	w.changed()
	return nil
}

func (t *topic) grow(n int32) {
	for len(t.logs) < int(n) {
		t.logs = append(t.logs, &partitionLog{epochs: []epochStart{{}}})
	}
}

func legalName(s string) bool {
	if s == "" || s == "." || s == ".." || len(s) > 249 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	})
}

// CreatePartitions implements kafka.Admin.
func (a admin) CreatePartitions(ctx context.Context, name string, n int32) error {
	return a.do(ctx, OpCreatePartitions, name, func(w *world) error {
		t := w.topics[name]
		switch {
		case t == nil:
			return topicError(name, kafka.ErrUnknownTopic)
		case int(n) <= len(t.logs):
			return fmt.Errorf("topic %s: has %d partitions already: %w", name, len(t.logs), kafka.ErrInvalidTopic)
		}
		t.grow(n)
		w.changed()
		return nil
	})
}

// DeleteTopics implements kafka.Admin.
func (a admin) DeleteTopics(ctx context.Context, names ...string) error {
	return a.do(ctx, OpDeleteTopics, first(names), func(w *world) error {
		var errs []error
		for _, n := range names {
			if w.topics[n] == nil {
				errs = append(errs, topicError(n, kafka.ErrUnknownTopic))
				continue
			}
			delete(w.topics, n)
			for _, g := range w.sortedGroups() { // as brokers do
				g.forget(n)
			}
		}
		w.changed()
		return errors.Join(errs...)
	})
}

// Offsets implements kafka.Admin.
func (a admin) Offsets(ctx context.Context, at kafka.Mark, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	out := map[kafka.TopicPartition]int64{}
	name := ""
	if len(tps) > 0 {
		name = tps[0].Topic
	}
	err := a.do(ctx, OpOffsets, name, func(w *world) error {
		for _, tp := range tps {
			_, l := w.log(tp)
			if l == nil {
				return &kafka.Error{TopicPartition: tp, Offset: -1, Err: kafka.ErrUnknownTopic}
			}
			out[tp] = l.offset(at)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteRecords implements kafka.Admin.
func (a admin) DeleteRecords(ctx context.Context, before map[kafka.TopicPartition]int64) error {
	tps := slices.SortedFunc(maps.Keys(before), compare)
	name := ""
	if len(tps) > 0 {
		name = tps[0].Topic
	}
	return a.do(ctx, OpDeleteRecords, name, func(w *world) error {
		var errs []error
		for _, tp := range tps {
			_, l := w.log(tp)
			switch offset := before[tp]; {
			case l == nil:
				errs = append(errs, &kafka.Error{TopicPartition: tp, Offset: -1, Err: kafka.ErrUnknownTopic})
			case offset > l.end:
				errs = append(errs, &kafka.OffsetOutOfRangeError{TopicPartition: tp, Position: offset, LogStart: l.start, HighWatermark: l.end})
			default:
				l.deleteBefore(offset)
			}
		}
		w.changed()
		return errors.Join(errs...)
	})
}

// Group implements kafka.Admin.
func (a admin) Group(ctx context.Context, name string) (kafka.Group, error) {
	var out kafka.Group
	err := a.inc.call(ctx, Call{Op: OpDescribeGroup, Partition: -1, Group: name}, func(bool) error {
		w := a.inc.w
		w.mu.Lock()
		defer w.mu.Unlock()
		out = w.describe(name)
		return nil
	})
	return out, err
}

func compare(a, b kafka.TopicPartition) int {
	if c := strings.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}
	return int(a.Partition) - int(b.Partition)
}

func topicError(name string, err error) error {
	return &kafka.Error{TopicPartition: kafka.TopicPartition{Topic: name, Partition: -1}, Offset: -1, Err: err}
}
