package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/window"
)

// spread is a test with partitions that are written to by number.
type spread struct {
	t    *testing.T
	tt   *tester.Tester
	app  *tester.Instance
	proc *processor.Processor
}

// playSpread starts a graph on topics with n partitions.
func playSpread(t *testing.T, n int32, build func(*stream.Builder), opts ...processor.Option) *spread {
	t.Helper()
	b := stream.NewBuilder("g")
	build(b)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	s := &spread{t: t, tt: tester.New(t, tester.WithPartitions(n), tester.WithStartTime(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC)))}
	for _, name := range append(g.Inputs(), g.Outputs()...) {
		s.tt.CreateTopic(name, n)
	}
	s.app = s.tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		s.proc, err = processor.New(i.Client(), g, append([]processor.Option{processor.WithStorage(i.Storage())}, opts...)...)
		return []reka.Runner{s.proc}, err
	})
	return s
}

func (s *spread) send(partition int32, records ...record) {
	s.tt.SendRaw("in", partition, records...)
	s.tt.Settle()
}

// finals returns the counts of the topic final in a partition.
func (s *spread) finals(partition int32, w window.Windows) string {
	s.t.Helper()
	records := s.tt.Raw("final", partition)
	for i := range records {
		records[i].Value = []byte(fmt.Sprint(decoded(records[i].Value)))
	}
	return strings.Join(readable(s.t, w, records), " ")
}

func decoded(b []byte) (n int64) {
	for _, c := range b {
		n = n<<8 | int64(c)
	}
	return n
}

// counted returns a counter of a partition.
func (s *spread) counted(partition int32, name string) int64 {
	s.t.Helper()
	s.tt.Settle()
	for _, p := range s.proc.Stats().Partitions {
		if p.Partition == partition {
			return p.Counters[name]
		}
	}
	s.t.Fatalf("no partition %d", partition)
	return 0
}

func finalCounts(w window.Windows) func(*stream.Builder) {
	return func(b *stream.Builder) {
		stream.From(b, text("in")).GroupByKey().Windowed(w).Count().OnClose().To(counts("final", w))
	}
}

func TestHoppingWindowsHoldTheirRecordsOnly(t *testing.T) {
	w := window.Hopping(10*time.Second, 5*time.Second, window.NoGrace)
	s := playSpread(t, 1, finalCounts(w))
	for at := int64(0); at <= 28_000; at += 2000 {
		s.send(0, recordAt("k", "v", at))
	}
	s.send(0, recordAt("x", "v", 99_000))
	if got, want := s.finals(0, w), "k[0-10000]=5@8000 k[5000-15000]=5@14000 k[10000-20000]=5@18000 k[15000-25000]=5@24000 k[20000-30000]=5@28000 k[25000-35000]=2@28000"; got != want {
		t.Errorf("\n  got  %s\n  want %s", got, want)
	}
}

func TestAdvanceNeedNotDivideTheSize(t *testing.T) {
	w := window.Hopping(ms(10), ms(4), window.NoGrace)
	for at, want := range map[int64]string{
		9:  "k[0-10]=1@9 k[4-14]=1@9 k[8-18]=1@9",
		10: "k[4-14]=1@10 k[8-18]=1@10",
		14: "k[8-18]=1@14 k[12-22]=1@14",
	} {
		s := playSpread(t, 1, finalCounts(w))
		s.send(0, recordAt("k", "v", at), recordAt("x", "v", 99))
		if got := s.finals(0, w); got != want {
			t.Errorf("record at %d:\n  got  %s\n  want %s", at, got, want)
		}
	}
}

func TestHoppingFinalsHoldTheWholeSizeNotOneStep(t *testing.T) {
	w := window.Hopping(30*time.Second, 3*time.Second, window.NoGrace)
	s := playSpread(t, 1, finalCounts(w))
	for at := range int64(60) {
		s.send(0, recordAt("k", "v", at*1000))
	}
	var want []string
	for start := int64(0); start <= 27; start += 3 {
		want = append(want, fmt.Sprintf("k[%d-%d]=30@%d", start*1000, start*1000+30_000, start*1000+29_000))
	}
	if got := s.finals(0, w); got != strings.Join(want, " ") {
		t.Errorf("\n  got  %s\n  want %s", got, strings.Join(want, " "))
	}
}

