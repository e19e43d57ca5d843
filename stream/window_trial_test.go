package stream_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
)

// trial runs a graph that reads the topic in, partition 0, over given records.
type trial struct {
	build  func(*stream.Builder)
	tuning processor.Tuning
	// troubled, if set, makes the process die on the way.
	troubled *rand.Rand
	// nth, if set, makes it die in the nth commit after each batch but the first.
	nth int
}

// outcome is all that is to be seen of a trial in the end.
type outcome struct {
	topics   map[string]string // records of outputs, in order
	raw      map[string][]kafka.Record
	stores   map[string]string // rows of changelogs, in order of their keys
	counters map[string]int64
	crashes  int
}

// run processes the records in batches.
func (tr trial) run(t *testing.T, batches [][]record) outcome {
	t.Helper()
	b := stream.NewBuilder("g")
	tr.build(b)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	tt := tester.New(t, tester.WithPartitions(1))
	tt.CreateTopic("in", 1)
	for _, name := range g.Outputs() {
		tt.CreateTopic(name, 1)
	}
	var p *processor.Processor
	app := tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		p, err = processor.New(i.Client(), g, processor.WithStorage(i.Storage()), processor.WithTuning(tr.tuning))
		return []reka.Runner{p}, err
	})
	out := outcome{topics: map[string]string{}, raw: map[string][]record{}, stores: map[string]string{}, counters: map[string]int64{}}
	for i, records := range batches {
		if tr.nth > 0 && i > 0 {
			tt.Fail(tester.Fault{Op: tester.OpEndTxn, Nth: tr.nth, Do: tester.CrashAfter})
		}
		tr.trouble(tt)
		tt.SendRaw("in", 0, records...)
		tt.Settle()
		if tr.troubled != nil && tr.troubled.IntN(4) == 0 {
			app.Crash()
		}
		for app.Crashed() {
			out.crashes++
			app.Restart()
		}
	}
	tt.Settle()
	for app.Crashed() {
		out.crashes++
		app.Restart()
	}
	if err := app.Err(); err != nil {
		t.Fatal(err)
	}
	for _, part := range p.Stats().Partitions {
		for name, n := range part.Counters {
			if n > 0 {
				out.counters[name] += n
			}
		}
	}
	for _, name := range g.Outputs() {
		out.raw[name] = tt.Raw(name, 0)
		out.topics[name] = show(out.raw[name])
	}
	for _, part := range g.Describe().Subgraphs {
		for _, st := range part.Stores {
			out.stores[st.Name] = show(lastOfEachKey(tt.Raw(st.Changelog, 0)))
		}
	}
	return out
}

// trouble lets the process die in one of its next requests.
func (tr trial) trouble(tt *tester.Tester) {
	if tr.troubled == nil {
		return
	}
	ops := []tester.Op{tester.OpProduce, tester.OpTxnOffsets, tester.OpEndTxn, tester.OpAddPartitions}
	tt.Fail(tester.Fault{
		Op: ops[tr.troubled.IntN(len(ops))], Nth: 1 + tr.troubled.IntN(12),
		Do: []tester.Action{tester.CrashBefore, tester.CrashWithin, tester.CrashAfter}[tr.troubled.IntN(3)],
	})
}

func show(records []kafka.Record) string {
	var b strings.Builder
	for _, r := range records {
		value := "⊥"
		if r.Value != nil {
			value = fmt.Sprintf("%q", r.Value)
		}
		fmt.Fprintf(&b, "%q=%s@%d\n", r.Key, value, r.Timestamp)
	}
	return b.String()
}

func lastOfEachKey(records []kafka.Record) (out []kafka.Record) {
	last := map[string]kafka.Record{}
	for _, r := range records {
		if last[string(r.Key)] = r; r.Value == nil {
			delete(last, string(r.Key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		out = append(out, last[key])
	}
	return out
}

// recordAt is a record of the topic in.
func recordAt(key, value string, ms int64) kafka.Record {
	return kafka.Record{Key: []byte(key), Value: []byte(value), Timestamp: ms}
}

// disorder is a random input: times go on by up to step, and back by up to
// back; now and then they jump.
type disorder struct {
	keys       []string
	n          int
	step, back int64
	jump       int64
}

// records returns the input in batches, ended by a record far ahead of it.
func (d disorder) records(r *rand.Rand) [][]record {
	var out [][]record
	var batch []kafka.Record
	now := int64(0)
	for i := range d.n {
		now += r.Int64N(d.step + 1)
		if d.jump > 0 && r.IntN(20) == 0 {
			now += r.Int64N(d.jump)
		}
		at := now
		if r.IntN(3) == 0 {
			at = max(0, now-r.Int64N(d.back+1))
		}
		batch = append(batch, recordAt(d.keys[r.IntN(len(d.keys))], fmt.Sprint(i), at))
		if r.IntN(6) == 0 {
			out, batch = append(out, batch), nil
		}
	}
	return append(out, append(batch, recordAt("end", "end", now+1_000_000)), []record{recordAt("end", "end", now+2_000_000)})
}

// differs says where two outcomes differ.
func (o outcome) differs(other outcome) string {
	for what, m := range map[string][2]map[string]string{"topic": {o.topics, other.topics}, "store": {o.stores, other.stores}} {
		for name, want := range m[0] {
			if got := m[1][name]; got != want {
				return fmt.Sprintf("%s %s: %s", what, name, firstDifference(want, got))
			}
		}
	}
	return ""
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("of %d and %d lines, from line %d\n  want %q\n  got  %q", len(a), len(b), i, a[i:min(i+4, len(a))], b[min(i, len(b)):min(i+4, len(b))])
		}
	}
	return fmt.Sprintf("%d lines, want %d; more: %q", len(b), len(a), b[len(a):])
}

type record = kafka.Record

// seeds returns the number of random cases: n, or a quarter of it in short
// tests. REKA_SEEDS multiplies it.
func seeds(t *testing.T, n uint64) uint64 {
	t.Helper()
	if testing.Short() {
		n /= 4
	}
	if more, err := strconv.ParseUint(os.Getenv("REKA_SEEDS"), 10, 16); err == nil {
		n *= more
	}
	return n
}
