package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
)

// What an application of every kind of operation writes is the same when its
// processes are killed again and again as when nothing happens to it, in a
// tester: updates, finals, joins and tables, each once and in order.
//
// Epochs are small: most end in the middle of the steps around a record.
func TestStreamsUnderKillsWriteWhatTheTesterSays(t *testing.T) {
	onBoth(t, false, func(t *testing.T, b broker) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		s := streams{Group: unique(t, "group"), Suffix: unique(t, "streams"), Partitions: 3}
		in := s.input(seed, 100)
		want := s.inTester(t, in)
		c := b.client(t)
		s.create(t, b, c)
		f := newFleet(t, b, s)
		f.client, f.watch, f.rng = c, s.watch(t, c), rand.New(rand.NewPCG(seed, 2))
		f.total = int64(in.records())
		now, later := in.split("events") // others are read by tasks with several inputs
		s.load(t, b, now)
		f.attack(t, 8, func() { s.load(t, b, later) })
		f.finish(t, want)
		s.compare(t, want, s.results(t, c))
		for changelog, got := range s.rows(t, c) {
			for _, d := range differences(lastValues(want[changelog]), lastValues(got)) {
				t.Errorf("%s: %s", changelog, d)
			}
		}
	})
}

// fleet are the processes of an application, by slot, and how far they are.
type fleet struct {
	streams

	rng       *rand.Rand
	client    *kafka.Client
	watch     *committedWatch
	total     int64
	specs     [2]streamsChild
	processes [2]*child // nil: none
}

func newFleet(t *testing.T, b broker, s streams) *fleet {
	t.Helper()
	f := &fleet{streams: s}
	for i := range f.specs {
		f.specs[i] = streamsChild{streams: s, Brokers: b.brokers, Dir: t.TempDir(), EpochBytes: []int{300, 2 << 10}[i]}
	}
	return f
}

// watch watches how much of the inputs is committed.
func (s streams) watch(t *testing.T, c *kafka.Client) *committedWatch {
	t.Helper()
	w := watchGroup(t, c, s.Group)
	for name := range streamsInputs {
		for p := range s.Partitions {
			w.parts = append(w.parts, kafka.TopicPartition{Topic: s.topic(name), Partition: p})
		}
	}
	return w
}

func (f *fleet) start(t *testing.T, slot int) {
	t.Helper()
	f.processes[slot] = f.specs[slot].spawn(t)
}

func (f *fleet) kill(slot int) {
	f.processes[slot].kill()
	f.processes[slot] = nil
}

// attack kills processes n times, evenly over the records that are there, each
// at a random moment. One has nobody beside it at first; then there are two.
// A disk is lost once, and a process does not come back for a while. More
// records come in the middle.
func (f *fleet) attack(t *testing.T, n int, more func()) {
	t.Helper()
	f.start(t, 0)
	f.processes[0].awaitReady(t)
	for i := range n {
		f.further(t, n-i)
		moment(t, time.Duration(f.rng.IntN(60))*time.Millisecond)
		slot := 0
		if f.processes[1] != nil {
			slot = f.rng.IntN(2)
		}
		f.kill(slot)
		switch i {
		case 1: // its disk is lost, too
			if err := os.RemoveAll(f.specs[slot].Dir); err != nil {
				t.Fatal(err)
			}
		case 3: // from now on there are two
			f.start(t, 1-slot)
			more()
		case 6: // the other one takes over
			f.further(t, n-i)
		}
		f.start(t, slot)
	}
}

// further waits until a part of the records that are left are committed, so
// that as many parts remain, and one more.
func (f *fleet) further(t *testing.T, parts int) {
	t.Helper()
	done := f.done(t)
	f.reached(t, done+(f.total-done)/int64(parts+2))
}

// done returns how many input records are committed.
func (f *fleet) done(t *testing.T) (sum int64) {
	t.Helper()
	for _, at := range f.watch.positions(t) {
		sum += max(at, 0)
	}
	return sum
}

