package systemtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// contents are the records of topics, by name without the suffix and by
// partition.
type contents map[string][][]kafka.Record

// records returns how many there are.
func (c contents) records() (n int) {
	for _, parts := range c {
		for _, p := range parts {
			n += len(p)
		}
	}
	return n
}

// input makes records for all inputs: out of order, mostly within the grace of
// the windows, with a record far behind them that closes what is open.
func (s streams) input(seed uint64, perPartition int) contents {
	rng := rand.New(rand.NewPCG(seed, 1))
	day := time.Now().UTC().Truncate(24*time.Hour).UnixMilli() - 24*time.Hour.Milliseconds()
	keys := s.keys(3)
	out := contents{}
	for _, name := range []string{"events", "left", "right", "rows", "side"} {
		out[name] = make([][]kafka.Record, s.Partitions)
		for p := range out[name] {
			now := day
			for i := range perPartition {
				now += rng.Int64N(20)
				r := kafka.Record{Key: []byte(keys[p][rng.IntN(len(keys[p]))]), Value: fmt.Append(nil, name[:1], i), Timestamp: now}
				switch rng.IntN(40) {
				case 0: // late for most
					r.Timestamp = max(day, now-rng.Int64N(500))
				case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12:
					r.Timestamp = max(day, now-rng.Int64N(100))
				case 13, 14, 15, 16:
					if streamsInputs[name] {
						r.Value = nil
					}
				case 17: // all windows close
					now += rng.Int64N(1000)
				}
				out[name][p] = append(out[name][p], r)
			}
			last := keys[p][0]
			out[name][p] = append(out[name][p], kafka.Record{Key: []byte(last), Value: []byte("end0"), Timestamp: day + time.Hour.Milliseconds()})
		}
	}
	return out
}

// keys returns n keys of each partition. They end in a digit.
func (s streams) keys(n int) [][]string {
	place := kafka.Murmur2()
	out := make([][]string, s.Partitions)
	for i := 0; short(out, n); i++ {
		key := fmt.Sprint("key-", i)
		if p := place.Partition([]byte(key), s.Partitions); len(out[p]) < n {
			out[p] = append(out[p], key)
		}
	}
	return out
}

// inTester runs the application undisturbed, in a tester.
func (s streams) inTester(t *testing.T, in contents) contents {
	t.Helper()
	tt := tester.New(t, tester.WithPartitions(s.Partitions), tester.WithPatience(time.Minute), tester.WithLogger(zap.NewNop()))
	for name := range streamsInputs {
		tt.CreateTopic(s.topic(name), s.Partitions)
		for p, records := range in[name] {
			tt.SendRaw(s.topic(name), int32(p), records...)
		}
	}
	for name := range streamsOutputs {
		tt.CreateTopic(s.topic(name), s.Partitions)
	}
	g, err := s.graph()
	if err != nil {
		t.Fatal(err)
	}
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return []reka.Runner{p}, err
	})
	tt.Settle()
	if err := app.Stop(); err != nil {
		t.Fatal(err)
	}
	out := contents{}
	for name := range streamsOutputs {
		for p := range s.Partitions {
			out[name] = append(out[name], tt.Raw(s.topic(name), p))
		}
	}
	for _, changelog := range changelogs(g) {
		for p := range s.Partitions {
			out[changelog] = append(out[changelog], tt.Raw(changelog, p))
		}
	}
	t.Logf("%d records, %d results", in.records(), out.records())
	return out
}

// changelogs returns the names of a graph's changelogs.
func changelogs(g *processor.Graph) (out []string) {
	for _, part := range g.Describe().Subgraphs {
		for _, st := range part.Stores {
			out = append(out, st.Changelog)
		}
	}
	return out
}

// split parts the records of a topic: half of them come later.
func (c contents) split(topic string) (now, later contents) {
	now, later = maps.Clone(c), contents{topic: make([][]kafka.Record, len(c[topic]))}
	now[topic] = make([][]kafka.Record, len(c[topic]))
	for p, records := range c[topic] {
		now[topic][p], later[topic][p] = records[:len(records)/2], records[len(records)/2:]
	}
	return now, later
}

// create creates the topics of inputs and results.
func (s streams) create(t *testing.T, b broker, c *kafka.Client) {
	t.Helper()
	for name := range streamsOutputs {
		b.topics(t, c, s.Partitions, s.topic(name))
	}
	for name, table := range streamsInputs {
		spec := kafka.TopicSpec{Name: s.topic(name), Partitions: s.Partitions}
		if table {
			spec.Configs = kafka.ChangelogConfigs()
		}
		if err := c.EnsureTopics(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
}

// load writes records to inputs.
func (s streams) load(t *testing.T, b broker, in contents) {
	t.Helper()
	p, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var all []*kgo.Record
	for name, parts := range in {
		for i, records := range parts {
			for _, r := range records {
				all = append(all, &kgo.Record{
					Topic: s.topic(name), Partition: int32(i), Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp),
				})
			}
		}
	}
	if err := p.ProduceSync(t.Context(), all...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
