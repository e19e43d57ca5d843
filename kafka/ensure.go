package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ensureTopics creates what is missing and checks the rest; see
// Client.EnsureTopics.
func ensureTopics(ctx context.Context, admin Admin, specs []TopicSpec) error {
	names := make([]string, len(specs))
	for i, spec := range specs {
		if spec.Name == "" {
			return fmt.Errorf("kafka: topic spec %d has no name", i)
		}
		if spec.Partitions < 0 || spec.Replicas < 0 {
			return fmt.Errorf("kafka: topic %s: %d partitions with %d replicas wanted", spec.Name, spec.Partitions, spec.Replicas)
		}
		names[i] = spec.Name
	}
	found, err := admin.Topics(ctx, names...)
	if err != nil {
		return err
	}
	var missing, existing []TopicSpec
	for _, spec := range specs {
		if _, ok := found[spec.Name]; ok {
			existing = append(existing, spec)
		} else {
			missing = append(missing, spec)
		}
	}
	var errs []error
	for _, spec := range missing { // one by one: each error belongs to a topic
		switch err := admin.CreateTopics(ctx, spec); {
		case errors.Is(err, ErrTopicExists): // another process was faster, with its own settings
			existing = append(existing, spec)
		case err != nil:
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, checkTopics(ctx, admin, existing))...)
}

func checkTopics(ctx context.Context, admin Admin, specs []TopicSpec) error {
	if len(specs) == 0 {
		return nil
	}
	names := make([]string, len(specs))
	for i, spec := range specs {
		names[i] = spec.Name
	}
	found, err := admin.Topics(ctx, names...)
	if err != nil {
		return err
	}
	var errs []error
	for _, spec := range specs {
		topic, ok := found[spec.Name]
		if !ok {
			errs = append(errs, topicError(spec.Name, ErrUnknownTopic))
			continue
		}
		if spec.Partitions > 0 && topic.Partitions != spec.Partitions {
			errs = append(errs, &TopicMismatchError{
				Topic: spec.Name, Setting: "partition count",
				Found: strconv.Itoa(int(topic.Partitions)), Wanted: strconv.Itoa(int(spec.Partitions)),
			})
		}
		errs = append(errs, checkConfigs(ctx, admin, spec))
	}
	return errors.Join(errs...)
}

func checkConfigs(ctx context.Context, admin Admin, spec TopicSpec) error {
	if len(spec.Require) == 0 {
		return nil
	}
	configs, err := admin.Configs(ctx, spec.Name)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range spec.Require {
		found, ok := configs[name]
		wanted := spec.Configs[name]
		switch {
		case !ok:
			errs = append(errs, &TopicMismatchError{Topic: spec.Name, Setting: name, Found: "not set", Wanted: wanted})
		case !sameSetting(found, wanted):
			errs = append(errs, &TopicMismatchError{Topic: spec.Name, Setting: name, Found: found, Wanted: wanted})
		}
	}
	return errors.Join(errs...)
}

// sameSetting compares as numbers what are numbers on both sides (0.5 and
// 0.50), and as sets what are lists (compact,delete and delete,compact).
func sameSetting(a, b string) bool {
	if a == b {
		return true
	}
	if i, err := strconv.ParseInt(a, 10, 64); err == nil {
		if j, err := strconv.ParseInt(b, 10, 64); err == nil {
			return i == j
		}
	}
	x, err := strconv.ParseFloat(a, 64)
	if err == nil {
		if y, err := strconv.ParseFloat(b, 64); err == nil {
			return x == y
		}
	}
	return slices.Equal(settingList(a), settingList(b))
}

func settingList(s string) []string {
	items := strings.Split(s, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	slices.Sort(items)
	return items
}
