package stream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/window"
)

// restart kills the process and starts it again.
func (s *scene) restart() {
	s.t.Helper()
	s.tt.Settle()
	s.app.Crash()
	s.app.Restart()
}

func TestFinalsComeOnceAcrossARestart(t *testing.T) {
	w := window.Hopping(ms(10), ms(5), ms(5))
	s := playWindows(t, w, adding())
	s.send("in", "A:1@0", "B:2@5", "C:3@15")
	s.news("out")
	s.shows(w, "", "A[0-10]=0+1@0 B[0-10]=0+2@5")
	s.restart()
	s.send("in", "D:4@25")
	s.news("out")
	s.shows(w, "", "B[5-15]=0+2@5 C[10-20]=0+3@15")
}

func TestStreamTimeSurvivesARestart(t *testing.T) {
	w := window.Tumbling(10*time.Second, window.NoGrace)
	s := playWindows(t, w, counter())
	s.send("in", "k:v@5000", "k:v@25000")
	s.shows(w, "k[0-10000]=1@5000 k[20000-30000]=1@25000", "k[0-10000]=1@5000")
	s.restart()
	s.send("in", "k:v@7000")
	s.shows(w, "", "")
	s.wants("late", "k:v@7000")
}

func TestSessionsAndSlidingWindowsGoOnAfterARestart(t *testing.T) {
	w := window.Session(ms(5), ms(2))
	s := playWindows(t, w, adding())
	s.send("in", "k:a@0", "k:b@4")
	s.restart()
	s.send("in", "k:c@8")
	s.restart()
	s.send("in", "k:d@16", "k:e@1")
	s.shows(w, "k[0-0]=0+a@0 k[0-0]=⊥@0 k[0-4]=0+a+b@4 k[0-4]=⊥@4 k[0-8]=0+a+b+c@8 k[16-16]=0+d@16", "k[0-8]=0+a+b+c@8")
	s.wants("late", "k:e@1")

	w = window.Sliding(ms(5), ms(2))
	s = playWindows(t, w, adding())
	s.send("in", "k:a@10", "k:b@14")
	s.restart()
	s.send("in", "k:c@12")
	s.shows(w, "k[5-10]=0+a@10 k[9-14]=0+a+b@14 k[11-16]=0+b@14 k[7-12]=0+a+c@12 k[9-14]=0+a+b+c@14 k[11-16]=0+b+c@14 k[13-18]=0+b@14", "k[5-10]=0+a@10")
	s.restart()
	s.send("in", "k:d@99")
	s.news("out")
	s.shows(w, "", "k[7-12]=0+a+c@12 k[9-14]=0+a+b+c@14 k[11-16]=0+b+c@14 k[13-18]=0+b@14")
}

// What a window takes while it changes hands is in its result, once.
func TestFinalComesOnceWhenItsOwnerIsGone(t *testing.T) {
	w := window.Tumbling(10*time.Second, window.NoGrace)
	b := stream.NewBuilder("g")
	stream.From(b, text("in")).GroupByKey().Windowed(w).Count().OnClose().To(counts("final", w))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	tt := tester.New(t, tester.WithPartitions(1))
	tt.CreateTopic("in", 1)
	tt.CreateTopic("final", 1)
	procs := map[string]*processor.Processor{}
	insts := map[string]*tester.Instance{}
	for _, name := range []string{"one", "two"} {
		insts[name] = tt.Start(name, func(i *tester.Instance) (_ []reka.Runner, err error) {
			procs[name], err = processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
			return []reka.Runner{procs[name]}, err
		})
	}
	tt.Advance(time.Minute)
	tt.SendRaw("in", 0, recordAt("k", "a", 1000), recordAt("k", "b", 2000), recordAt("k", "c", 9000))
	tt.Settle()
	owner := "one"
	if len(procs["two"].Stats().Partitions) > 0 {
		owner = "two"
	}
	if n := len(procs[owner].Stats().Partitions); n != 1 {
		t.Fatalf("%s has %d partitions", owner, n)
	}
	insts[owner].Crash()
	tt.Advance(2 * time.Minute)
	tt.SendRaw("in", 0, recordAt("k", "d", 12000))
	tt.Advance(time.Minute)
	finals := tt.Raw("final", 0)
	if got := show(finals); got != `"k\x00\x00\x00\x00\x00\x00\x00\x00"="`+fmt.Sprintf("%q", encoded(3))[1:]+"@9000\n" {
		t.Error(got)
	}
}

// encoded is a count as it is in a topic.
func encoded(n int64) string {
	b, _ := codec.Int64().Append(nil, n)
	return string(b)
}

// A changelog may hold the delete of a row whose insert was compacted away.
func TestDeletesOfRowsThatAreNotThereAreRestored(t *testing.T) {
	key := func(line byte) []byte { return append([]byte{line, 0, 0, 0, 0, 0, 0, 0, 7}, "x"...) }
	for name, build := range windowGraphs() {
		t.Run(name, func(t *testing.T) {
			want := trial{build: build}.run(t, [][]record{{recordAt("y", "1", 1)}, {recordAt("end", "2", 1000)}})
			s := play(t, "in", build)
			s.send("in", "y:1@1")
			s.app.Crash()
			for _, part := range s.graph.Describe().Subgraphs {
				for _, st := range part.Stores {
					for line := range byte(6) {
						s.tt.SendRaw(st.Changelog, 0, kafka.Record{Key: key(line)}, kafka.Record{Key: []byte{line}}, kafka.Record{Key: []byte{line, 'x'}})
					}
				}
			}
			s.tt.Advance(time.Minute)
			s.tt.Start("another", func(i *tester.Instance) ([]reka.Runner, error) {
				p, err := processor.New(i.Client(), s.graph, processor.WithStorage(i.Storage()))
				return []reka.Runner{p}, err
			})
			s.send("in", "end:2@1000")
			for topic, records := range want.topics {
				same(t, topic, show(s.tt.Raw(topic, 0)), records)
			}
		})
	}
}
