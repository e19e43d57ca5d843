package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
)

// scene is a graph under test: topics of strings, one partition.
type scene struct {
	t     *testing.T
	tt    *tester.Tester
	app   *tester.Instance
	graph *processor.Graph
	now   *processor.Processor // as it was started last
	ins   map[string]*tester.InputTopic[string]
	seen  map[string]int // records of an output that were read
}

// text is a stream of strings.
func text(name string) reka.Stream[string] { return reka.NewStream(name, codec.String()) }

// rows is a table of strings.
func rows(name string) reka.Table[string] { return reka.NewTable(name, codec.String()) }

// play starts the graph that build declares, with the input topics named.
func play(t *testing.T, inputs string, build func(*stream.Builder)) *scene {
	t.Helper()
	s := playLater(t, inputs, build)
	s.start()
	return s
}

// playLater is play for a graph that does not start by itself.
func playLater(t *testing.T, inputs string, build func(*stream.Builder)) *scene {
	t.Helper()
	b := stream.NewBuilder("g")
	build(b)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, tt: tester.New(t, tester.WithPartitions(1)), graph: g, ins: map[string]*tester.InputTopic[string]{}, seen: map[string]int{}}
	for name := range strings.FieldsSeq(inputs) {
		s.ins[name] = tester.Input(s.tt, text(name))
	}
	for _, name := range g.Outputs() {
		s.tt.CreateTopic(name, 1)
	}
	return s
}

// start starts the graph.
func (s *scene) start() { s.startOn("app") }

// startOn starts the graph as an instance with a disk of its own.
func (s *scene) startOn(instance string) {
	s.t.Helper()
	s.app = s.tt.Start(instance, func(i *tester.Instance) ([]reka.Runner, error) {
		p, err := processor.New(i.Client(), s.graph, processor.WithStorage(i.Storage()))
		s.now = p
		return []reka.Runner{p}, err
	})
}

// send writes records, as "key:value@time" in milliseconds; an empty value
// deletes, and a key of "⊥" is none.
func (s *scene) send(topic string, records ...string) {
	s.t.Helper()
	for _, r := range records {
		var ms int64
		kv, at, _ := strings.Cut(r, "@")
		if _, err := fmt.Sscan(at, &ms); err != nil {
			s.t.Fatalf("record %q: %v", r, err)
		}
		key, value, _ := strings.Cut(kv, ":")
		opts := []reka.EmitOption{reka.At(time.UnixMilli(ms))}
		if key == "⊥" {
			key, opts = "", append(opts, reka.NullKey())
		}
		if value == "" {
			s.ins[topic].Delete(key, opts...)
		} else {
			s.ins[topic].Send(key, value, opts...)
		}
	}
	s.tt.Settle()
}

// news returns what came to a topic since the last call, as send writes it.
func (s *scene) news(topic string) string {
	s.t.Helper()
	s.tt.Settle()
	all := s.tt.Raw(topic, 0)
	var out []string
	for _, r := range all[s.seen[topic]:] {
		key, value := "⊥", ""
		if r.Key != nil {
			key = string(r.Key)
		}
		if r.Value != nil {
			value = string(r.Value)
		}
		out = append(out, fmt.Sprintf("%s:%s@%d", key, value, r.Timestamp))
	}
	s.seen[topic] = len(all)
	return strings.Join(out, " ")
}

// wants checks what came to a topic since the last call.
func (s *scene) wants(topic, want string) {
	s.t.Helper()
	if got := s.news(topic); got != want {
		s.t.Errorf("%s:\n  got  %s\n  want %s", topic, got, want)
	}
}
