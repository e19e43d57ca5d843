package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
)

const partitions = 3

// truth is the activity by region and quarter, and the late reports, computed
// from the reports as they lie in the partitions, by maps alone.
func truth(reports []tester.Record[Report]) (final map[string]Activity, late []string) {
	const six, fiftyFour = 6 * time.Hour, 54 * time.Hour
	open, now := map[string]Activity{}, map[int32]time.Time{}
	ends, at := map[string]time.Time{}, map[string]int32{}
	for _, r := range reports {
		if r.Time.After(now[r.Partition]) {
			now[r.Partition] = r.Time
		}
		if r.Value.Type != "earthquake" {
			continue
		}
		start := r.Time.UTC().Truncate(six)
		if !now[r.Partition].Before(start.Add(fiftyFour)) {
			late = append(late, name(r.Key, r.Time)+" "+r.Value.Place)
			continue
		}
		k := name(r.Key, start)
		a := open[k]
		if a.Quakes++; a.Quakes == 1 || r.Value.Magnitude > a.Strongest {
			a.Strongest, a.Place = r.Value.Magnitude, r.Value.Place
		}
		open[k], ends[k], at[k] = a, start.Add(fiftyFour), r.Partition
	}
	maps.DeleteFunc(open, func(k string, _ Activity) bool { return now[at[k]].Before(ends[k]) })
	return open, late
}

func name(region string, at time.Time) string { return region + " " + at.UTC().Format(time.RFC3339) }

func TestActivityIsThatOfTheFile(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(partitions))
	reports, late, quarters := tester.Output(tt, Reports), tester.Output(tt, Late), tester.Windows(tt, Quarters)
	// The process dies at its third commit: the results must not show it.
	tt.Fail(tester.Fault{Op: tester.OpEndTxn, Nth: 3, Do: tester.CrashBefore})
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		runners, err := build(i.Client(), i.Storage())
		return runners[:1], err
	})
	tt.Start("feed", func(i *tester.Instance) ([]reka.Runner, error) { return []reka.Runner{&replay{i.Client()}}, nil })
	tt.Settle()
	if app.Crashed() {
		app.Restart()
	} else {
		t.Error("the process did not die")
	}

	want, missed := truth(reports.All())
	if reports.Len() != 1_707 || len(want) != 218 || len(missed) != 105 {
		t.Errorf("%d reports, %d results, %d late", reports.Len(), len(want), len(missed))
	}
	if a := want["California 2018-02-01T12:00:00Z"]; a != (Activity{32, 2.96, "8km NE of Aguanga, CA"}) {
		t.Errorf("California on the first of February: %+v", a)
	}
	got := map[string]Activity{}
	for _, row := range quarters.All() {
		got[name(row.Key, row.Window.StartTime())] = row.Value
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d results, want %d", len(got), len(want))
		for k := range want {
			if got[k] != want[k] {
				t.Errorf("%s: %+v, want %+v", k, got[k], want[k])
			}
		}
	}
	written := 0
	for p := range int32(partitions) {
		written += len(tt.Raw(Quarters.Name(), p))
	}
	if written != len(want) { // each once
		t.Errorf("%d results were written, want %d", written, len(want))
	}
	var tooLate []string
	for _, r := range late.All() {
		tooLate = append(tooLate, name(r.Key, r.Time)+" "+r.Value.Place)
	}
	slices.Sort(tooLate)
	slices.Sort(missed)
	if !slices.Equal(tooLate, missed) {
		t.Errorf("%d late reports, want %d", len(tooLate), len(missed))
	}
}
