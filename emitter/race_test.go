//go:build race

package emitter

// raceEnabled: under the race detector sync.Pool forgets things on purpose.
const raceEnabled = true
