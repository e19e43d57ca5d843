package differential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
)

// Reka runs cases through package stream in a tester. It may be used by
// several goroutines.
type Reka struct {
	tb testing.TB

	// Trouble, if not 0, is the seed of what happens to the process on the way:
	// it is killed, in the middle of a request too, or stopped, or goes on
	// elsewhere, without what it has on disk. None of that may change a result.
	Trouble uint64

	ends atomic.Int64 // of processes, on the way
}

var (
	_ Runner = (*Reka)(nil)
	_ Many   = (*Reka)(nil)
)

// NewReka returns a Runner for the life of a test.
func NewReka(tb testing.TB) *Reka { return &Reka{tb: tb} } //nolint:thelper // it makes one

// Many is a Runner that runs several cases at once quicker than one after the
// other.
type Many interface {
	RunAll([]Case) ([][]Output, error)
}

// Run runs a case in a graph of its own.
func (r *Reka) Run(c Case) ([]Output, error) {
	out, err := r.RunAll([]Case{c})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// RunAll runs cases in one graph, each as a subgraph of its own with topics of
// its own: a subgraph is a task with its own time, so that they know nothing
// of each other. An input of each is sent before all settle, instead of an
// input of one.
func (r *Reka) RunAll(cases []Case) ([][]Output, error) {
	acts, err := r.perform(cases)
	if err != nil {
		return nil, err
	}
	out := make([][]Output, len(acts))
	for i, a := range acts {
		out[i] = a.out
	}
	return out, nil
}

// perform runs cases and returns all that is known of them afterwards.
func (r *Reka) perform(cases []Case) (acts []act, err error) {
	s := &stage{TB: r.tb, ends: &r.ends}
	if r.Trouble != 0 {
		s.trouble = rand.New(rand.NewPCG(r.Trouble, 0))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.end()
		acts, err = s.play(cases)
	}()
	<-done
	if err == nil {
		err = s.err
	}
	if err != nil && len(s.log) > 0 {
		err = fmt.Errorf("%w\n%s", err, strings.Join(s.log, "\n"))
	}
	return acts, err
}

// stage is what a tester takes for its test, so that its failures become
// errors, and it ends before the test does. It has a goroutine of its own.
type stage struct {
	testing.TB

	trouble  *rand.Rand // nil: none
	tt       *tester.Tester
	app      *tester.Instance
	lives    int // instances that were started
	ends     *atomic.Int64
	cleanups []func()

	mu  sync.Mutex
	log []string
	err error
}

// Helper does nothing: what fails is reported elsewhere.
func (s *stage) Helper() {}

// Logf keeps what is logged, for the error.
func (s *stage) Logf(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, a...))
}

// Cleanup calls f when the stage ends.
func (s *stage) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// Context ends with the stage's test.
func (s *stage) Context() context.Context { return s.TB.Context() }

// Failed reports whether there is an error.
func (s *stage) Failed() bool { return s.err != nil }

// Errorf keeps the error.
func (s *stage) Errorf(format string, a ...any) { s.err = errors.Join(s.err, fmt.Errorf(format, a...)) }

// Fatalf keeps the error and ends the stage.
func (s *stage) Fatalf(format string, a ...any) {
	s.Errorf(format, a...)
	runtime.Goexit()
}

func (s *stage) end() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		defer s.cleanups[len(s.cleanups)-1-i]()
	}
}

// play runs the cases on the stage's goroutine.
func (s *stage) play(cases []Case) ([]act, error) {
	b := stream.NewBuilder("g")
	acts := make([]act, len(cases))
	longest := 0
	for i, c := range cases {
		acts[i] = newAct(c, strconv.Itoa(i))
		if err := acts[i].declare(b); err != nil {
			return nil, err
		}
		longest = max(longest, len(c.Inputs))
	}
	g, err := b.Graph()
	if err != nil {
		return nil, err
	}
	// Late records are warned of one by one.
	s.tt = tester.New(s, tester.WithPartitions(1), tester.WithLogger(zaptest.NewLogger(s, zaptest.Level(zap.ErrorLevel))))
	for _, a := range acts {
		for _, topic := range a.topics() {
			s.tt.CreateTopic(topic, 1)
		}
	}
	s.start(g)
	for step := range longest {
		s.threaten()
		for i := range acts {
			acts[i].send(s.tt, step)
		}
		s.tt.Settle()
		s.disturb(g)
		for i := range acts {
			acts[i].read(s.tt, step)
		}
		if err := s.app.Err(); err != nil {
			return nil, fmt.Errorf("input %d: %w", step, err)
		}
	}
	for i := range acts {
		acts[i].look(s.tt, g)
	}
	return acts, nil
}

