package processor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// stranger is a program beside the engine: a runner that does something with
// a driver and then waits for its end.
type stranger func(context.Context, kafka.Driver) error

func (s stranger) start(tt *tester.Tester, name string) *tester.Instance {
	return tt.Start(name, func(i *tester.Instance) ([]reka.Runner, error) {
		return []reka.Runner{strangerRunner{i.Client().Driver(), s}}, nil
	})
}

type strangerRunner struct {
	d  kafka.Driver
	do stranger
}

func (r strangerRunner) Run(ctx context.Context) error {
	done := make(chan error, 1)
	work.Go(r.d.Work(), func() { done <- r.do(ctx, r.d) }) // counts as running, as the engine's goroutines do; waited for here
	if err := <-done; err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// deal is a transaction of a stranger: records for partition 0 of a topic,
// committed, aborted, or left open.
type deal struct {
	records []kafka.Record
	end     string
}

// deals makes a stranger that does them one after the other.
func deals(topic string, all ...deal) stranger {
	return func(ctx context.Context, d kafka.Driver) error {
		open := 0 // what is open needs an id of its own; the others wait for each other's markers
		for _, one := range all {
			x, err := d.NewTransactor(kafka.TransactorConfig{ID: fmt.Sprint(topic, "-", open), Timeout: 24 * time.Hour})
			if err != nil {
				return err
			}
			if err := x.Init(ctx, false); err != nil {
				return err
			}
			x.Begin()
			x.Produce(kafka.Outgoing{TopicPartition: kafka.TopicPartition{Topic: topic}, Records: one.records, Done: func(kafka.Run) {}})
			if one.end == "open" {
				open++
				continue
			}
			if err := x.End(ctx, one.end == "commit"); err != nil {
				return err
			}
		}
		return nil
	}
}

// rowsOf is how many records the tasks of one partition read from changelogs
// or are still to read.
func rowsOf(p *processor.Processor, partition int32) (n int64, ok bool) {
	for _, part := range p.Stats().Partitions {
		if part.Partition == partition {
			return part.RestoredRows, part.State == "running"
		}
	}
	return 0, false
}

// The first owner stays up and gets its partition back: what it once knew of
// the log counts for nothing, what its store has does.
func TestPartitionThatComesBackReadsJustWhatWasWrittenElsewhere(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(2))
	in := tester.Input(tt, words)
	a, b := &rows{}, &rows{}
	tt.Start("a", func(i *tester.Instance) ([]reka.Runner, error) { return a.build(i) })
	keys := [2][]string{} // by partition
	for i := 0; len(keys[0]) < 1000 || len(keys[1]) < 1000; i++ {
		k := fmt.Sprint("k", i)
		p := kafka.Murmur2().Partition([]byte(k), 2)
		keys[p] = append(keys[p], k)
		in.Send(k, "old")
	}
	tt.Settle()
	tt.Advance(time.Minute) // flushed
	second := tt.Start("b", func(i *tester.Instance) ([]reka.Runner, error) { return b.build(i) })
	tt.Advance(time.Minute)
	moved := int32(-1)
	for p := range int32(2) {
		if _, ok := rowsOf(b.p, p); ok {
			moved = p
		}
	}
	if moved < 0 {
		t.Fatal("no partition moved")
	}
	if _, ok := rowsOf(a.p, moved); ok {
		t.Fatal("two owners")
	}
	for _, k := range keys[moved][:10] {
		in.Send(k, "new")
	}
	tt.Settle()
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	tt.Advance(time.Minute)
	read, running := rowsOf(a.p, moved)
	if !running || read != 10 {
		t.Errorf("running %t, %d rows read, want the 10 new ones", running, read)
	}
	all := a.all(t, tt)
	equal(t, "rows", len(all), len(keys[0])+len(keys[1]))
	for i, k := range keys[moved] {
		if want := map[bool]string{true: "new", false: "old"}[i < 10]; all[k] != want {
			t.Fatalf("%s = %q, want %q", k, all[k], want)
		}
	}
}

