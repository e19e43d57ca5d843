//go:build !race

package emitter

const raceEnabled = false
