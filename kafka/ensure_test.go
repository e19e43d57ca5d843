package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// topicsAdmin is an Admin over a map.
type topicsAdmin struct {
	Admin
	topics  map[string]Topic
	configs map[string]map[string]string
	create  func(TopicSpec) error
}

func (a *topicsAdmin) Topics(_ context.Context, names ...string) (map[string]Topic, error) {
	found := map[string]Topic{}
	for _, name := range names {
		if t, ok := a.topics[name]; ok {
			found[name] = t
		}
	}
	return found, nil
}

func (a *topicsAdmin) Configs(_ context.Context, topic string) (map[string]string, error) {
	return a.configs[topic], nil
}

func (a *topicsAdmin) CreateTopics(_ context.Context, specs ...TopicSpec) error {
	for _, spec := range specs {
		if err := a.create(spec); err != nil {
			return err
		}
	}
	return nil
}

func (a *topicsAdmin) add(spec TopicSpec) error {
	a.topics[spec.Name] = Topic{Name: spec.Name, Partitions: spec.Partitions}
	a.configs[spec.Name] = spec.Configs
	return nil
}

func newTopicsAdmin() *topicsAdmin {
	a := &topicsAdmin{topics: map[string]Topic{}, configs: map[string]map[string]string{}}
	a.create = a.add
	return a
}

func TestMissingTopicsAreCreatedAndFittingOnesLeftAlone(t *testing.T) {
	a := newTopicsAdmin()
	spec := TopicSpec{Name: "t", Partitions: 6, Configs: ChangelogConfigs(), Require: []string{"cleanup.policy"}}
	if err := ensureTopics(t.Context(), a, []TopicSpec{spec}); err != nil || a.topics["t"].Partitions != 6 {
		t.Fatalf("created %+v, %v", a.topics["t"], err)
	}
	a.create = func(TopicSpec) error { t.Error("created again"); return nil }
	if err := ensureTopics(t.Context(), a, []TopicSpec{spec, {Name: "t"}}); err != nil {
		t.Error(err)
	}
}

func TestATopicThatAnotherProcessCreatedFirstIsChecked(t *testing.T) {
	a := newTopicsAdmin()
	a.create = func(spec TopicSpec) error {
		spec.Partitions++
		_ = a.add(spec)
		return &Error{TopicPartition: TopicPartition{spec.Name, -1}, Offset: -1, Err: ErrTopicExists}
	}
	err := ensureTopics(t.Context(), a, []TopicSpec{{Name: "t", Partitions: 3}})
	var mismatch *TopicMismatchError
	if !errors.As(err, &mismatch) || mismatch.Found != "4" || mismatch.Wanted != "3" || errors.Is(err, ErrTopicExists) {
		t.Errorf("error %v", err)
	}
}

func TestAllThatIsWrongIsReportedTogether(t *testing.T) {
	a := newTopicsAdmin()
	_ = a.add(TopicSpec{Name: "a", Partitions: 4})
	_ = a.add(TopicSpec{Name: "b", Configs: map[string]string{"cleanup.policy": "delete", "retention.ms": "1000"}})
	refused := errors.New("no")
	a.create = func(TopicSpec) error { return refused }
	err := ensureTopics(t.Context(), a, []TopicSpec{
		{Name: "a", Partitions: 3},
		{Name: "b", Configs: map[string]string{"cleanup.policy": "compact", "retention.ms": "-1"}, Require: []string{"cleanup.policy", "retention.ms", "segment.bytes"}},
		{Name: "c"},
	})
	for _, want := range []string{
		"topic a: partition count is 4, want 3", "topic b: cleanup.policy is delete, want compact",
		"topic b: retention.ms is 1000, want -1", "topic b: segment.bytes is not set",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if !errors.Is(err, refused) {
		t.Errorf("%v hides that a topic could not be created", err)
	}
}

func TestSettingsAreComparedByWhatTheyMean(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"compact", "compact", true}, {"compact", "delete", false}, {"0.3", "0.30", true}, {"0.3", "0.31", false},
		{"compact,delete", "delete, compact", true}, {"compact,delete", "compact", false},
		{"9223372036854775807", "9223372036854775806", false}, {"86400000", "8.64e7", true}, {"-1", "", false},
	} {
		if got := sameSetting(c.a, c.b); got != c.same {
			t.Errorf("%q and %q: same is %v", c.a, c.b, got)
		}
	}
}

func TestSpecsThatCanBeNoTopicAreRefused(t *testing.T) {
	for name, spec := range map[string]TopicSpec{
		"no name": {Partitions: 1}, "partitions": {Name: "t", Partitions: -1}, "replicas": {Name: "t", Replicas: -1},
	} {
		a := newTopicsAdmin()
		a.create = func(TopicSpec) error { t.Errorf("%s: asked for", name); return nil }
		if err := ensureTopics(t.Context(), a, []TopicSpec{spec}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
