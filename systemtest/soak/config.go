package soak

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rekastream/reka/processor"
)

// Config describes a run. The zero value of a field stands for its default.
type Config struct {
	Seed      uint64
	Duration  time.Duration       // of the attack; default 3 minutes
	Guarantee processor.Guarantee // default exactly once
	Processes int                 // in the beginning; default 3
	Rate      int                 // events a second; default 300
	Keys      int                 // default 120
	Gap       time.Duration       // between two faults, on average; default 2.5 s

	// Faults are the kinds that happen; default all. See Kinds.
	Faults []string

	// Dir is an empty directory for logs and state. Required.
	Dir string

	// Progress is told what happens; default nobody.
	Progress io.Writer
}

// Fixed sizes of a run.
const (
	partitions  = 6
	every       = 5 // every how many events of a key go on to the second group
	sessionTime = 4 * time.Second
	drainTime   = 2 * time.Minute
	endTime     = 45 * time.Second // for a process to end when asked to
	maxExtra    = 2                // processes that may be added
)

func (c Config) withDefaults() Config {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&c.Processes, 3)
	def(&c.Rate, 300)
	def(&c.Keys, 120)
	if c.Duration == 0 {
		c.Duration = 3 * time.Minute
	}
	if c.Gap == 0 {
		c.Gap = 2500 * time.Millisecond
	}
	if len(c.Faults) == 0 {
		c.Faults = Kinds()
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	return c
}

func (c Config) validate() error {
	for _, k := range c.Faults {
		if !slices.Contains(Kinds(), k) {
			return fmt.Errorf("soak: no fault %q; there are: %s", k, strings.Join(Kinds(), ", "))
		}
	}
	switch {
	case c.Dir == "":
		return fmt.Errorf("soak: no directory")
	case c.Processes < 1 || c.Rate < 1 || c.Keys < 1 || c.Duration < 0 || c.Gap < 0:
		return fmt.Errorf("soak: processes %d, rate %d, keys %d, duration %v and gap %v must be positive",
			c.Processes, c.Rate, c.Keys, c.Duration, c.Gap)
	}
	return nil
}

// guarantees are the names that the command line uses.
var guarantees = map[string]processor.Guarantee{
	"exactly-once": processor.ExactlyOnce, "at-least-once": processor.AtLeastOnce, "none": processor.WithoutTransactions,
}

// ParseGuarantee reads exactly-once, at-least-once or none.
func ParseGuarantee(s string) (processor.Guarantee, error) {
	g, ok := guarantees[s]
	if !ok {
		return 0, fmt.Errorf("soak: no guarantee %q: want exactly-once, at-least-once or none", s)
	}
	return g, nil
}

func guaranteeName(g processor.Guarantee) string {
	for name, v := range guarantees {
		if v == g {
			return name
		}
	}
	return fmt.Sprint(int(g))
}

// Replay is the command that runs the same schedule again.
func (c Config) Replay() string {
	c = c.withDefaults()
	s := fmt.Sprintf("make soak SEED=%d MINUTES=%g GUARANTEE=%s PROCESSES=%d RATE=%d KEYS=%d GAP=%v",
		c.Seed, c.Duration.Minutes(), guaranteeName(c.Guarantee), c.Processes, c.Rate, c.Keys, c.Gap)
	if len(c.Faults) != len(Kinds()) {
		s += " FAULTS=" + strings.Join(c.Faults, ",")
	}
	return s
}