// A cold start of four processes, each of which finds the group in the middle
// of its restores, and input that waits.
func TestRebalancesInTheMiddleOfRestoresLoseNothing(t *testing.T) {
	const partitions, logged, waiting = 4, 10_000, 1000
	tt := tester.New(t, tester.WithPartitions(partitions))
	in, out := tester.Input(tt, words), tester.Output(tt, answers)
	tt.CreateTopic("g-table", partitions, "cleanup.policy", "compact")
	value := strings.Repeat("v", 500) // several fetches
	for p := range int32(partitions) {
		records := make([]kafka.Record, logged)
		for i := range records {
			records[i] = put(fmt.Sprintf("p%d-%d", p, i), value)
		}
		tt.SendRaw("g-table", p, records...)
		for i := range waiting {
			in.Send(fmt.Sprintf("p%d-%d", p, i), "x", reka.ToPartition(p))
		}
	}
	tt.Hook(func(c tester.Call) tester.Action { // a restore takes a few seconds
		if c.Op == tester.OpFetch && c.Topic == "g-table" {
			return tester.Delay(700 * time.Millisecond)
		}
		return tester.Proceed
	})
	var all []*processor.Processor
	restoring := 0
	for n := range 4 {
		tt.Start(fmt.Sprint("p", n), func(i *tester.Instance) ([]reka.Runner, error) {
			st, o := processor.Persist(table), processor.Output(answers)
			p, err := build(i, []processor.Edge{st, o, processor.Input(words, func(ctx *processor.Context, w string) error {
				v, ok := st.Get(ctx)
				st.Set(ctx, w)
				o.Emit(ctx, ctx.Key(), fmt.Sprint(ok, len(v)))
				return nil
			})}, anyway)
			all = append(all, p)
			return []reka.Runner{p}, err
		})
		tt.Advance(time.Second)
		for _, p := range all {
			for _, part := range p.Stats().Partitions {
				if part.State == "restoring" {
					restoring++
				}
			}
		}
	}
	if restoring < 4 {
		t.Fatalf("%d restores seen under way: the case needs rebalances in the middle of them", restoring)
	}
	tt.Advance(5 * time.Minute)
	times := map[string]int{}
	for _, r := range out.All() {
		times[r.Key]++
		if r.Value != "true 500" {
			t.Fatalf("%s found %s in the restored table", r.Key, r.Value)
		}
	}
	equal(t, "keys processed", len(times), partitions*waiting)
	equal(t, "records processed", out.Len(), partitions*waiting)
	owned := map[int32]int{}
	for _, p := range all {
		for _, part := range p.Stats().Partitions {
			owned[part.Partition]++
			equal(t, "state", part.State, "running")
		}
	}
	equal(t, "partitions owned", len(owned), partitions)
	if rows := tester.Table(tt, table).All(); len(rows) != partitions*logged || rows["p3-0"] != "x" || rows["p3-9999"] != value {
		t.Errorf("%d rows", len(rows))
	}
}

// What was handed out and not committed comes again, or goes on; nothing is
// jumped over, and nothing comes out of order.
func TestRebalanceOfAPartitionThatStaysJumpsOverNothing(t *testing.T) {
	for _, guarantee := range []processor.Guarantee{processor.ExactlyOnce, processor.AtLeastOnce, processor.WithoutTransactions} {
		tt := tester.New(t, tester.WithPartitions(1))
		in := tester.Input(tt, words)
		var mu sync.Mutex
		var seen []int64 // guarded by mu
		build := func(i *tester.Instance) ([]reka.Runner, error) {
			p, err := build(i, []processor.Edge{processor.Input(words, func(ctx *processor.Context, _ string) error {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, ctx.Offset())
				return nil
			})}, processor.WithGuarantee(guarantee), processor.WithCommitInterval(time.Second))
			return []reka.Runner{p}, err
		}
		tt.Start("app", build)
		for range 100 {
			in.Send("k", "v")
		}
		tt.Settle()
		tt.Advance(10 * time.Second)
		equal(t, "committed", tt.Committed("g", "words", 0), 100)
		for n := range 30 {
			in.Send("k", "v")
			if n%10 == 9 {
				tt.Rebalance("g")
			}
		}
		tt.Advance(30 * time.Second)
		next := int64(0)
		for _, offset := range seen {
			if offset > next {
				t.Fatalf("guarantee %v: offset %d came after %d", guarantee, offset, next-1)
			}
			next = max(next, offset+1)
		}
		equal(t, "offsets seen", next, 130)
		equal(t, "committed at the end", tt.Committed("g", "words", 0), 130)
	}
}