// start starts a process that has nothing on disk.
func (s *stage) start(g *processor.Graph) {
	s.lives++
	s.app = s.tt.Start("app"+strconv.Itoa(s.lives), func(i *tester.Instance) ([]reka.Runner, error) {
		opts := []processor.Option{processor.WithStorage(i.Storage())}
		if s.trouble != nil { // epochs end within what one record does
			opts = append(opts, processor.WithTuning(processor.Tuning{EpochBytes: 1 + s.trouble.IntN(400)}))
		}
		p, err := processor.New(i.Client(), g, opts...)
		return []reka.Runner{p}, err
	})
	s.tt.Settle()
}

// threaten may let the process die in one of the requests to come.
func (s *stage) threaten() {
	if s.trouble == nil || s.trouble.IntN(6) > 0 {
		return
	}
	ops := []tester.Op{tester.OpProduce, tester.OpTxnOffsets, tester.OpEndTxn, tester.OpAddPartitions}
	s.tt.Fail(tester.Fault{
		Op: ops[s.trouble.IntN(len(ops))], Nth: 1 + s.trouble.IntN(12),
		Do: []tester.Action{tester.CrashBefore, tester.CrashWithin, tester.CrashAfter}[s.trouble.IntN(3)],
	})
}

// disturb may end the process, and starts it again if it has ended. What takes
// over may have to try again after a while, so that time passes then.
func (s *stage) disturb(g *processor.Graph) {
	if s.trouble == nil {
		return
	}
	ended := s.app.Crashed()
	switch s.trouble.IntN(24) {
	case 0:
		s.app.Crash()
	case 1:
		s.app.Restart()
		ended = true
	case 2:
		if err := s.app.Stop(); err != nil {
			s.Fatalf("stop: %v", err)
		}
		s.start(g)
		ended = true
	}
	for ended || s.app.Crashed() {
		s.ends.Add(1)
		if s.app.Crashed() {
			s.app.Restart()
		}
		s.tt.Advance(time.Minute)
		ended = false
	}
}

// act is a case on a stage.
type act struct {
	Case

	suffix string // of its topics
	key    func([]byte) (string, error)
	seen   int // results that were read
	out    []Output
	kept   []string // keys of the rows in its stores at the end
}

func newAct(c Case, suffix string) act {
	return act{Case: c, suffix: suffix, key: func(b []byte) (string, error) { return string(b), nil }}
}

// topics returns the names of the topics that it has.
func (a *act) topics() []string {
	all := []string{"L" + a.suffix, "out" + a.suffix}
	if a.Topology.two() {
		all = append(all, "R"+a.suffix)
	}
	return all
}

// send writes the input of a step, if there is one.
func (a *act) send(tt *tester.Tester, step int) {
	if step >= len(a.Inputs) {
		return
	}
	in := a.Inputs[step]
	tt.SendRaw(in.Topic+a.suffix, 0, kafka.Record{Key: bytesOf(in.Key), Value: bytesOf(in.Value), Timestamp: in.Time})
}

func bytesOf(s string) []byte {
	if s == Null {
		return nil
	}
	return []byte(s)
}

// read takes the results of a step.
func (a *act) read(tt *tester.Tester, step int) {
	all := tt.Raw("out"+a.suffix, 0)
	for _, r := range all[a.seen:] {
		o := Output{Step: step, Key: Null, Value: Null, Time: r.Timestamp}
		if r.Value != nil {
			o.Value = string(r.Value)
		}
		if r.Key != nil {
			var err error
			if o.Key, err = a.key(r.Key); err != nil {
				o.Key = strings.ToValidUTF8(string(r.Key), "?") + " (" + err.Error() + ")"
			}
		}
		a.out = append(a.out, o)
	}
	a.seen = len(all)
}

// look sees what is in the stores: each is known by its changelog.
func (a *act) look(tt *tester.Tester, g *processor.Graph) {
	for _, part := range g.Describe().Subgraphs {
		for _, store := range part.Stores {
			name, ok := strings.CutPrefix(store.Name[1:], a.suffix+"-")
			if !ok {
				continue
			}
			rows := map[string]bool{}
			for _, r := range tt.Raw(store.Changelog, 0) {
				if key := name + " " + strconv.Quote(string(r.Key)); r.Value != nil {
					rows[key] = true
				} else {
					delete(rows, key)
				}
			}
			a.kept = append(a.kept, slices.Sorted(maps.Keys(rows))...)
		}
	}
}