func TestWindowsCloseInEveryPartition(t *testing.T) {
	w := window.Tumbling(5*time.Second, time.Second)
	s := playSpread(t, 4, finalCounts(w))
	for p := range int32(4) {
		s.send(p, recordAt(fmt.Sprint("key", p), "v", 1000))
	}
	for p := range int32(4) {
		s.send(p, recordAt("x", "v", 20_000))
		if got, want := s.finals(place(t, s.tt, fmt.Sprint("key", p)), w), fmt.Sprintf("key%d[0-5000]=1@1000", p); !strings.Contains(got, want) {
			t.Errorf("partition %d: %s, want %s", p, got, want)
		}
	}
}

// place returns the partition that holds the final result of a key.
func place(t *testing.T, tt *tester.Tester, key string) int32 {
	t.Helper()
	for p := range int32(4) {
		for _, r := range tt.Raw("final", p) {
			if strings.HasPrefix(string(r.Key), key) {
				return p
			}
		}
	}
	t.Errorf("no final result of %s", key)
	return 0
}

func TestLateRecordIsCountedAndLogged(t *testing.T) {
	const day = 24 * 3_600_000
	for grace, want := range map[time.Duration]int64{0: 1, 2 * time.Hour: 0} {
		w := window.Tumbling(24*time.Hour, grace)
		core, logs := observer.New(zap.WarnLevel)
		s := playSpread(t, 1, finalCounts(w), processor.WithLogger(zap.New(core)))
		s.send(0, recordAt("k", "v", 2*day+1000), recordAt("k", "v", 2*day-3_661_000), recordAt("k", "v", 5*day))
		if got := s.counted(0, "in-count: late"); got != want {
			t.Errorf("grace %v: counted %d", grace, got)
		}
		late := logs.FilterMessage("late record").All()
		if len(late) != int(want) {
			t.Errorf("grace %v: %d lines in the log", grace, len(late))
		}
		for _, l := range late {
			text := fmt.Sprint(l.ContextMap()["error"])
			for _, part := range []string{`key "k"`, fmt.Sprint(int64(2*day - 3_661_000)), fmt.Sprintf("window %d-%d", day, 2*day), fmt.Sprintf("stream time is %d", 2*day+1000)} {
				if !strings.Contains(text, part) {
					t.Errorf("%s: %s is missing", text, part)
				}
			}
		}
		if got := s.finals(0, w); strings.Contains(got, fmt.Sprintf("k[%d-%d]=1", day, 2*day)) != (want == 0) {
			t.Errorf("grace %v: %s", grace, got)
		}
	}
}

func TestNoGraceReleasesAtTheEnd(t *testing.T) {
	w := window.Tumbling(time.Minute, window.NoGrace)
	s := playSpread(t, 1, finalCounts(w))
	s.send(0, recordAt("k", "v", 0), recordAt("k", "v", 61_000))
	if got := s.finals(0, w); got != "k[0-60000]=1@0" {
		t.Error(got)
	}
}

// Keys that begin with each other, or look like the times beside them, are
// different keys all the same.
func TestKeysOfAnyBytesDoNotMixInWindows(t *testing.T) {
	keys := []string{"", "a", "aa", "a\x00", "a\xff", "\x00\x00\x00\x00\x00\x00\x00\x00", "a\x00\x00\x00\x00\x00\x00\x00\x01", "a\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff"}
	var batch []record
	for i := range 300 {
		batch = append(batch, recordAt(keys[i%len(keys)], fmt.Sprint(i), int64(i*i%60)))
	}
	batches := [][]record{batch, {recordAt("a", "far", 1<<62)}, {recordAt("end", "end", 1<<62+1000)}}
	for _, w := range []window.Windows{
		window.Tumbling(ms(10), ms(30)), window.Hopping(ms(10), ms(4), ms(30)), window.Sliding(ms(3), ms(50)), window.Session(ms(2), ms(50)),
	} {
		want := define(w, batches)
		got := trial{build: everyResult(w)}.run(t, batches)
		same(t, fmt.Sprint(w, ": updates"), strings.Join(readable(t, w, got.raw["out"]), "\n"), strings.Join(want.updates, "\n"))
		same(t, fmt.Sprint(w, ": finals"), strings.Join(readable(t, w, got.raw["final"]), "\n"), strings.Join(want.finals, "\n"))
		suppressed := trial{build: suppressedFinals(w)}.run(t, batches)
		same(t, fmt.Sprint(w, ": suppressed"), suppressed.topics["final"], got.topics["final"])
	}
}

