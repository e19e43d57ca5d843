package soak

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var testTime = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

func TestScheduleIsTheSameForItsSeedAndHasAllKinds(t *testing.T) {
	c := Config{Seed: 7, Duration: 10 * time.Minute}.withDefaults()
	one, two := schedule(c), schedule(c)
	if !slices.Equal(one, two) {
		t.Error("two schedules of one seed differ")
	}
	c.Seed = 8
	if slices.Equal(one, schedule(c)) {
		t.Error("schedules of two seeds are the same")
	}
	had := map[string]int{}
	for i, f := range one {
		had[f.Kind]++
		if f.At >= c.Duration || i > 0 && f.At < one[i-1].At {
			t.Errorf("fault %d is at %v", i, f.At)
		}
		if f.Kind == faultPause && f.For <= sessionTime {
			t.Errorf("a pause of %v does not outlast the session", f.For)
		}
	}
	for _, k := range Kinds() {
		if had[k] == 0 {
			t.Errorf("no %s in ten minutes", k)
		}
	}
}

func TestScheduleKeepsToTheChosenKinds(t *testing.T) {
	c := Config{Seed: 7, Faults: []string{faultNode, faultPause}}.withDefaults()
	faults := schedule(c)
	if len(faults) == 0 {
		t.Fatal("no faults")
	}
	for _, f := range faults {
		if !slices.Contains(c.Faults, f.Kind) {
			t.Errorf("%v", f)
		}
	}
}

func TestVerdictTellsHowToReplay(t *testing.T) {
	cfg := Config{Seed: 7, Duration: 90 * time.Second, Faults: []string{faultKill}, Dir: "logs"}.withDefaults()
	r := &Result{cfg: cfg, counts: map[string]int{faultKill: 3}, found: []violation{{kindLost, "one"}, {kindTable, "two"}, {kindLost, "three"}}}
	line := r.Line()
	for _, want := range []string{"soak: FAILED ", " seed=7 ", " minutes=1.5 ", " kills=3 ", " lost=2 ", " doubled=0 ", " stuck=0", " table=1"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q lacks %q", line, want)
		}
	}
	for _, want := range []string{"lost: one\n", "table: two\n", "SEED=7", "MINUTES=1.5", "FAULTS=kill", "logs\n"} {
		if !strings.Contains(r.Report(), want) {
			t.Errorf("%q lacks %q", r.Report(), want)
		}
	}
	if ok := (&Result{cfg: cfg}); !ok.OK() || ok.Report() != "" || !strings.HasPrefix(ok.Line(), "soak: ok ") {
		t.Errorf("a good run: %q %q", ok.Line(), ok.Report())
	}
}

func TestFilledDiskIsFullUntilItIsFreed(t *testing.T) {
	d, err := mountDisk(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Skip("mounting is not allowed here: ", err)
	}
	defer func() {
		if err := d.unmount(); err != nil {
			t.Error(err)
		}
	}()
	if err := d.fill(0); err != nil {
		t.Fatal(err)
	}
	if err := d.free(); err != nil {
		t.Fatal(err)
	}
	if err := d.fill(16); err != nil {
		t.Fatal(err)
	}
	if size := fileSize(t, d.filler()); size < (diskMiB-20)<<20 || size > (diskMiB-16)<<20 {
		t.Errorf("filled %d bytes, want 16 MiB left of %d MiB", size, diskMiB)
	}
}