// Retention goes faster than the processor reads, in two of five partitions.
// What is lost is not passed over: the processor ends, by name and offsets,
// and the others have committed what they did.
func TestRetentionThatOvertakesARunningProcessorIsATypedError(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(5))
	in := tester.Input(tt, words)
	app := run(tt, "app", func() []processor.Edge {
		return []processor.Edge{processor.Input(words, func(*processor.Context, string) error { return nil })}
	})
	send := func(n int) {
		for p := range int32(5) {
			for range n {
				in.Send("k", "v", reka.ToPartition(p))
			}
		}
	}
	send(10)
	tt.Settle()
	tt.Advance(time.Second)
	tt.Hook(func(c tester.Call) tester.Action { // these two are slow
		if c.Op == tester.OpFetch && c.Topic == "words" && (c.Partition == 1 || c.Partition == 3) {
			return tester.Delay(time.Minute)
		}
		return tester.Proceed
	})
	send(20)
	tt.Advance(10 * time.Second)
	for _, p := range []int32{1, 3} {
		tt.DeleteRecords("words", p, 25)
	}
	tt.Advance(2 * time.Minute)
	err := app.Err()
	var out *kafka.OffsetOutOfRangeError
	if !errors.As(err, &out) || out.Topic != "words" || out.Partition != 1 && out.Partition != 3 || out.Position != 10 || out.LogStart != 25 || out.HighWatermark != 30 {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{out.TopicPartition.String(), "10", "25"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	var committed []int64
	for p := range int32(5) {
		committed = append(committed, tt.Committed("g", "words", p))
	}
	if want := []int64{30, 10, 30, 10, 30}; !slices.Equal(committed, want) {
		t.Errorf("committed %v, want %v", committed, want)
	}
}

// Markers, and records of aborted transactions, take offsets that nobody sees.
func TestOffsetsThatTransactionsTakeAreNoLoss(t *testing.T) {
	log, logs := warnings()
	tt := tester.New(t, tester.WithPartitions(1), tester.WithLogger(log))
	tester.Input(tt, words)
	var mu sync.Mutex
	var seen []int64 // guarded by mu
	app := run(tt, "app", func() []processor.Edge {
		return []processor.Edge{processor.Input(words, func(ctx *processor.Context, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, ctx.Offset())
			return nil
		})}
	})
	deals("words", deal{puts(0, 3, "a"), "commit"}, deal{puts(0, 2, "b"), "commit"}, deal{puts(0, 4, "c"), "abort"}, deal{puts(0, 1, "d"), "commit"}).start(tt, "stranger")
	tt.Settle()
	tt.Advance(time.Second)
	if want := []int64{0, 1, 2, 4, 5, 12}; !slices.Equal(seen, want) {
		t.Errorf("offsets %v, want %v", seen, want)
	}
	if at := tt.Committed("g", "words", 0); at != 13 && at != 14 {
		t.Errorf("committed %d, want 13 or, behind the marker, 14", at)
	}
	if err := app.Stop(); err != nil {
		t.Fatal(err)
	}
	app.Restart()
	tt.Settle()
	equal(t, "records seen", len(seen), 6)
	equal(t, "warnings", logs.Len(), 0)
}

// A looked up table and a joined one end in markers, in aborted records, or in
// a transaction that its writer left open: neither is waited for.
func TestTablesThatStrangersWriteInTransactionsHoldNothingUp(t *testing.T) {
	for name, test := range map[string]struct {
		deals []deal
		want  string
	}{
		"committed": {[]deal{{puts(0, 1, "1"), "commit"}}, "1"},
		"aborted":   {[]deal{{puts(0, 1, "1"), "commit"}, {puts(0, 3, "2"), "abort"}}, "1"},
		"open":      {[]deal{{puts(0, 1, "1"), "commit"}, {puts(0, 3, "2"), "open"}, {puts(0, 3, "3"), "commit"}}, "1"},
		"only open": {[]deal{{puts(0, 3, "2"), "open"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt := tester.New(t, tester.WithPartitions(1))
			in, out := tester.Input(tt, words), tester.Output(tt, answers)
			tester.Input(tt, names)
			facts := reka.NewTable("facts", words.Codec())
			tester.Input(tt, facts)
			for _, topic := range []string{"names", "facts"} {
				w := deals(topic, test.deals...).start(tt, "writer of "+topic)
				tt.Settle()
				w.Crash()
			}
			app := run(tt, "app", func() []processor.Edge {
				j, l, o := processor.Join(names, processor.TableFirst()), processor.Lookup(facts), processor.Output(answers)
				return []processor.Edge{j, l, o, processor.Input(words, func(ctx *processor.Context, w string) error {
					joined, _ := j.Get(ctx)
					found, _ := l.Get(ctx, ctx.Key())
					o.Emit(ctx, ctx.Key(), w+" "+joined+" "+found)
					return nil
				})}
			})
			for n := range 2 {
				in.Send("k0", "w")
				tt.Advance(time.Second)
				if got, want := out.Values(), fmt.Sprintf("w %s %s", test.want, test.want); len(got) != n+1 || got[n] != want {
					t.Fatalf("answers %q, want %q", got, want)
				}
				app.Crash()
				app.Restart()
			}
		})
	}
}
