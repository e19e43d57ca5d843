package processor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// weak are the faults that random schedules must find, each within a few.
var weak = []planted{
	{name: "pending offsets of a former owner are not waited for", dirty: true},
	{name: "offsets are accepted of whoever sends them", committer: func(by *kafka.Committer) {
		*by = kafka.Committer{Group: by.Group, Generation: -1}
	}},
	{name: "offsets are committed before the effects", offsets: true},
	{name: "an unknown end is taken for an abort", end: func(err error) error {
		if errors.Is(err, kafka.ErrOutcomeUnknown) {
			return kafka.ErrAbortable
		}
		return err
	}},
	{name: "an unknown end is taken for a commit", end: func(err error) error {
		if errors.Is(err, kafka.ErrOutcomeUnknown) {
			return nil
		}
		return err
	}},
	{name: "an epoch is kept although its task was lost and came back", member: func(c *kafka.MemberConfig) {
		assigned, lost := c.Assigned, c.Lost
		c.Assigned = func(a kafka.Assignment) {
			a.Rejoined = true
			assigned(a)
		}
		c.Lost = func(err error) {
			if kafka.Permanent(err) {
				lost(err)
			}
		}
	}},
	{name: "a late request hits the next transaction", certain: true},
	{name: "readers see what is not committed", fetcher: func(c *kafka.FetcherConfig) { c.Isolation = kafka.ReadUncommitted }},
	{name: "a restore ends one record early", bound: func(_ string, end int64) int64 { return max(end-2, 0) }}, // the last offset is a control record's
	{name: "a restore ends at the last stable offset", fetcher: oneByOne, ends: func(*plantedAdmin) kafka.Mark { return kafka.LastStable }},
	{name: "ends are taken before the offsets are stable", fetcher: oneByOne, stable: (*plantedMember).takeEnds},
	{name: "an epoch is judged by its offsets", judged: true},
	{name: "a checkpoint is written before its rows", disk: func(b storage.Builder) storage.Builder {
		return &plantedDisk{b, func(t storage.Table, rows []storage.Row, cp *storage.Checkpoint) error {
			if err := t.Apply(nil, cp); err != nil {
				return err
			}
			return t.Apply(rows, nil)
		}}
	}},
	{name: "deletes do not reach the disk", disk: func(b storage.Builder) storage.Builder {
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

// takeEnds notes the ends of the changelogs of the partitions that are about
// to be taken over.
func (m *plantedMember) takeEnds(tps []kafka.TopicPartition) {
	admin := m.d.Driver.Admin()
	for _, topic := range []string{"g-table", "tally-table", "tally-seen-changelog", "sum-table", "sum-ledger-changelog", "sum-hits-changelog"} {
		for p := range int32(chaosPartitions) {
			tp := kafka.TopicPartition{Topic: topic, Partition: p}
			got, err := admin.Offsets(context.Background(), kafka.HighWatermark, tp)
			if err != nil {
				continue // not its own: it is not there yet
			}
			m.d.mu.Lock()
			m.d.early[tp] = got[tp]
			m.d.mu.Unlock()
		}
	}
}

// weakSeeds is how many schedules a fault may pass unnoticed.
const weakSeeds = 60

// The checker itself is worth something only if it finds what is wrong.
func TestChaosFindsPlantedFaults(t *testing.T) {
	for i := range weak {
		f := &weak[i]
		t.Run(f.name, func(t *testing.T) {
			for seed := range int64(weakSeeds) {
				tr := &trial{TB: t}
				if tr.run(func() { newChaos(tr, seed, f).run() }); tr.Failed() {
					t.Logf("seed %d: %.200s", seed, tr.all[0])
					return
				}
			}
			t.Errorf("not noticed by %d schedules", weakSeeds)
		})
	}
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
