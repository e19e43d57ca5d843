//go:build !race

package processor_test

// raceEnabled reports whether the race detector slows everything down.
const raceEnabled = false
