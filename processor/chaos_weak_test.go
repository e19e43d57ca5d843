package processor_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// weak are faults that random schedules must find, each within a few, or that
// must show in a scene, or both. Claims look at the offsets that they rest on
// a second time; where that alone would find the fault, it is blinded.
var weak = []planted{
	{name: "pending offsets of a former owner are not waited for", from: 10, scene: "an end is on its way when its writer is expelled", dirty: true, agrees: true},
	{name: "offsets are accepted of whoever sends them", rare: true, scene: "offsets are on their way when their writer is expelled", agrees: true, committer: func(by *kafka.Committer) {
		*by = kafka.Committer{Group: by.Group, Generation: -1}
	}},
	{name: "offsets are committed before the effects", from: 1, scene: "an owner sleeps through the tenure of another one", offsets: true},
	{name: "an unknown end is taken for an abort", from: 36, scene: "the answer to an end is lost", end: func(err error) error {
		if errors.Is(err, kafka.ErrOutcomeUnknown) {
			return kafka.ErrAbortable
		}
		return err
	}},
	{name: "an unknown end is taken for a commit", from: 10, scene: "an end is lost", end: func(err error) error {
		if errors.Is(err, kafka.ErrOutcomeUnknown) {
			return nil
		}
		return err
	}},
	{name: "a late request hits the next transaction", from: 28, scene: "an end is late and meets the next transaction", certain: true},
	{name: "readers see what is not committed", scene: "a fence order is late", fetcher: func(c *kafka.FetcherConfig) { c.Isolation = kafka.ReadUncommitted }},
	{name: "a restore ends one record early", from: 29, scene: "a static member is killed in a join and comes back", bound: func(_ string, end int64) int64 { return max(end-2, 0) }}, // the last offset is a control record's
	{name: "a restore ends at the last stable offset", rare: true, scene: "a partition moves and its rows are not yet stable", fetcher: oneByOne, ends: func(*plantedAdmin) kafka.Mark { return kafka.LastStable }},
	{name: "an epoch is judged by its offsets", rare: true, scene: "a visit is written while ends are lost", judged: true},
	{name: "a checkpoint is written before its rows", from: 88, disk: func(b storage.Builder) storage.Builder {
		return &plantedDisk{b, func(t storage.Table, rows []storage.Row, cp *storage.Checkpoint) error {
			if err := t.Apply(nil, cp); err != nil {
				return err
			}
			return t.Apply(rows, nil)
		}}
	}},
	{name: "deletes do not reach the disk", from: 1, disk: func(b storage.Builder) storage.Builder {
		return &plantedDisk{b, func(t storage.Table, rows []storage.Row, cp *storage.Checkpoint) error {
			var kept []storage.Row
			for _, r := range rows {
				if r.Value != nil {
					kept = append(kept, r)
				}
			}
			return t.Apply(kept, cp)
		}}
	}},
}

// oneByOne keeps a restore from reading further than it must, and so from
// finding by luck what it does not look for.
func oneByOne(c *kafka.FetcherConfig) { c.PartitionBytes = 1 }

// weakSeeds is how many schedules a fault may pass unnoticed.
const weakSeeds = 150

// The checker itself is worth something only if it finds what is wrong, and
// nothing where nothing is.
func TestChaosFindsPlantedFaults(t *testing.T) {
	for i := range weak {
		f := &weak[i]
		if f.rare {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			for n := range int64(weakSeeds) {
				seed := f.from + n
				found := attempt(t, func(tb testing.TB) { newChaos(tb, seed, f).run() })
				if found == "" {
					continue
				}
				t.Logf("seed %d: %.200s", seed, found)
				if wrong := attempt(t, func(tb testing.TB) { newChaos(tb, seed, &planted{}).run() }); wrong != "" {
					t.Errorf("seed %d fails without the fault: %s", seed, wrong)
				}
				return
			}
			t.Errorf("not noticed by %d schedules", weakSeeds)
		})
	}
}

// The scenes, too, are worth something only if a fault shows in them.
func TestScenesFindPlantedFaults(t *testing.T) {
	for i := range weak {
		f := &weak[i]
		if f.scene == "" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			found := attempt(t, func(tb testing.TB) {
				x := newExact(tb, sceneSize(f.scene))
				x.fault = f
				x.play(scenes[f.scene])
			})
			if found == "" {
				t.Errorf("not noticed when %s", f.scene)
			}
			t.Logf("%.200s", found)
		})
	}
}

// attempt runs f as a test of its own and returns its first failure, if there
// is one.
func attempt(t *testing.T, f func(testing.TB)) string {
	tr := &trial{TB: t}
	tr.run(func() { f(tr) })
	if !tr.Failed() {
		return ""
	}
	return tr.all[0]
}

// trial is a test whose failure is what is wanted.
type trial struct {
	testing.TB

	mu       sync.Mutex
	all      []string // guarded by mu; failures
	cleanups []func() // guarded by mu
}

// run runs f on a goroutine of its own, for which it waits, and then the
// cleanups.
func (t *trial) run(f func()) {
	t.guarded(f)
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.guarded(t.cleanups[i])
	}
}

func (t *trial) guarded(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (t *trial) note(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, s)
}

func (t *trial) Helper()                   {}
func (t *trial) Log(...any)                {}
func (t *trial) Logf(string, ...any)       {}
func (t *trial) Fail()                     { t.note("failed") }
func (t *trial) Error(a ...any)            { t.note(fmt.Sprint(a...)) }
func (t *trial) Errorf(f string, a ...any) { t.note(fmt.Sprintf(f, a...)) }

func (t *trial) FailNow() {
	t.Fail()
	runtime.Goexit()
}

func (t *trial) Fatal(a ...any) {
	t.Error(a...)
	runtime.Goexit()
}

func (t *trial) Fatalf(f string, a ...any) {
	t.Errorf(f, a...)
	runtime.Goexit()
}

func (t *trial) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all) > 0
}

func (t *trial) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}
