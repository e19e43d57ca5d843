//go:build !linux

package realkafka

import "os/exec"

// dieWithParent does nothing here: a test binary that is killed leaves its
// nodes running.
func dieWithParent(*exec.Cmd) {}
