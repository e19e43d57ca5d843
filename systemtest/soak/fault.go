package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kinds of faults, as Config.Faults names them.
const (
	faultKill    = "kill"    // SIGKILL, then started again
	faultPause   = "pause"   // SIGSTOP for longer than the session timeout
	faultRestart = "restart" // SIGTERM, then started again
	faultAdd     = "add"     // one process more
	faultRemove  = "remove"  // one process less
	faultWipe    = "wipe"    // SIGKILL, the state directory is deleted, started again
	faultFill    = "fill"    // the disk is full until the process has ended
	faultNode    = "node"    // SIGKILL of a node, then started again
	faultLeaders = "leaders" // leaders of partitions move
	faultCut     = "cut"     // connections to a node are closed and refused
	faultSilence = "silence" // connections to a node stand still
	faultDelay   = "delay"   // connections to a node are slow
)

// weights say how often a kind happens.
var weights = []struct {
	kind string
	n    int
}{
	{faultKill, 28},
	{faultPause, 8},
	{faultRestart, 10},
	{faultAdd, 5},
	{faultRemove, 5},
	{faultWipe, 5},
	{faultFill, 3},
	{faultNode, 14},
	{faultLeaders, 10},
	{faultCut, 6},
	{faultSilence, 4},
	{faultDelay, 7},
}

// Kinds are all kinds of faults.
func Kinds() []string {
	var out []string
	for _, w := range weights {
		out = append(out, w.kind)
	}
	return out
}

// fault is one entry of a schedule. Who is hit is chosen when it is due,
// among those who can be, by Pick.
type fault struct {
	At   time.Duration // since the attack began
	Kind string
	For  time.Duration // until it is made good
	Pick uint32
}

func (f fault) String() string {
	return fmt.Sprintf("%7.3fs %-8s for %v (pick %d)", f.At.Seconds(), f.Kind, f.For, f.Pick)
}

// schedule is the same for the same configuration.
func schedule(c Config) []fault {
	rnd := rand.New(rand.NewPCG(c.Seed, 0x50a4))
	total := 0
	for _, w := range weights {
		if slices.Contains(c.Faults, w.kind) {
			total += w.n
		}
	}
	var out []fault
	for at := time.Second; ; {
		at += time.Duration((0.2 + 1.6*rnd.Float64()) * float64(c.Gap)).Round(time.Millisecond)
		if at >= c.Duration {
			return out
		}
		f := fault{At: at, Pick: rnd.Uint32()}
		n := rnd.IntN(total)
		for _, w := range weights {
			if !slices.Contains(c.Faults, w.kind) {
				continue
			}
			if n -= w.n; n < 0 {
				f.Kind = w.kind
				break
			}
		}
		f.For = length(f.Kind, rnd)
		out = append(out, f)
	}
}

// length is how long a fault lasts.
func length(kind string, rnd *rand.Rand) time.Duration {
	between := func(from, to time.Duration) time.Duration {
		return (from + time.Duration(rnd.Int64N(int64(to-from)))).Round(time.Millisecond)
	}
	switch kind {
	case faultKill, faultWipe:
		if rnd.IntN(3) == 0 {
			return between(sessionTime, sessionTime+4*time.Second) // others take over
		}
		return between(0, 2*time.Second)
	case faultPause:
		return between(sessionTime+time.Second, sessionTime+6*time.Second)
	case faultRestart:
		return between(0, 2*time.Second)
	case faultNode:
		return between(500*time.Millisecond, 8*time.Second)
	case faultCut, faultSilence, faultDelay:
		return between(200*time.Millisecond, 9*time.Second)
	case faultFill:
		return 40 * time.Second // at most
	}
	return 0
}
