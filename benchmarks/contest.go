package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"
)

// contestant does a part's work once and says how it went: records a second,
// or for a latency milliseconds.
type contestant struct {
	name string
	run  func(context.Context) (float64, error)
}

// part is one line of the table. Its first contestant is what the others are
// compared with.
type part struct {
	name        string
	unit        string
	contestants []contestant
	target      float64 // of Reka's ratio to the first one
	atMost      bool    // the target is an upper bound
}

// outcome is what a part came to.
type outcome struct {
	part
	figures [][]float64 // by contestant, by turn
}

// hold runs the contestants in turn, at least minTurns times each, as often as
// wanted while the time lasts.
func (p part) hold(ctx context.Context, reps int, until time.Time, profile string) (outcome, error) {
	o := outcome{part: p, figures: make([][]float64, len(p.contestants))}
	for turn := range reps {
		began := time.Now()
		for i := range p.contestants {
			// Who begins changes from turn to turn.
			i = (i + turn) % len(p.contestants)
			c := p.contestants[i]
			cpu := cpuTime()
			x, err := c.watched(ctx, profile)
			if err != nil {
				return o, fmt.Errorf("%s: %s: %w", p.name, c.name, err)
			}
			fmt.Fprintf(os.Stderr, "%s: %s: %s %s, %.2f s of CPU\n", p.name, c.name, amount(x), p.unit, (cpuTime() - cpu).Seconds())
			o.figures[i] = append(o.figures[i], x)
		}
		if turn+1 >= minTurns && time.Now().Add(time.Since(began)).After(until) {
			break
		}
	}
	return o, nil
}

// watched is run, with a CPU profile of it if it is Reka's.
func (c *contestant) watched(ctx context.Context, profile string) (float64, error) {
	if profile == "" || c.name != "reka" {
		return c.run(ctx)
	}
	f, err := os.Create(filepath.Clean(profile)) //nolint:gosec // the caller's own file
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return 0, err
	}
	defer pprof.StopCPUProfile()
	return c.run(ctx)
}

const minTurns = 2

// figure is the median over the turns.
func (o *outcome) figure(i int) float64 { return median(o.figures[i]) }

// ratio is the median over the turns of a contestant's figure against the
// first one's in the same turn.
func (o *outcome) ratio(i int) float64 {
	var all []float64
	for turn, x := range o.figures[i] {
		all = append(all, x/o.figures[0][turn])
	}
	return median(all)
}

// reached reports whether Reka, which is the last contestant, is on target.
func (o *outcome) reached() bool {
	r := o.ratio(len(o.contestants) - 1)
	if o.atMost {
		return r <= o.target
	}
	return r >= o.target
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// cpuTime is what this process has used; the broker's is not in it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for the process itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
