package processor_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// late is a world in which the numbers of each key are 1, 2, 3…, and all are
// deferred, to be finished in any order.
type late struct {
	t    *testing.T
	tt   *tester.Tester
	in   *tester.InputTopic[int64]
	rng  *rand.Rand
	g    processor.Guarantee
	sent map[string]int64
	apps []*tester.Instance

	mu    sync.Mutex
	open  []slip   // guarded by mu; of all times
	wrong []string // guarded by mu
	ends  int      // guarded by mu; functions that ran
}

func newLate(t *testing.T, g processor.Guarantee, seed uint64) *late {
	tt := tester.New(t, tester.WithPartitions(2), tester.WithLogger(zap.NewNop()))
	l := &late{t: t, tt: tt, in: tester.Input(tt, numbers), rng: rand.New(rand.NewPCG(seed, 1)), g: g, sent: map[string]int64{}}
	tester.Output(tt, echoes)
	for _, name := range []string{"a", "b"} {
		l.apps = append(l.apps, l.start(name))
	}
	return l
}

func (l *late) start(name string) *tester.Instance {
	return l.tt.Start(name, func(i *tester.Instance) ([]reka.Runner, error) {
		sum, out := processor.Persist(sums), processor.Output(echoes)
		p, err := build(i, []processor.Edge{sum, out,
			processor.OnError(processor.Process, processor.Retry(1000, 50*time.Millisecond, processor.Fail)),
			processor.Input(numbers, func(ctx *processor.Context, n int64) error {
				apply := func(ctx *processor.Context) error {
					had, _ := sum.Get(ctx)
					if err := ctx.Failed(); err != nil {
						return err // of a process that was killed
					}
					l.mu.Lock()
					l.ends++
					if had != n-1 && l.g != processor.WithoutTransactions || had < n-1 {
						l.wrong = append(l.wrong, fmt.Sprintf("number %d of %s meets %d", n, ctx.Key(), had))
					}
					l.mu.Unlock()
					sum.Set(ctx, had+1)
					out.Emit(ctx, ctx.Key(), n)
					return nil
				}
				if n%5 == 0 {
					return apply(ctx)
				}
				l.mu.Lock()
				l.open = append(l.open, slip{ctx.Defer(), apply})
				l.mu.Unlock()
				return nil
			}),
		}, processor.WithGuarantee(l.g), processor.WithTuning(processor.Tuning{Unfinished: 6, FlushBytes: 1}))
		return []reka.Runner{p}, err
	})
}

// finish ends a deferred record of any time, one way or the other.
func (l *late) finish() {
	l.mu.Lock()
	if len(l.open) == 0 {
		l.mu.Unlock()
		return
	}
	at := l.rng.IntN(len(l.open))
	s := l.open[at]
	if l.rng.IntN(4) > 0 { // else somebody finishes it a second time
		l.open = slices.Delete(l.open, at, at+1)
	}
	l.mu.Unlock()
	switch l.rng.IntN(8) {
	case 0:
		s.Fail(errBad)
	case 1:
		s.Finish(func(ctx *processor.Context) error {
			_ = s.apply(ctx)
			panic(errBad)
		})
	case 2:
		s.Finish(func(ctx *processor.Context) error {
			l.mu.Lock()
			l.open = append(l.open, slip{ctx.Defer(), s.apply})
			l.mu.Unlock()
			return nil
		})
	default:
		s.Finish(s.apply)
	}
}

// step does something at random.
func (l *late) step() {
	switch n := l.rng.IntN(40); {
	case n < 12:
		k := fmt.Sprint("k", l.rng.IntN(6))
		l.sent[k]++
		l.in.Send(k, l.sent[k])
	case n < 28:
		l.finish()
	case n < 32:
		l.tt.Settle()
	case n < 36:
		l.tt.Advance(time.Duration(l.rng.IntN(200)) * time.Millisecond)
	case n == 36:
		l.tt.Expel("g", l.apps[l.rng.IntN(2)])
	default:
		app := l.apps[l.rng.IntN(2)]
		app.Crash()
		if l.rng.IntN(2) == 0 {
			l.tt.Advance(time.Duration(l.rng.IntN(20)) * time.Second)
		}
		app.Restart()
	}
}

// settle finishes whatever is open until all is committed.
func (l *late) settle() {
	want, done := int64(0), func() (n int64) {
		return max(0, l.tt.Committed("g", "numbers", 0)) + max(0, l.tt.Committed("g", "numbers", 1))
	}
	for _, n := range l.sent {
		want += n
	}
	for range 2000 {
		l.tt.Advance(100 * time.Millisecond)
		if done() == want {
			return
		}
		l.mu.Lock()
		open := l.open
		l.open = nil
		l.mu.Unlock()
		l.rng.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		for _, s := range open {
			s.Finish(s.apply)
		}
	}
	l.t.Errorf("%d of %d are committed", done(), want)
}

func (l *late) check() {
	for _, app := range l.apps {
		if err := app.Err(); err != nil {
			l.t.Error(err)
		}
	}
	for _, w := range l.wrong {
		l.t.Error(w)
	}
	table := tester.Table(l.tt, sums).All()
	if l.g == processor.WithoutTransactions {
		for k, n := range l.sent {
			if table[k] < n {
				l.t.Errorf("%s has come to %d, sent were %d", k, table[k], n)
			}
		}
	} else if !maps.Equal(table, l.sent) {
		l.t.Errorf("the table holds %v, sent were %v", table, l.sent)
	}
	seen := map[string]int64{}
	for _, r := range tester.Output(l.tt, echoes).All() {
		switch n := seen[r.Key]; {
		case r.Value == n+1:
			seen[r.Key]++
		case l.g == processor.ExactlyOnce || r.Value > n:
			l.t.Errorf("output %d of %s follows %d", r.Value, r.Key, n)
		}
	}
	if !maps.Equal(seen, l.sent) {
		l.t.Errorf("outputs have come to %v, sent were %v", seen, l.sent)
	}
}

// Records are finished in any order, failed, repeated and finished twice,
// while processes are killed, expelled and started again. Nothing is lost; with
// transactions rows are exact, and exactly once outputs are too.
func TestDeferredRecordsUnderAnySchedule(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 10
	}
	for guarantee, g := range guarantees {
		t.Run(guarantee, func(t *testing.T) {
			for seed := range seeds {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					l := newLate(t, g, uint64(seed))
					for range 150 {
						l.step()
					}
					l.settle()
					l.check()
					if l.ends == 0 {
						t.Error("nothing was deferred")
					}
				})
			}
		})
	}
}
