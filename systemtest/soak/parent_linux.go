package soak

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets the kernel end the child when this process dies without
// a chance to.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
