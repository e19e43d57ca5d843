package realkafka

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets the kernel end the child when the test binary dies
// without a chance to.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
