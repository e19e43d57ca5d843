//go:build !race

package task

// raceEnabled reports whether the race detector makes sync.Pool forget things on purpose.
const raceEnabled = false
