package kafkatest

import (
	"errors"
	"sync"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var clientCases = []testCase{
	{"missing topics are created as specified", testEnsureCreates},
	{"an existing topic that fits is left alone", testEnsureFits},
	{"all that does not fit is reported together", testEnsureMismatch},
	{"two processes may ensure the same topics at once", testEnsureRace},
}

func client(t *testing.T, d kafka.Driver) *kafka.Client {
	t.Helper()
	c, err := kafka.NewDriverClient(d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A changelog gets the count and the settings asked for.
func testEnsureCreates(t *testing.T, e Env) {
	name := e.name("changelog")
	spec := kafka.TopicSpec{Name: name, Partitions: 3, Configs: kafka.ChangelogConfigs(), Require: []string{"cleanup.policy"}}
	if err := client(t, e.Driver).EnsureTopics(ctx(t), spec); err != nil {
		t.Fatal(err)
	}
	got, err := e.Driver.Admin().Topics(ctx(t), name)
	if err != nil || got[name].Partitions != 3 {
		t.Fatalf("topic %+v, %v", got[name], err)
	}
	configs, err := e.Driver.Admin().Configs(ctx(t), name)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range spec.Configs {
		if configs[k] != v {
			t.Fatalf("%s is %q, want %q", k, configs[k], v)
		}
	}
}

// Ensuring twice changes nothing; count 0 accepts any.
func testEnsureFits(t *testing.T, e Env) {
	name := e.topic(t, 4, "cleanup.policy", "compact")
	c := client(t, e.Driver)
	before := topicID(t, e, name)
	for range 2 {
		err := c.EnsureTopics(ctx(t), kafka.TopicSpec{Name: name, Configs: map[string]string{"cleanup.policy": "compact"}, Require: []string{"cleanup.policy"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if topicID(t, e, name) != before {
		t.Fatal("the topic is another one")
	}
}

// Each mistake is named with what was found and what was wanted, and
// nothing is changed.
func testEnsureMismatch(t *testing.T, e Env) {
	a, b := e.topic(t, 4), e.topic(t, 2, "cleanup.policy", "delete")
	err := client(t, e.Driver).EnsureTopics(ctx(t),
		kafka.TopicSpec{Name: a, Partitions: 3},
		kafka.TopicSpec{Name: b, Partitions: 2, Configs: map[string]string{"cleanup.policy": "compact"}, Require: []string{"cleanup.policy"}})
	found := map[string]*kafka.TopicMismatchError{}
	collectMismatches(err, found)
	if m := found[a]; m == nil || m.Found != "4" || m.Wanted != "3" {
		t.Fatalf("mismatch of %s: %+v in %v", a, m, err)
	}
	if m := found[b]; m == nil || m.Setting != "cleanup.policy" || m.Found != "delete" || m.Wanted != "compact" {
		t.Fatalf("mismatch of %s: %+v in %v", b, m, err)
	}
	got, err := e.Driver.Admin().Topics(ctx(t), a, b)
	if err != nil || got[a].Partitions != 4 || got[b].Partitions != 2 {
		t.Fatalf("topics changed: %+v, %v", got, err)
	}
}

// collectMismatches walks joined and wrapped errors.
func collectMismatches(err error, into map[string]*kafka.TopicMismatchError) {
	if err == nil {
		return
	}
	var m *kafka.TopicMismatchError
	switch x := err.(type) {
	case interface{ Unwrap() []error }:
		for _, e := range x.Unwrap() {
			collectMismatches(e, into)
		}
	case interface{ Unwrap() error }:
		if errors.As(err, &m) {
			into[m.Topic] = m
		}
		collectMismatches(x.Unwrap(), into)
	default:
		if errors.As(err, &m) {
			into[m.Topic] = m
		}
	}
}

// Processes of one group start at the same time and all want the same
// topics: the losers of the race find them created.
func testEnsureRace(t *testing.T, e Env) {
	name := e.name("raced")
	spec := kafka.TopicSpec{Name: name, Partitions: 2, Configs: kafka.LoopConfigs(), Require: []string{"cleanup.policy"}}
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		c := client(t, e.Driver)
		if i%2 == 1 {
			c = client(t, e.Second)
		}
		wg.Go(func() { errs[i] = c.EnsureTopics(ctx(t), spec) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