// reached waits until a number of input records are committed.
func (f *fleet) reached(t *testing.T, n int64) {
	t.Helper()
	var at int64
	begun := time.Now()
	until(t, func() bool {
		f.alive(t)
		at = f.done(t)
		return at >= n
	}, func() string { return fmt.Sprintf("%d of %d records are committed, want %d", at, f.total, n) })
	t.Logf("%d of %d records are committed, %v later", at, f.total, time.Since(begun).Round(time.Millisecond))
}

// alive fails the test if a process has ended by itself.
func (f *fleet) alive(t *testing.T) {
	t.Helper()
	for _, p := range f.processes {
		if p == nil {
			continue
		}
		select {
		case <-p.out:
			t.Fatal("a process has ended")
		default:
		}
	}
}

// finish waits until there are as many results as there should be, and stops
// the processes.
func (f *fleet) finish(t *testing.T, want contents) {
	t.Helper()
	f.reached(t, f.total)
	lacks := ""
	until(t, func() bool {
		f.alive(t)
		got := f.results(t, f.client)
		lacks = f.lacks(want, got)
		return lacks == ""
	}, func() string {
		f.compare(t, want, f.results(t, f.client))
		return "results are missing: " + lacks
	})
	for _, p := range f.processes {
		if p != nil {
			p.stop(t)
		}
	}
}

// lacks says which topic has too few results.
func (s streams) lacks(want, got contents) string {
	for name, like := range streamsOutputs {
		if like == inOrder && (contents{name: got[name]}).records() < (contents{name: want[name]}).records() {
			return name
		}
		if like == atLast && len(differences(lastValues(want[name]), lastValues(got[name]))) > 0 {
			return name
		}
	}
	return ""
}

// results reads all outputs, committed records only.
func (s streams) results(t *testing.T, c *kafka.Client) contents {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := contents{}
	for name := range streamsOutputs {
		out[name] = readPartitions(ctx, t, c, s.topic(name))
	}
	return out
}

// rows reads the changelogs.
func (s streams) rows(t *testing.T, c *kafka.Client) contents {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, err := s.graph()
	if err != nil {
		t.Fatal(err)
	}
	out := contents{}
	for _, changelog := range changelogs(g) {
		out[changelog] = readPartitions(ctx, t, c, changelog)
	}
	return out
}

// compare fails the test where results differ.
func (s streams) compare(t *testing.T, want, got contents) {
	t.Helper()
	for name, like := range streamsOutputs {
		if like == atLast {
			for _, d := range differences(lastValues(want[name]), lastValues(got[name])) {
				t.Errorf("%s: %s", name, d)
			}
			continue
		}
		for p := range s.Partitions {
			w, g := shown(want[name][p]), shown(got[name][p])
			if !slices.Equal(w, g) {
				t.Errorf("%s/%d: %s", name, p, firstDifference(w, g))
			}
		}
	}
}

func shown(records []kafka.Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		value := "null"
		if r.Value != nil {
			value = fmt.Sprintf("%q", r.Value)
		}
		out[i] = fmt.Sprintf("%q=%s@%d", r.Key, value, r.Timestamp)
	}
	return out
}

func firstDifference(want, got []string) string {
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	return fmt.Sprintf("%d results, want %d; from %d on\n  got  %v\n  want %v", len(got), len(want), i,
		got[i:min(i+5, len(got))], want[i:min(i+5, len(want))])
}

// lastValues are the last values of the keys.
func lastValues(parts [][]kafka.Record) map[string]string {
	out := map[string]string{}
	for _, records := range parts {
		for _, r := range records {
			if out[string(r.Key)] = string(r.Value); r.Value == nil {
				delete(out, string(r.Key))
			}
		}
	}
	return out
}

func differences(want, got map[string]string) (out []string) {
	for k, w := range want {
		if g, ok := got[k]; !ok || g != w {
			out = append(out, fmt.Sprintf("%s is %q (%v), want %q", k, g, ok, w))
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			out = append(out, fmt.Sprintf("%s is %q, want none", k, g))
		}
	}
	return out
}