func TestIdleTopicClosesNothingUnlessAskedTo(t *testing.T) {
	w := window.Tumbling(time.Minute, window.NoGrace)
	fill := func(s *spread) {
		base := s.tt.Now().Truncate(time.Minute).UnixMilli()
		for i := range int64(5) {
			s.send(0, recordAt("k", "v", base+i*1000))
		}
	}
	t.Run("event time alone", func(t *testing.T) {
		s := playSpread(t, 2, finalCounts(w))
		fill(s)
		s.tt.Advance(time.Hour)
		if got := s.finals(0, w) + s.finals(1, w); got != "" {
			t.Error(got)
		}
		// The other partition is silent and holds nothing back.
		s.send(0, recordAt("k2", "v", s.tt.Now().UnixMilli()))
		if got := s.finals(0, w) + s.finals(1, w); !strings.HasPrefix(got, "k[") || !strings.Contains(got, "=5@") {
			t.Error(got)
		}
	})
	t.Run("idle time", func(t *testing.T) {
		s := playSpread(t, 2, finalCounts(w), processor.WithIdleTime(10*time.Second))
		fill(s)
		s.tt.Advance(time.Hour)
		if got := s.finals(0, w) + s.finals(1, w); !strings.HasPrefix(got, "k[") || strings.Count(got, "=5@") != 1 {
			t.Error(got)
		}
	})
}

func TestZeroIsATime(t *testing.T) {
	w := window.Tumbling(time.Second, window.NoGrace)
	s := playSpread(t, 1, finalCounts(w))
	s.send(0, recordAt("k", "v", 0), recordAt("k", "v", 1000))
	if got := s.finals(0, w); got != "k[0-1000]=1@0" {
		t.Error(got)
	}
}

func TestRecordFarInTheFuture(t *testing.T) {
	w := window.Tumbling(time.Minute, window.NoGrace)
	build := func(opts ...stream.SourceOption) func(*stream.Builder) {
		return func(b *stream.Builder) {
			stream.From(b, text("in"), opts...).GroupByKey().Windowed(w).Count().To(counts("final", w))
		}
	}
	fill := func(s *spread) {
		now := s.tt.Now().Truncate(time.Minute).UnixMilli()
		s.send(0, recordAt("k", "first", now))
		s.send(0, recordAt("k", "bad", now+3650*24*3_600_000))
		for i := range int64(100) {
			s.send(0, recordAt("k", "v", now+i*3000))
		}
		s.send(1, recordAt("other", "v", now), recordAt("other", "v", now+1))
	}
	t.Run("makes others late, which are counted", func(t *testing.T) {
		s := playSpread(t, 2, build())
		fill(s)
		if got := s.counted(0, "in-count: late"); got != 100 {
			t.Errorf("counted %d", got)
		}
		if got := s.counted(1, "in-count: late"); got != 0 {
			t.Errorf("counted %d in the other partition", got)
		}
	})
	t.Run("is refused where there is a bound", func(t *testing.T) {
		s := playSpread(t, 2, build(processor.MaxFuture(time.Hour)))
		fill(s)
		if got := s.counted(0, "in-count: late"); got != 0 {
			t.Errorf("counted %d", got)
		}
		all := s.finals(0, w) + s.finals(1, w)
		if strings.Count(all, "k[") != 101 {
			t.Errorf("%d updates of k", strings.Count(all, "k["))
		}
		for _, p := range s.proc.Stats().Partitions {
			if want := int64(1 - p.Partition); p.Future != want {
				t.Errorf("partition %d refused %d", p.Partition, p.Future)
			}
		}
	})
}

func TestMergedAndRepartitionedRecordsAreCountedOnce(t *testing.T) {
	s := play(t, "a b", func(b *stream.Builder) {
		both := stream.From(b, text("a")).Merge(stream.From(b, text("b"))).Repartition()
		n := both.GroupByKey().Count()
		stream.MapValues(stream.Changes(n), func(_ string, n int64) string { return fmt.Sprint(n) }).WithCodec(text("out").Codec()).To(text("out"))
	})
	s.send("a", "k:x@1", "k:x@2")
	s.send("b", "k:y@3")
	s.wants("out", "k:1@1 k:2@2 k:3@3")
}

func TestTimesSurviveARepartition(t *testing.T) {
	w := window.Tumbling(time.Minute, window.NoGrace)
	s := play(t, "in", func(b *stream.Builder) {
		in := stream.From(b, text("in")).GroupBy(func(_, v string) string { return v }).Windowed(w)
		stream.AggregateWindows(in, counter(), stream.WithCodec(text("").Codec())).To(windows("out", w))
	})
	s.send("in", "k:v@1000", "k:v@61000")
	if got := s.results("out", w); got != "v[0-60000]=1@1000 v[60000-120000]=1@61000" {
		t.Error(got)
	}
}
