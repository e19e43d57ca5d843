package soak

import (
	"fmt"
	"strings"
)

// Result is how a run ended.
type Result struct {
	cfg     Config
	counts  map[string]int
	inputs  int
	outputs int
	polls   int
	found   []violation
}

// OK reports whether nothing was violated.
func (r *Result) OK() bool { return len(r.found) == 0 }

// of counts findings of one kind.
func (r *Result) of(kind string) int {
	n := 0
	for _, v := range r.found {
		if v.kind == kind {
			n++
		}
	}
	return n
}

// Line is the verdict in one line.
func (r *Result) Line() string {
	word := "ok"
	if !r.OK() {
		word = "FAILED"
	}
	c := r.counts
	s := fmt.Sprintf("soak: %s guarantee=%s seed=%d minutes=%g inputs=%d outputs=%d polls=%d kills=%d pauses=%d restarts=%d resized=%d wipes=%d disk-full=%d node-faults=%d leader-moves=%d link-faults=%d",
		word, guaranteeName(r.cfg.Guarantee), r.cfg.Seed, r.cfg.Duration.Minutes(), r.inputs, r.outputs, r.polls,
		c[faultKill]+c[faultWipe], c[faultPause], c[faultRestart], c[faultAdd]+c[faultRemove], c[faultWipe], c["disk-full-ends"],
		c[faultNode], c[faultLeaders], c[faultCut]+c[faultSilence]+c[faultDelay])
	for _, kind := range []string{kindLost, kindDoubled, kindStuck} {
		s += fmt.Sprintf(" %s=%d", kind, r.of(kind))
	}
	for _, kind := range kinds(r.found) {
		if kind != kindLost && kind != kindDoubled && kind != kindStuck {
			s += fmt.Sprintf(" %s=%d", kind, r.of(kind))
		}
	}
	return s
}

// shown is how many findings of a kind are told.
const shown = 10

// Report tells the findings and how to run the same again.
func (r *Result) Report() string {
	var b strings.Builder
	told := map[string]int{}
	for _, v := range r.found {
		if told[v.kind]++; told[v.kind] <= shown {
			fmt.Fprintf(&b, "%s: %s\n", v.kind, v.text)
		}
	}
	for _, kind := range kinds(r.found) {
		if n := told[kind] - shown; n > 0 {
			fmt.Fprintf(&b, "%s: %d more\n", kind, n)
		}
	}
	if !r.OK() {
		fmt.Fprintf(&b, "logs, schedule and state: %s\nreplay: %s\n", r.cfg.Dir, r.cfg.Replay())
	}
	return b.String()
}
